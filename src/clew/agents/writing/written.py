"""Write an answer with a model from the evidence, each sentence cited and each citation checked."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from clew.agents.answer import Answer, Mode
from clew.agents.notebook import Note
from clew.agents.writing.checking import candidate, checked_sentences
from clew.agents.writing.hearing import Heard
from clew.agents.writing.reading import page_of, unknown
from clew.agents.writing.wordings import CANDIDATE, OWN, UNSUPPORTED, in_words_of, unwritten
from clew.context import Context
from clew.errors import ParseError
from clew.extract.language import prompt_language
from clew.llm.chat import Request
from clew.llm.prompt import Prompt
from clew.types import Citation, Evidence

_LONGEST = 400  # tokens of an answer
ROOM = 9000  # characters of evidence
_ENDS = ("?", "!", "…", "。", "？", "！")  # after which no full stop is added
BY_CODE = "read by extraction, joined by code"


class Sentence(BaseModel):
    """One sentence and the passages it is from."""

    text: str
    sources: list[int] = Field(default_factory=list)


class Written(BaseModel):
    """What the model must answer."""

    enough: bool
    sentences: list[Sentence] = Field(default_factory=list)
    short: str = ""
    missing: str = ""


class Known(BaseModel):
    """What the model says when it has no documents."""

    answer: str
    short: str = ""


WRITE = Prompt("answer", Written, {"question", "evidence"}, documents={"evidence"})
CONCLUDE = Prompt(
    "conclude", Written, {"question", "evidence", "notes"}, documents={"evidence", "notes"}
)
KNOW = Prompt("know", Known, {"question"})


async def written_answer(ctx: Context, evidence: Evidence, mode: Mode, notes: str = "") -> Answer:
    """Ask the model, then keep the sentences that the passages support."""
    if not evidence.chunks:
        return await _without_evidence(ctx, evidence, mode, "no passage was found")
    async with ctx.step("write", ctx.question) as step:
        reply = await _ask(step.ctx, evidence, notes)
        step.left = "nothing usable" if reply is None else reply.short or f"enough: {reply.enough}"
    if reply is None:
        # An unparsable reply keeps the evidence.
        return refusal(ctx, evidence, "the model gave no usable answer")
    if mode == "reject" and not reply.enough:
        return refusal(ctx, evidence, reply.missing or "the passages do not say it")
    written = [(sentence.text, sentence.sources) for sentence in reply.sentences]
    passages = page_of(evidence.chunks, ROOM).passages
    lines, citations = await checked_sentences(ctx, written, passages, mode)
    if mode == "open" and not citations and (not reply.enough or not lines):
        missing = reply.missing or "the passages do not say it"
        return await _without_evidence(ctx, evidence, mode, missing)
    if not lines:
        missing = reply.missing or "no sentence of the answer is borne out by the passages"
        return refusal(ctx, evidence, missing)
    note = "" if citations else "nothing of this answer could be found in the evidence"
    short = candidate(ctx, reply.short, lines, evidence.chunks)
    return answered(ctx, evidence, " ".join(lines), citations, short, note)


async def _ask(ctx: Context, evidence: Evidence, notes: str) -> Written | None:
    chat = ctx.chat("answer")
    assert chat is not None
    streaming = Heard(chat, ctx.tell)
    language, like = prompt_language(ctx.question), Request(max_tokens=_LONGEST)
    page = str(page_of(evidence.chunks, ROOM))
    try:
        if notes:
            return await CONCLUDE.ask(
                *(streaming,),
                language=language,
                like=like,
                question=ctx.question,
                evidence=page,
                notes=notes,
            )
        return await WRITE.ask(
            streaming, language=language, like=like, question=ctx.question, evidence=page
        )
    except ParseError:
        return None


async def _without_evidence(ctx: Context, evidence: Evidence, mode: Mode, missing: str) -> Answer:
    """In open mode answer from the model's own knowledge, marked as such; refuse otherwise."""
    if mode == "reject":
        return refusal(ctx, evidence, missing)
    known = await own_knowledge(ctx)
    if known is None:
        return refusal(ctx, evidence, missing)
    note = f"the documents lack this ({missing})"
    text = f"{known.answer.strip()} {in_words_of(ctx.question, OWN)}"
    return answered(ctx, evidence, text, (), known.short.strip(), note)


async def own_knowledge(ctx: Context) -> Known | None:
    """Ask the model without documents; None when it does not know."""
    async with ctx.step("own knowledge", ctx.question) as step:
        chat = step.ctx.chat("answer")
        assert chat is not None
        try:
            known = await KNOW.ask(
                chat,
                language=prompt_language(ctx.question),
                like=Request(max_tokens=_LONGEST),
                question=ctx.question,
            )
        except ParseError as error:
            step.left = f"nothing usable: {error}"
            return None
        step.left = known.short or known.answer
        return None if unknown(known.answer) else known


def composed_answer(ctx: Context, evidence: Evidence, notes: Sequence[Note], short: str) -> Answer:
    """Compose an answer by code: the result, then each step with its citation."""
    known = [note for note in notes if note.known]
    citations = list(dict.fromkeys(note.citation for note in known if note.citation))

    def marked(some: Sequence[Note]) -> str:
        numbers = sorted({citations.index(note.citation) + 1 for note in some if note.citation})
        return "".join(f"[{number}]" for number in numbers)

    # The step that has the answer supports it; a comparison rests on all its steps.
    supporting = [note for note in known if short in (note.answer, note.name)] or known
    unsupported = in_words_of(ctx.question, UNSUPPORTED)
    lines = [f"{short} {marked(supporting) or unsupported}"]
    for note in known:
        line = f"- {note.question} {note.answer} {marked([note]) or unsupported}"
        if line not in lines and len(known) > 1:
            lines.append(line)
    return answered(ctx, evidence, "\n".join(lines), citations, short)


def quoted_chain(ctx: Context, evidence: Evidence, notes: Sequence[Note], short: str) -> Answer:
    """Compose without a model: a labelled candidate, and the sentence that supports each step."""
    citations = list(dict.fromkeys(note.citation for note in notes if note.citation))
    lines = [f"{CANDIDATE} {short}"]
    for number, cited in enumerate(citations, start=1):
        answers = [f"{n.question} {n.answer}" for n in notes if n.citation == cited]
        lines.append(f"“{cited.quote}” [{number}] ({'; '.join(dict.fromkeys(answers))})")
    how = BY_CODE if ctx.has("plan") else f"planned by rules, {BY_CODE}"
    return answered(ctx, evidence, "\n".join(lines), citations, short, unwritten(ctx, how))


def answered(
    ctx: Context,
    evidence: Evidence,
    text: str,
    citations: Sequence[Citation],
    short: str = "",
    note: str = "",
) -> Answer:
    """Make an answer; the engine fills in its recipe, trace and cost."""
    return Answer(
        *(ctx.question, "", text, "answered", tuple(citations), evidence, (), 0.0),
        candidate=short,
        note=note,
    )


def refusal(ctx: Context, evidence: Evidence, missing: str) -> Answer:
    """Make a refusal that says what was missing."""
    reason = in_words_of(ctx.question, missing.strip().rstrip("."))
    return Answer(
        *(ctx.question, "", refused(ctx.question, reason), "refused", (), evidence, (), 0.0),
        missing=reason,
    )


def refused(question: str, missing: str) -> str:
    """Format a refusal in the language of the question."""
    return in_words_of(question, f"Refused: {_ended(missing)}")


def _ended(text: str) -> str:
    """Add the missing full stop; a question ends by itself."""
    return text if text.endswith(_ENDS) else f"{text}."
