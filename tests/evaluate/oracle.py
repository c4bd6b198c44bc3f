"""Questions of every kind with a small corpus, and models that know everything, nothing or lies."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.perfect_model import Gold, PerfectModel

from clew.config import ROLES, ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.evaluate.datasets import Question
from clew.llm.chat import Request
from clew.llm.structured import pin_mode
from clew.models import Models
from clew.testing.fakes import ScriptedChat, prompt_name

CORPUS: Mapping[str, tuple[str, str]] = {
    "bridge": ("Marrow Bridge", "Marrow Bridge spans the Tarn. It was designed by Ilse Brandvik."),
    "ilse": ("Ilse Brandvik", "Ilse Brandvik was an engineer. She was born in Hallowmere."),
    "anton": ("Anton Reeve", "Anton Reeve was a poet. He was born in Vessen. He wrote Salt."),
    "mill": ("Old Mill", "The Old Mill was built by Anton Reeve and by Ilse Brandvik."),
    "song": ("Salt", "Salt was written by Anton Reeve in 1911."),
    "ship": ("Log", "The log calls Captain Ahab PERSON#7. It calls his ship Pequod SHIP#4."),
    "lin": ("林清远", "林清远是一位工程师。林清远出生于云溪。"),
    "dam": ("云溪大坝", "云溪大坝由林清远设计。"),
}


@dataclass(frozen=True)
class Known:
    """A question, and what a perfect model says: sentences of the documents and a short answer."""

    question: Question
    says: Sequence[str]
    short: str


def _known(name: str, text: str, says: Sequence[str], short: str, **gold: Any) -> Known:
    return Known(Question(name, text, **({"answers": (short,)} | gold)), says, short)


TOWNS = {"A": "Vessen", "B": "Hallowmere", "C": "Pellworth", "D": "Quarn"}
BUILDERS = {"A": "Anton Reeve", "B": "Orla Quist", "C": "Ilse Brandvik"}
KNOWN = (
    _known(
        "one hop",
        "Where was Ilse Brandvik born?",
        ["She was born in Hallowmere."],
        "Hallowmere",
        gold=("ilse",),
    ),
    _known(
        "two hops",
        "Where was the designer of Marrow Bridge born?",
        ["It was designed by Ilse Brandvik.", "She was born in Hallowmere."],
        "Hallowmere",
        gold=("bridge", "ilse"),
    ),
    _known(
        "yes or no",
        "Was Anton Reeve born in Vessen?",
        ["He was born in Vessen."],
        "yes",
        gold=("anton",),
    ),
    _known(
        "no about two",
        "Were Ilse Brandvik and Anton Reeve both born in Vessen?",
        ["She was born in Hallowmere.", "He was born in Vessen."],
        "no",
        gold=("ilse", "anton"),
    ),
    _known(
        "choice",
        "Where was Ilse Brandvik born?",
        ["She was born in Hallowmere."],
        "B",
        gold=("ilse",),
        options=TOWNS,
    ),
    _known(
        "several letters",
        "Who built the Old Mill?",
        ["The Old Mill was built by Anton Reeve and by Ilse Brandvik."],
        "A, C",
        answers=("A", "C"),
        gold=("mill",),
        options=BUILDERS,
    ),
    _known(
        "a list",
        "Which people built the Old Mill?",
        ["The Old Mill was built by Anton Reeve and by Ilse Brandvik."],
        "Anton Reeve, Ilse Brandvik",
        answers=("Anton Reeve", "Ilse Brandvik"),
        gold=("mill",),
    ),
    _known("chinese", "林清远出生于哪里？", ["林清远出生于云溪。"], "云溪", gold=("lin",)),
    _known(
        "chinese, two hops",
        "云溪大坝的设计者出生于哪里？",
        ["云溪大坝由林清远设计。", "林清远出生于云溪。"],
        "云溪",
        gold=("dam", "lin"),
    ),
    _known(
        "topic",
        "Who wrote Salt with the poet Anton Reeve?",
        ["Salt was written by Anton Reeve in 1911."],
        "Anton Reeve",
        gold=("song",),
        entities=("Anton Reeve",),
    ),
)
REVERSION = _known(
    "reversion",
    "Which names do [SHIP#4] and [PERSON#7] stand for?",
    ["SHIP#4——Pequod", "PERSON#7——Captain Ahab"],
    "SHIP#4——Pequod; PERSON#7——Captain Ahab",
    answers=(),
    originals={"SHIP#4": ("Pequod",), "PERSON#7": ("Captain Ahab",)},
    gold=("ship",),
)
UNANSWERABLE = Known(
    Question("unanswerable", "When did Anton Reeve die?", answerable=False), [], ""
)
WRONG = "Orrin Thackeray"


def _gold(known: Known) -> Gold:
    pages = dict(CORPUS[doc] for doc in known.question.gold)
    needs = tuple(one for one in known.says if one in " ".join(pages.values()))
    return Gold(known.question.prompt_text(), known.short, " ".join(known.says), pages, needs)


PERFECT = PerfectModel([_gold(one) for one in (*KNOWN, REVERSION, UNANSWERABLE)])


def perfect(request: Request) -> str:
    """Answer every prompt from the gold."""
    return _judge(request) or PERFECT(request)


def unknowing(request: Request) -> str:
    """Know nothing at all."""
    return _judge(request) or _say(request, enough=False, short="unknown", missing="all of it")


def wrong(request: Request) -> str:
    """Give the same false answer to every question."""
    return _judge(request) or _say(request, enough=True, answer=f"It was {WRONG}.", short=WRONG)


def _say(request: Request, **written: Any) -> str:
    if "<answer>" in request.messages[-1].content:  # Graph-R1's instructions
        return f"<think>So it is.</think><answer>{written['short']}</answer>"
    return json.dumps(written)


def _judge(request: Request) -> str:
    """Judge as a careful reader would, where that is asked: right without the false name."""
    messages = [{"content": one.content} for one in request.messages]
    if not prompt_name(messages).startswith("judge"):
        return ""
    right = WRONG not in messages[-1]["content"].rpartition("Answer to")[2]
    return json.dumps({"correct": right, "score": 10 * right})


Model = Callable[[Request], str]


def with_model(base: KnowledgeBase, model: Model) -> KnowledgeBase:
    """Return the knowledge base with a scripted model in every role."""
    chat = ScriptedChat(model)
    pin_mode(chat.name, "json")
    settings = Settings(kb=base.settings.kb, models=ModelSettings(model="m"))
    other = KnowledgeBase(base.store, settings, base.embed)
    other.reader, other.rerank = base.reader, base.rerank
    other.models = Models(settings.models, base.store, chats=dict.fromkeys(ROLES, chat))
    return other
