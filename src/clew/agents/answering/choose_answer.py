"""Let a model choose where its answer and what is read in the passages differ.

It is shown the reader's first candidates before its own answer, unmarked, with the passages cited
for all of them: choosing is easier than writing, and who chooses need not repeat an error.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pydantic import BaseModel

from clew.agents.answering.write import LIST_BREAK, NO_REPLY
from clew.agents.citing.entailment import is_negated, to_stem
from clew.agents.citing.support import contains_answer, find_names, mentions_name
from clew.agents.core.confidence import JUDGED
from clew.agents.core.evidence_page import show_evidence
from clew.agents.core.messages import all_translations
from clew.agents.core.types import Answer
from clew.agents.reading.answer import RankedCandidate
from clew.agents.reading.spans import asked_words, same_answer
from clew.context import Context
from clew.llm.budget import BudgetExceeded
from clew.llm.chat import UNUSABLE_REPLY, Request
from clew.llm.prompt import Prompt
from clew.text.language import prompt_language
from clew.text.options import spell_out_choice, split_options
from clew.text.unicode import split_words
from clew.types import Citation, Evidence, Passage

_CANDIDATES = 4  # candidates of the reader that are shown
_PASSAGES = 7  # passages that are shown
_MAX_TOKENS = 120  # of the reply


class ChosenAnswer(BaseModel, title="Chosen"):
    """What the model must answer."""

    reason: str = ""
    choice: int = 0


CHOOSE = Prompt(
    "choose_answer",
    ChosenAnswer,
    {"question", "evidence", "answers"},
    documents={"evidence", "answers"},
)


async def choose_answer(
    ctx: Context, written: Answer, read: Answer, ranked: Sequence[RankedCandidate]
) -> str:
    """Return the answer that the model chooses among its own and those read; "" for none.

    What it wrote is offered again only if it is cited or a passage that is shown has it.
    """
    chat = ctx.chat("answer")
    some = ranked[:_CANDIDATES]
    passages = gather_cited(ctx.question, written, read, some)
    held = any(contains_answer(written.candidate, f"{p.title} {p.text}") for p in passages)
    own = [written.candidate] if written.citations or held else []
    answers = list_different([*(one.candidate.text for one in some), *own])
    if chat is None or not passages:
        return ""
    async with ctx.step("choose", "; ".join(answers)) as step:
        numbered = "\n".join(f"{number}: {one}" for number, one in enumerate(answers, start=1))
        page = await show_evidence(step.ctx, Evidence(passages), beside=numbered, reply=_MAX_TOKENS)
        try:
            reply = await CHOOSE.ask(
                step.ctx.chat("answer") or chat,
                language=prompt_language(ctx.question),
                like=Request(max_tokens=_MAX_TOKENS),
                question=ctx.question,
                evidence=page,
                answers=numbered,
            )
        except (*UNUSABLE_REPLY, BudgetExceeded) as error:
            step.output = f"no choice: {error}"
            return ""
        chosen = answers[reply.choice - 1] if 0 < reply.choice <= len(answers) else ""
        step.output = chosen or "none of them"
    return chosen


def is_stated(question: str, written: Answer) -> bool:
    """Whether one cited sentence, with its title, has the answer and everything that is asked.

    Forms and synonyms of a word count; a sentence that denies what is asked does not.
    """
    titles = {passage.id: passage.title for passage in written.evidence.chunks}
    asked, names = {to_stem(word) for word in asked_words(question)}, find_names(question)
    for cited in written.citations:
        text = f"{titles.get(cited.chunk, '')} {cited.quote}"
        named = all(mentions_name(name, text) for name in (written.candidate, *names))
        same_sense = is_negated(question) == is_negated(cited.quote)
        if named and same_sense and asked <= {to_stem(word) for word in split_words(text)}:
            return True
    return False


def answers_as_well(written: Answer, read: Answer) -> bool:
    """Whether the scorer finds what is written to answer no less than what is read.

    Where it judges only one of them, nothing speaks against what is written.
    """
    own, other = written.signals.get(JUDGED), read.signals.get(JUDGED)
    return own is None or other is None or own >= other


def list_different(answers: Iterable[str]) -> list[str]:
    """Return each answer once, in the form that comes first."""
    found: list[str] = []
    for one in answers:
        if one and not any(same_answer(one, other) for other in found):
            found.append(one)
    return found


def gather_cited(
    question: str, written: Answer, read: Answer, ranked: Sequence[RankedCandidate]
) -> tuple[Passage, ...]:
    """Return the passages cited for what is read, for the other candidates, and what is written."""
    known = {p.id: p for p in (*read.evidence.chunks, *written.evidence.chunks)}
    for one in ranked:
        for reading in one.candidate.readings:
            known.setdefault(reading.passage.id, reading.passage)
    noted = (note.citation for one in ranked for note in one.notes(question))
    cited: list[Citation] = [*read.citations, *(c for c in noted if c), *written.citations]
    ids = dict.fromkeys(citation.chunk for citation in cited if citation.chunk in known)
    return tuple(known[chunk] for chunk in list(ids)[:_PASSAGES])


def is_span_like(question: str, short: str) -> bool:
    """Whether a span reader could name an answer: not an option, a list, or what was asked with."""
    offered = bool(split_options(question)[1])
    listed = LIST_BREAK.search(short) is not None
    return not (offered or listed or mentions_name(short, question))


def agree(question: str, written: str, read: str) -> bool:
    """Whether what is read is what is written, one of a list, or the option of a letter."""
    chosen = spell_out_choice(question, written) or []
    return any(same_answer(read, part) for part in (written, *LIST_BREAK.split(written), *chosen))


def choose_better(planned: Answer, direct: Answer) -> Answer:
    """Return the answer that is better supported; the plan's where both are alike."""
    if planned.verdict == "refused":
        return direct
    return direct if direct.confidence > planned.confidence else planned


def overrule(written: Answer, read: Answer) -> Answer:
    """Return what was read, with a note of what the model said instead."""
    said = (
        f"the model wrote “{written.candidate}”"
        if written.candidate
        else "the model found no answer"
    )
    if written.note.startswith(NO_REPLY):  # then code quoted the candidate
        said = NO_REPLY
    note = f"{said}; what is read in the passages has more support"
    return replace(read, note=note)


def explain_unsupported(written: Answer) -> str:
    """Say why what a model wrote is not given."""
    if written.note.startswith(NO_REPLY) or written.missing in all_translations(NO_REPLY):
        return NO_REPLY
    if written.candidate:
        return f"the model wrote “{written.candidate}”, which no passage supports"
    return "no passage supports what the model wrote"
