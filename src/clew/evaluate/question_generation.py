"""Generate questions with gold evidence from a knowledge base, most of them multi-hop."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from clew.engine import KnowledgeBase
from clew.errors import ConfigError, ModelError
from clew.evaluate.question_templates import (
    TemplateQuestion,
    generate_chains,
    generate_common_names,
    generate_comparisons,
    generate_single_facts,
    generate_unanswerable,
    load_steps,
)
from clew.index.view import View
from clew.llm.chat import Chat, Request
from clew.llm.prompt import Prompt
from clew.text.language import prompt_language
from clew.text.names import name_key
from clew.text.unicode import digest

QUESTION_KINDS = ("bridge", "chain", "comparison", "common", "unanswerable", "fact")
_MAX_TOKENS = 200  # tokens of a question
_MIN_WORDS = 4  # words of a question
_QUESTION_MARKS = ("?", "？", "؟")
_CITATION = re.compile(r"\[\d+\]")


class Worded(BaseModel):
    """A question as a person would ask it."""

    question: str


WORDING_PROMPT = Prompt(
    "question_wording",
    Worded,
    frozenset({"puzzle", "answer", "hidden", "sources"}),
    frozenset({"sources"}),
)


class NoQuestionsError(ConfigError):
    """No question can be generated from the knowledge base."""


@dataclass(frozen=True)
class GeneratedQuestions:
    """Rows for `questions.jsonl`, and how many kept the template's wording."""

    rows: tuple[dict[str, Any], ...]
    template_worded: int = 0


async def make_questions(
    kb: KnowledgeBase,
    count: int,
    *,
    kinds: Sequence[str] = QUESTION_KINDS[:4],
    seed: int = 0,
    chat: Chat | None = None,
) -> GeneratedQuestions:
    """Generate `count` questions, mixing the kinds as evenly as the knowledge base allows."""
    for kind in kinds:
        if kind not in QUESTION_KINDS:
            raise ConfigError(
                f"unknown kind of question {kind!r}; known: {', '.join(QUESTION_KINDS)}"
            )
    rng = random.Random(seed)
    async with kb.store.snapshot() as snapshot:
        view = View(snapshot.arrays, {})
        steps = await load_steps(snapshot, view, seed)
        generators: Mapping[str, Iterator[TemplateQuestion]] = {
            "bridge": generate_chains(steps, 2, rng),
            "chain": generate_chains(steps, 3, rng),
            "comparison": generate_comparisons(steps, rng),
            "common": generate_common_names(steps, rng),
            "unanswerable": generate_unanswerable(steps, rng),
            "fact": generate_single_facts(steps, rng),
        }
        drafts = _interleave([generators[kind] for kind in kinds], count)
        if not drafts:
            raise NoQuestionsError(
                "no question with one clear answer can be made from these facts; give your own "
                "questions, or add more documents with `clew add`"
            )
        kept_template = 0
        rows = []
        used: set[str] = set()
        for question in drafts:
            text = await _reword(question, chat, used) if chat is not None else question.text
            kept_template += chat is not None and text == question.text
            used.add(text)
            rows.append(await _to_row(replace(question, text=text), snapshot, view))
    return GeneratedQuestions(tuple(rows), kept_template)


def _interleave(
    generators: Sequence[Iterator[TemplateQuestion]], count: int
) -> list[TemplateQuestion]:
    """Take questions from the generators in turn until there are enough or none is left."""
    found: dict[str, TemplateQuestion] = {}
    remaining = list(generators)
    while remaining and len(found) < count:
        for generator in list(remaining):
            new = next((question for question in generator if question.text not in found), None)
            if new is None:
                remaining.remove(generator)
            elif len(found) < count:
                found[new.text] = new
    return list(found.values())


async def _reword(question: TemplateQuestion, chat: Chat, used: Set[str]) -> str:
    """Let a model reword the question; keep the template's wording if the result is invalid."""
    sources = "\n".join(step.text for step in question.steps)
    try:
        reply = await WORDING_PROMPT.ask(
            chat,
            language=prompt_language(question.text),
            like=Request(max_tokens=_MAX_TOKENS),
            puzzle=question.text,
            answer=question.answer or "(none)",
            hidden="\n".join(question.hidden) or "(nothing)",
            sources=sources,
        )
    except ModelError:
        return question.text
    text = " ".join(reply.question.split())
    return text if text not in used and _is_valid_wording(text, question) else question.text


def _is_valid_wording(text: str, question: TemplateQuestion) -> bool:
    """Whether a wording is a question that has the given names and reveals no hidden one."""
    normalised = f" {name_key(text)} "

    def mentions(name: str) -> bool:
        return f" {name_key(name)} " in normalised

    if (
        len(normalised.split()) < _MIN_WORDS
        or not text.endswith(_QUESTION_MARKS)
        or _CITATION.search(text)
    ):
        return False
    if not all(map(mentions, question.starts)):
        return False
    hidden = [question.answer, *question.hidden] if question.type != "comparison" else []
    return not any(mentions(name) for name in hidden if name)


async def _to_row(question: TemplateQuestion, snapshot: Any, view: View) -> dict[str, Any]:
    """Convert a question to a row of `questions.jsonl` with gold documents and spans."""
    facts = [int(view.keys("fact")[step.fact]) for step in question.steps]
    places = await snapshot.supports("fact", facts)
    links = view.links("fact_chunk")
    chunk_keys = [int(view.keys("chunk")[int(links.row(step.fact)[0])]) for step in question.steps]
    chunks = await snapshot.chunks(chunk_keys)
    names = await snapshot.names([chunk.document for chunk in chunks.values()])
    gold, spans = [], []
    for fact, chunk_key in zip(facts, chunk_keys, strict=True):
        chunk = chunks[chunk_key]
        doc = (names.get(chunk.document) or (chunk.document,))[0]
        place = next((p for p in places.get(fact, ()) if p.chunk == chunk.id), None)
        gold.append(doc)
        if place is not None:
            spans.append({"doc": doc, "chunk": chunk.id, "start": place.start, "end": place.end})
    row: dict[str, Any] = {
        "id": digest(question.type, question.text)[:12],
        "question": question.text,
        "type": question.type,
        "gold": list(dict.fromkeys(gold)),
        "gold_spans": spans,
    }
    if question.steps and all(step.relation for step in question.steps):
        row["gold_triples"] = [
            [step.source.name, step.relation.replace("_", " "), step.target.name]
            for step in question.steps
        ]
    if question.answerable:
        return row | {"answer": question.answer, "hidden": list(question.hidden)}
    return row | {"answerable": False}
