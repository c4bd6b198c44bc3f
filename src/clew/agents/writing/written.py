"""An answer written by a model from the evidence, each sentence cited and each citation checked."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from clew.agents.answer import Answer, Mode
from clew.agents.notebook import Note
from clew.agents.writing.bearing import agree
from clew.agents.writing.hearing import Heard
from clew.agents.writing.reading import page_of, unknown
from clew.agents.writing.support import Place, best_citation, citations_for, invented, same_names
from clew.agents.writing.support import citation as citation_at
from clew.agents.writing.wordings import CANDIDATE, OWN, UNSUPPORTED, in_words_of, unwritten
from clew.context import Context
from clew.errors import ParseError
from clew.extract.language import prompt_language
from clew.llm.chat import Request
from clew.llm.prompt import Prompt
from clew.sentences import sentence_spans
from clew.types import Citation, Evidence, Passage

_SAME_MEANING = 0.7  # cosine of two sentences (MiniLM)
_LONGEST = 400  # tokens of an answer
ROOM = 9000  # characters of evidence
_ENDS = ("?", "!", "…", "。", "？", "！")  # after which a full stop is one too many
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
    """Ask the model, then keep what the passages bear out."""
    if not evidence.chunks:
        return await _without_evidence(ctx, evidence, mode, "no passage was found")
    async with ctx.step("write", ctx.question) as step:
        said = await _ask(step.ctx, evidence, notes)
        step.left = "nothing usable" if said is None else said.short or f"enough: {said.enough}"
    if said is None:
        # A model that cannot answer in shape is no reason to lose the evidence.
        return refusal(ctx, evidence, "the model gave no usable answer")
    if mode == "reject" and not said.enough:
        return refusal(ctx, evidence, said.missing or "the passages do not say it")
    lines, citations = await _checked(ctx, said.sentences, evidence, mode)
    if mode == "open" and not citations and (not said.enough or not lines):
        missing = said.missing or "the passages do not say it"
        return await _without_evidence(ctx, evidence, mode, missing)
    if not lines:
        missing = said.missing or "no sentence of the answer is borne out by the passages"
        return refusal(ctx, evidence, missing)
    note = "" if citations else "nothing of this answer could be found in the evidence"
    made_up = unknown(said.short) or invented(said.short, _said(ctx, evidence.chunks))
    short = "" if made_up else said.short.strip().rstrip(".")
    return answered(ctx, evidence, " ".join(lines), citations, short, note)


async def _ask(ctx: Context, evidence: Evidence, notes: str) -> Written | None:
    chat = ctx.chat("answer")
    assert chat is not None
    heard = Heard(chat, ctx.tell)
    language, like = prompt_language(ctx.question), Request(max_tokens=_LONGEST)
    page = str(page_of(evidence.chunks, ROOM))
    try:
        if notes:
            return await CONCLUDE.ask(
                *(heard,),
                language=language,
                like=like,
                question=ctx.question,
                evidence=page,
                notes=notes,
            )
        return await WRITE.ask(
            heard, language=language, like=like, question=ctx.question, evidence=page
        )
    except ParseError:
        return None


async def _without_evidence(ctx: Context, evidence: Evidence, mode: Mode, missing: str) -> Answer:
    """In open mode what the model knows by itself, marked as such; a refusal otherwise."""
    if mode == "reject":
        return refusal(ctx, evidence, missing)
    known = await own_knowledge(ctx)
    if known is None:
        return refusal(ctx, evidence, missing)
    note = f"the documents lack this ({missing})"
    said = f"{known.answer.strip()} {in_words_of(ctx.question, OWN)}"
    return answered(ctx, evidence, said, (), known.short.strip(), note)


async def own_knowledge(ctx: Context) -> Known | None:
    """What the model says without any document; None when that is nothing."""
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
    """An answer that code put together: what it comes to, then each step, cited where read."""
    known = [note for note in notes if note.known]
    citations = list(dict.fromkeys(note.citation for note in known if note.citation))

    def marked(some: Sequence[Note]) -> str:
        numbers = sorted({citations.index(note.citation) + 1 for note in some if note.citation})
        return "".join(f"[{number}]" for number in numbers)

    # The step that says the answer bears it; a comparison rests on all its steps.
    bearing = [note for note in known if short in (note.answer, note.name)] or known
    lines = [f"{short} {marked(bearing)}".strip()]
    unsupported = in_words_of(ctx.question, UNSUPPORTED)
    for note in known:
        line = f"- {note.question} {note.answer} {marked([note]) or unsupported}"
        if line not in lines and len(known) > 1:
            lines.append(line)
    return answered(ctx, evidence, "\n".join(lines), citations, short)


def quoted_chain(ctx: Context, evidence: Evidence, notes: Sequence[Note], short: str) -> Answer:
    """The same without a model: a labelled candidate, and the sentence behind every step."""
    citations = list(dict.fromkeys(note.citation for note in notes if note.citation))
    lines = [f"{CANDIDATE} {short}"]
    for number, cited in enumerate(citations, start=1):
        read = [f"{n.question} {n.answer}" for n in notes if n.citation == cited]
        lines.append(f"“{cited.quote}” [{number}] ({'; '.join(dict.fromkeys(read))})")
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
    """An answer whose recipe, trace and cost the engine will fill in."""
    return Answer(
        *(ctx.question, "", text, "answered", tuple(citations), evidence, (), 0.0),
        candidate=short,
        note=note,
    )


def refusal(ctx: Context, evidence: Evidence, missing: str) -> Answer:
    """A refusal that says what was missing."""
    said = in_words_of(ctx.question, missing.strip().rstrip("."))
    return Answer(
        *(ctx.question, "", refused(ctx.question, said), "refused", (), evidence, (), 0.0),
        missing=said,
    )


def refused(question: str, missing: str) -> str:
    """A refusal in the language of the question."""
    return in_words_of(question, f"Refused: {_ended(missing)}")


def _ended(said: str) -> str:
    """With the full stop that it lacks; a question ends by itself."""
    return said if said.endswith(_ENDS) else f"{said}."


async def _checked(
    ctx: Context, sentences: Sequence[Sentence], evidence: Evidence, mode: Mode
) -> tuple[list[str], list[Citation]]:
    """Sentences with the marks of their citations; unsupported ones are marked, or dropped."""
    passages = page_of(evidence.chunks, ROOM).passages
    lines: list[str] = []
    citations: list[Citation] = []
    for sentence in sentences:
        text = sentence.text.strip()
        if not text:
            continue
        found = await cited(ctx, text, sentence.sources, passages)
        for citation in found:
            if citation not in citations:
                citations.append(citation)
        marks = "".join(f"[{citations.index(citation) + 1}]" for citation in found)
        if marks:
            lines.append(f"{text} {marks}")
        elif mode == "open":
            lines.append(f"{text} {in_words_of(ctx.question, UNSUPPORTED)}")
    return lines, citations


async def cited(
    ctx: Context, text: str, sources: Sequence[int], passages: Sequence[Passage]
) -> list[Citation]:
    """What bears a sentence out: the named passages, else any, by words and then by meaning."""
    if invented(text, _said(ctx, passages)):
        return []
    found = citations_for(text, sources, passages)
    if found:
        return found
    other = best_citation(text, passages)
    if other is None and (together := citations_for(text, range(1, len(passages) + 1), passages)):
        return together  # a small model names one passage for what two say
    if other is None and ctx.embed is not None:
        named = [passages[n - 1] for n in dict.fromkeys(sources) if 1 <= n <= len(passages)]
        other = await meant(ctx, text, named)
    return [other] if other is not None else []


def _said(ctx: Context, passages: Sequence[Passage]) -> list[str]:
    """All that a model was told: whatever else it names it has made up."""
    return [ctx.question, *(f"{passage.title} {passage.text}" for passage in passages)]


async def meant(ctx: Context, text: str, passages: Sequence[Passage]) -> Citation | None:
    """The sentence that says it in other words; its names and numbers must be there as they are."""
    spans = [(p, start, end) for p in passages[:2] for start, end in sentence_spans(p.text)][:16]
    if not spans:
        return None
    vectors = await ctx.vectors([text, *(p.text[start:end] for p, start, end in spans)])
    cosines = [float(vector @ vectors[0]) for vector in vectors[1:]]
    best = max(range(len(spans)), key=lambda at: cosines[at])
    passage, start, end = spans[best]
    quote = passage.text[start:end]
    same = same_names(text, passage, quote) and agree(text, quote)
    if cosines[best] < _SAME_MEANING or not same:
        return None
    return citation_at(passage, Place(start, end, cosines[best]))
