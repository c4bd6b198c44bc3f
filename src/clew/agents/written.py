"""An answer written by a model from the evidence, each sentence cited and each citation checked."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from clew.agents.answer import Answer, Mode, Verdict
from clew.agents.support import citations_for
from clew.context import Context
from clew.errors import ParseError
from clew.extract.language import prompt_language
from clew.llm.chat import Chat, Request
from clew.llm.prompt import Prompt
from clew.types import Citation, Evidence, Passage, Usage

_PASSAGE = 1800  # characters of one passage that the model is shown
_LONGEST = 700  # tokens of an answer
UNSUPPORTED = "(not supported by the evidence)"


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


WRITE = Prompt("answer", Written, {"question", "evidence"}, documents={"evidence"})


async def written_answer(ctx: Context, chat: Chat, evidence: Evidence, mode: Mode) -> Answer:
    """Ask the model, then keep what the passages bear out."""
    passages = evidence.chunks
    if not passages:
        return _refusal(ctx, evidence, "no passage was found", Usage())
    try:
        reply = await WRITE.answer(
            chat,
            language=prompt_language(ctx.question),
            like=Request(max_tokens=_LONGEST),
            question=ctx.question,
            evidence=shown(passages),
        )
    except ParseError as error:
        # A model that cannot answer in shape is no reason to lose the evidence.
        return _refusal(ctx, evidence, f"the model gave no usable answer ({error})", Usage())
    said, usage = reply.value, reply.usage
    if mode == "reject" and not said.enough:
        return _refusal(ctx, evidence, said.missing or "the passages do not say it", usage)
    lines, citations = _checked(said.sentences, passages, mode)
    if not lines:
        missing = said.missing or "no sentence of the answer is borne out by the passages"
        return _refusal(ctx, evidence, missing, usage)
    verdict: Verdict = "answered"
    text = " ".join(lines)
    note = "" if citations else "nothing of this answer could be found in the evidence"
    return Answer(
        *(ctx.question, "", text, verdict, tuple(citations), evidence, (), 0.0),
        candidate=said.short.strip(),
        note=note,
        usage=usage,
    )


def shown(passages: Sequence[Passage]) -> str:
    """The passages as the model reads them, numbered from 1."""
    lines = []
    for number, passage in enumerate(passages, start=1):
        title = f"{passage.title}: " if passage.title else ""
        text = " ".join(passage.text.split())[:_PASSAGE]
        lines.append(f"[{number}] {title}{text}")
    return "\n".join(lines)


def _checked(
    sentences: Sequence[Sentence], passages: Sequence[Passage], mode: Mode
) -> tuple[list[str], list[Citation]]:
    """Sentences with the marks of their citations; unsupported ones are marked, or dropped."""
    lines: list[str] = []
    citations: list[Citation] = []
    for sentence in sentences:
        if not sentence.text.strip():
            continue
        found = citations_for(sentence.text, sentence.sources, passages)
        for citation in found:
            if citation not in citations:
                citations.append(citation)
        marks = "".join(f"[{citations.index(citation) + 1}]" for citation in found)
        if marks:
            lines.append(f"{sentence.text.strip()} {marks}")
        elif mode == "open":
            lines.append(f"{sentence.text.strip()} {UNSUPPORTED}")
    return lines, citations


def _refusal(ctx: Context, evidence: Evidence, missing: str, usage: Usage) -> Answer:
    return Answer(
        *(ctx.question, "", f"Refused: {missing}.", "refused", (), evidence, (), 0.0),
        usage=usage,
    )
