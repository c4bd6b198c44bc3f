"""What is asked is told from how it is asked: breadth and courtesy, judged by a model."""

import json
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from clew.agents.ask import ORDER
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.llm.embed import EmbedRole, Vectors
from clew.llm.embed_weights import missing_packages
from clew.retrieve.breadth import judge_breadth
from clew.retrieve.courtesy import leave_out_courtesy

STORED = json.loads(files("clew.retrieve").joinpath("wording_weights.json").read_text("utf-8"))


class Encoder:
    """An encoder with the default one's name, to which some texts mean what a model looks for."""

    def __init__(self, task: str, *meant: str, name: str = "all-MiniLM-L6-v2/int8") -> None:
        self.name, self.meant = name, meant
        self.weights = np.array(STORED[task][:-1], np.float32)
        self.dim = len(self.weights)

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        return np.array([self.weights * (1 if t in self.meant else -1) for t in texts], np.float32)


@pytest.mark.parametrize(
    ("question", "found", "broad"),
    [
        ("What speaks for and against the dam?", True, True),
        ("What speaks for and against the dam?", False, False),
        ("Describe the colour of the flag", False, False),
        ("Explain who founded Acme", False, False),
        ("Name all members of the quartet", True, True),
        ("What are some of the oldest mills?", False, True),
        ("列出所有的桥", False, True),
    ],
)
async def test_a_model_knows_wordings_that_no_rule_lists(
    base: KnowledgeBase, question: str, found: bool, broad: bool
) -> None:
    encoder = Encoder("breadth", *([question] if found else []))
    async with base.store.snapshot() as now:
        ctx = replace(await base.context(now, question), embed=encoder)
        assert await judge_breadth(ctx) == broad


async def test_another_embedder_leaves_it_to_the_rules(base: KnowledgeBase) -> None:
    question = "What speaks for and against the dam?"
    async with base.store.snapshot() as now:
        ctx = replace(
            await base.context(now, question), embed=Encoder("breadth", question, name="other")
        )
        assert not await judge_breadth(ctx)
        assert await leave_out_courtesy(ctx, "All is well. Who built it?") == (
            "All is well. Who built it?"
        )


@pytest.mark.parametrize(
    ("question", "courtesy", "left"),
    [
        ("I hope all is well. Who built Oak Hall?", "I hope all is well", "Who built Oak Hall?"),
        ("The mill burned down. Who built it?", "", "The mill burned down. Who built it?"),
        ("Who built Oak Hall? Have a nice day!", "Have a nice day", "Who built Oak Hall?"),
        ("who built it Have a great day", "Have a great day", "who built it"),
        ("Who built the mill, cheers mate", "cheers mate", "Who built the mill"),
        ("Who built Mr. Moto in life?", "Moto in life", "Who built Mr. Moto in life?"),
        ("Who was it, as a sailor of the navy?", "as a sailor of the navy", None),
        ("Would you mind saying who built it?", "Would you mind saying", "who built it?"),
        ("Pardon the noise, but who built it?", "Pardon the noise", "who built it?"),
        ("One more thing - who built Oak Hall?", "One more thing", "who built Oak Hall?"),
        ("Who built Oak Hall - cheers mate", "cheers mate", "Who built Oak Hall"),
        # What encloses a clause is no closing.
        ("What did Ann, who ran the mill, host?", "host", None),
        ("Do you know if Oak Hall is old?", "Do you know", "if Oak Hall is old?"),
        ("Could you see whether Oak Hall is old?", "Could you see", "whether Oak Hall is old?"),
        # What is left would say nothing, or lack what its verb needs.
        ("I must paint my boat, how do I do that?", "I must paint my boat", None),
        ("may oak be painted if it is loud", "loud", None),
        ("the age of Anna's couple", "couple", None),
        ("the age of Anna's couple", "s couple", None),
        ("how long must it cool for good", "good", None),
        ("Could somebody explain who built it?", "Could somebody explain", "who built it?"),
        # A writer's name goes with the courtesy before it.
        ("Who built Oak Hall? Cheers, Anna", "Cheers", "Who built Oak Hall?"),
        ("Who built Oak Hall? In spring, Anna", "", None),
        # Nothing in the middle is left out, and what no passage says at the end is.
        ("Are both journals, a good day to you, old ones?", "a good day to you", None),
        ("could u tell me was it built", "could u tell me", "was it built"),
        ("who built it thx", "thx", "who built it"),
        # Everyday openings and closings, whether they say "I" or "you" or not.
        ("right so who built the mill?", "right so", "who built the mill?"),
        ("i'd love to know is the mill old?", "i'd love to know", "is the mill old?"),
        ("who built the mill if that's ok", "if that's ok", "who built the mill"),
        ("who built the mill thanks guys", "thanks guys", "who built the mill"),
        ("who built the mill when you get a sec", "you get a sec", None),
        # Whole sentences, whoever they name, where the question names something itself.
        (
            "Who built Oak Hall? Take care and all the best, Anna",
            "Take care and all the best, Anna",
            "Who built Oak Hall?",
        ),
        (
            "Greetings from rainy Glasgow! Who built Oak Hall?",
            "Greetings from rainy Glasgow",
            "Who built Oak Hall?",
        ),
        ("The mill of Anna burned down. Who built Oak Hall?", "", None),
        # What a question refers to is never left out, and not all of a question is.
        (
            "Good old Oak Hall. Who built it?",
            "Good old Oak Hall",
            "Good old Oak Hall. Who built it?",
        ),
        ("Good day!", "Good day", "Good day!"),
        # What "does" needs is its verb, and an order to list something is what is asked.
        ("What does code E4 tell me?", "tell me", None),
        ("List all people who were elected", "List all people", None),
        (
            "Who built the mill, if you would be so kind?",
            "if you would be so kind",
            "Who built the mill",
        ),
    ],
)
async def test_what_only_addresses_the_reader_is_left_out(
    base: KnowledgeBase, question: str, courtesy: str, left: str | None
) -> None:
    async with base.store.snapshot() as now:
        ctx = replace(await base.context(now, question), embed=Encoder("courtesy", courtesy))
        assert await leave_out_courtesy(ctx, question) == (left or question)


@pytest.mark.slow
@pytest.mark.skipif(bool(missing_packages()), reason="the packages of the encoder are missing")
async def test_words_of_a_search_order_nothing(tmp_path: Path) -> None:
    page = tmp_path / "tower.md"
    page.write_text("# Tower\n\nThe lights of the tower are changed in May.", encoding="utf-8")
    base = await KnowledgeBase.open(Settings(kb=tmp_path / "kb"), create=True)
    await base.add([page])
    for words in ("lights tower date", "delete branch remote", "reset password admin"):
        assert ORDER not in (await base.ask(words)).missing
    assert ORDER in (await base.ask("Turn off the lights")).missing
