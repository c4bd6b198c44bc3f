"""Multi-hop questions with gold evidence, made from a user's own knowledge base."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from clew.engine import KnowledgeBase
from clew.errors import ConfigError, ModelError
from clew.evaluate.questions.steps import all_steps
from clew.evaluate.questions.templates import (
    Made,
    chains,
    common_names,
    comparisons,
    unanswerable,
)
from clew.extract.language import prompt_language
from clew.llm.chat import Chat, Request
from clew.llm.prompt import Prompt
from clew.names import name_key
from clew.text import digest
from clew.view import View

KINDS = ("bridge", "chain", "comparison", "common", "unanswerable")
_LONGEST = 200  # tokens of a question
_SHORTEST = 4  # words of one
_ASKING = ("?", "？", "؟")
_CITED = re.compile(r"\[\d+\]")


class Worded(BaseModel):
    """A question as a person would ask it."""

    question: str


WORDING = Prompt(
    "question_wording",
    Worded,
    frozenset({"puzzle", "answer", "hidden", "sources"}),
    frozenset({"sources"}),
)


@dataclass(frozen=True)
class Questions:
    """Rows for `questions.jsonl`, and how many a model could not word without giving them away."""

    rows: tuple[dict[str, Any], ...]
    stiff: int = 0


async def make_questions(
    kb: KnowledgeBase,
    count: int,
    *,
    kinds: Sequence[str] = KINDS[:4],
    seed: int = 0,
    chat: Chat | None = None,
) -> Questions:
    """Make `count` questions, as even a mix of the kinds as the knowledge base allows."""
    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f"no kind of question {kind!r}; have {', '.join(KINDS)}")
    rng = random.Random(seed)
    async with kb.store.snapshot() as snapshot:
        view = View(snapshot.arrays, {})
        steps = await all_steps(snapshot, view, seed)
        makers: Mapping[str, Iterator[Made]] = {
            "bridge": chains(steps, 2, rng),
            "chain": chains(steps, 3, rng),
            "comparison": comparisons(steps, rng),
            "common": common_names(steps, rng),
            "unanswerable": unanswerable(steps, rng),
        }
        made = _mixed([makers[kind] for kind in kinds], count)
        if not made:
            raise ConfigError(
                "this knowledge base joins no two facts, so there is no question to make; "
                "`clew add` more documents"
            )
        stiff = 0
        rows = []
        used: set[str] = set()
        for one in made:
            text = await _worded(one, chat, used) if chat is not None else one.text
            stiff += chat is not None and text == one.text
            used.add(text)
            rows.append(await _row(replace(one, text=text), snapshot, view))
    return Questions(tuple(rows), stiff)


def _mixed(makers: Sequence[Iterator[Made]], count: int) -> list[Made]:
    """One of each kind in turn, until there are enough or nobody has more."""
    found: dict[str, Made] = {}
    waiting = list(makers)
    while waiting and len(found) < count:
        for maker in list(waiting):
            one = next((made for made in maker if made.text not in found), None)
            if one is None:
                waiting.remove(maker)
            elif len(found) < count:
                found[one.text] = one
    return list(found.values())


async def _worded(made: Made, chat: Chat, used: Set[str]) -> str:
    """A model's wording, if it asks the same and gives nothing away; else the template's."""
    sources = "\n".join(step.text for step in made.steps)
    try:
        said = await WORDING.ask(
            chat,
            language=prompt_language(made.text),
            like=Request(max_tokens=_LONGEST),
            puzzle=made.text,
            answer=made.answer or "(none)",
            hidden="\n".join(made.hidden) or "(nothing)",
            sources=sources,
        )
    except ModelError:
        return made.text
    text = " ".join(said.question.split())
    return text if text not in used and _asks(text, made) else made.text


def _asks(text: str, made: Made) -> bool:
    """Whether a wording can be taken for the question: a model may write anything."""
    told = f" {name_key(text)} "

    def says(name: str) -> bool:
        return f" {name_key(name)} " in told

    if len(told.split()) < _SHORTEST or not text.endswith(_ASKING) or _CITED.search(text):
        return False
    if not all(map(says, made.starts)):
        return False
    hidden = [made.answer, *made.hidden] if made.type != "comparison" else []
    return not any(says(name) for name in hidden if name)


async def _row(made: Made, snapshot: Any, view: View) -> dict[str, Any]:
    """A line of `questions.jsonl`, with the documents and spans that hold the answer."""
    facts = [int(view.keys("fact")[step.fact]) for step in made.steps]
    places = await snapshot.supports("fact", facts)
    links = view.links("fact_chunk")
    spots = [int(view.keys("chunk")[int(links.row(step.fact)[0])]) for step in made.steps]
    chunks = await snapshot.chunks(spots)
    names = await snapshot.names([chunk.document for chunk in chunks.values()])
    gold, spans = [], []
    for fact, spot in zip(facts, spots, strict=True):
        chunk = chunks[spot]
        doc = (names.get(chunk.document) or (chunk.document,))[0]
        place = next((p for p in places.get(fact, ()) if p.chunk == chunk.id), None)
        gold.append(doc)
        if place is not None:
            spans.append({"doc": doc, "chunk": chunk.id, "start": place.start, "end": place.end})
    row: dict[str, Any] = {
        "id": digest(made.type, made.text)[:12],
        "question": made.text,
        "type": made.type,
        "gold": list(dict.fromkeys(gold)),
        "gold_spans": spans,
    }
    if made.steps and all(step.relation for step in made.steps):
        row["gold_triples"] = [
            [step.source.name, step.relation.replace("_", " "), step.target.name]
            for step in made.steps
        ]
    if made.answerable:
        return row | {"answer": made.answer, "hidden": list(made.hidden)}
    return row | {"answerable": False}
