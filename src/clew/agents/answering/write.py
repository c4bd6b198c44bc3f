"""Write an answer with a model from the evidence, each sentence cited and each citation checked.

The sentences are streamed to a listener while the model writes its JSON.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from pydantic import BaseModel, Field

from clew.agents.answering.cite_written import cite_written
from clew.agents.answering.sums import cite_sums, is_sum
from clew.agents.citing.check import (
    check_short_answer,
    find_framed,
    mark_sentences,
)
from clew.agents.citing.support import contains_answer, mentions_name
from clew.agents.core.evidence_page import EvidencePage, show_evidence
from clew.agents.core.messages import (
    CANDIDATE_LABEL,
    OWN_KNOWLEDGE_MARK,
    UNSUPPORTED_MARK,
    YES_NO,
    explain_not_written,
    is_unknown,
    localise,
    shorten_question,
)
from clew.agents.core.scratchpad import Note
from clew.agents.core.types import Answer, Mode
from clew.context import AnswerDelta, Context, EventListener, TraceStep
from clew.errors import ParseError
from clew.llm.chat import UNUSABLE_REPLY, Chat, Reply, Request, TextCallback
from clew.llm.fit_prompt import shorten_text
from clew.llm.json_repair import strip_thinking, unescape
from clew.llm.openai_api import estimate_tokens
from clew.llm.prompt import Prompt, PromptTemplate, read_sections
from clew.text.language import prompt_language
from clew.text.options import spell_out_choice, split_options
from clew.text.sentences import sentence_spans
from clew.types import Citation, Evidence

_MAX_ANSWER_TOKENS = 400  # tokens of an answer
_MAX_STYLE_CHARS = 2_000
_SENTENCE_ENDS = ("?", "!", "…", "。", "？", "！")  # after which no full stop is added
_MIN_PROSE_WORDS = 4  # a shorter reply is no sentence about the evidence
_MARKUP = "{[<"  # begins what was meant as JSON or as a tool's call
_SOURCE_MARK = re.compile(r"\s*\[(\d{1,3})\]")
_CODE_NOTE = "each step is read in a passage, code put them together"
_TEXT_START = re.compile(r'"text"\s*:\s*"')
_PARTIAL_TEXT_START = re.compile(r'"(?:t(?:e(?:x(?:t(?:"\s*(?::\s*)?)?)?)?)?)?\Z')
# The string body as far as it is complete: not half an escape.
_STRING_BODY = re.compile(
    r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\u(?![0-9a-fA-F]{0,3}\Z)|\\[^u])*', re.DOTALL
)
_HALF_SURROGATE = re.compile(r"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})\Z")
_LOOK_BACK_CHARS = 100  # characters in which a partial start may stand
_MAX_STREAMED_CHARS = 20_000  # characters that are streamed; only a looping model writes more


class CitedSentence(BaseModel, title="Sentence"):
    """One sentence and the passages it is from."""

    text: str
    sources: list[int] = Field(default_factory=list)


class WrittenAnswer(BaseModel, title="Written"):
    """What the model must answer."""

    enough: bool
    sentences: list[CitedSentence] = Field(default_factory=list)
    short: str = ""
    missing: str = ""


class ModelKnowledge(BaseModel, title="Known"):
    """What the model says when it has no documents."""

    answer: str
    short: str = ""


_INPUTS, _WITH_NOTES = {"question", "evidence"}, {"question", "evidence", "notes"}
WRITE = Prompt("answer", WrittenAnswer, _INPUTS, documents={"evidence"})
WRITE_GRAPH = Prompt("answer_graph", WrittenAnswer, _INPUTS, documents={"evidence"})
"""For a page that shows more than passages."""
CONCLUDE = Prompt("conclude", WrittenAnswer, _WITH_NOTES, documents={"evidence", "notes"})
CONCLUDE_GRAPH = Prompt(
    "conclude_graph", WrittenAnswer, _WITH_NOTES, documents={"evidence", "notes"}
)
OWN_KNOWLEDGE = Prompt("know", ModelKnowledge, {"question"})
STYLE = PromptTemplate("style", frozenset({"style"}))
"""Added to the instructions where the caller asks for a style."""


_SHOWN_SCORE = re.compile(r"\s*\(score \d+\.\d\d\)")  # as an evidence page writes it
NO_REPLY = "the model gave no usable answer"
"""What is missing where a model writes nothing that can be read."""
TOO_LONG = "the prompt is too long for the model, however little evidence is shown"
"""Why a model that works is not asked."""
UNSUPPORTED = "unsupported"
"""The hint of a reply that cannot be read, or whose answer no passage supports."""
LIST_BREAK = re.compile(r"\s*[,;、，；]\s*|\s+and\s+|和")
"""Between the parts of a short answer that lists several."""


async def write_answer(ctx: Context, evidence: Evidence, mode: Mode, notes: str = "") -> Answer:
    """Ask the model, then keep the sentences that the passages support."""
    notes = _cut_notes(ctx, notes, await ctx.room("answer"))
    page = await show_evidence(ctx, evidence, beside=notes, reply=_MAX_ANSWER_TOKENS)
    if not page.items:
        return await _answer_without_evidence(ctx, evidence, mode, "no passage was found")
    async with ctx.step("write", ctx.question) as step:
        prompt, inputs = WRITE_GRAPH if page.has_graph else WRITE, dict[str, str]()
        if notes:
            prompt = CONCLUDE_GRAPH if page.has_graph else CONCLUDE
            inputs["notes"] = notes
        reply = await ask_writer(step.ctx, prompt, page, _MAX_ANSWER_TOKENS, **inputs)
        step.output = (
            "no usable reply" if reply is None else reply.short or f"enough: {reply.enough}"
        )
    if reply is None:
        # An unparsable reply keeps the evidence.
        return replace(make_refusal(ctx, evidence, NO_REPLY), hints={UNSUPPORTED: 1.0})
    if mode == "reject" and not reply.enough:
        return make_refusal(
            ctx, evidence, reply.missing or "the passages do not contain the answer"
        )
    # Models copy the scores beside the facts, which no passage has.
    written = [
        (_SHOWN_SCORE.sub("", s.text), page.find_sources(s.sources)) for s in reply.sentences
    ]
    if not written and not is_unknown(reply.short):
        written = [(reply.short, [])]  # a model may name its answer and write no sentence
    cited, unsaid = await cite_written(ctx, written, page.passages, evidence.all_facts)
    cited, sums = cite_sums(ctx.question, cited)
    lines, citations = mark_sentences(ctx, cited, mode)
    if mode == "open" and not citations and (not reply.enough or not lines):
        missing = reply.missing or "the passages do not contain the answer"
        return await _answer_without_evidence(ctx, evidence, mode, missing)
    if not lines:
        missing = (
            reply.missing or unsaid or "no sentence of the answer is supported by the passages"
        )
        return replace(make_refusal(ctx, evidence, missing), hints={UNSUPPORTED: 1.0})
    note = unsaid or ("" if citations else "no sentence of this answer was found in the evidence")
    short = check_short_answer(ctx, reply.short, lines, page.passages, mode)
    stated = [f"{passage.title} {passage.text}" for passage in page.passages]
    stated += [item.text for item in page.items]
    stated += [line for line in lines if _SOURCE_MARK.search(line)]
    hints = {} if stands_in(ctx.question, reply.short, stated, citations) else {UNSUPPORTED: 1.0}
    answer = make_answer(ctx, evidence, " ".join(lines), citations, short, note)
    return replace(answer, hints=hints, computed=is_sum(short, sums))


def stands_in(
    question: str, short: str, texts: Sequence[str], citations: Sequence[Citation]
) -> bool:
    """Whether texts have an answer, or the parts of a list; without one a citation is enough.

    It is for a yes or no as well, which stands in no text. What the question itself names or offers
    need not stand in them.
    """
    bare = short.strip().rstrip(".。")
    if is_unknown(bare):
        return bool(citations)
    if bare.casefold() in YES_NO:
        return bool(citations)
    if spell_out_choice(question, bare):
        return True
    if mentions_name(bare, question):
        return True
    parts = [part for part in LIST_BREAK.split(bare) if part]
    return any(contains_answer(bare, text) for text in texts) or all(
        any(contains_answer(part, text) for text in texts) for part in parts
    )


def _cut_notes(ctx: Context, notes: str, window: int) -> str:
    """Cut notes to a third of the window, which the trace says: evidence must fit beside them."""
    cut = shorten_text(notes, window // 3)
    if cut != notes:
        sizes = f"notes from {estimate_tokens(notes)} to {estimate_tokens(cut)} tokens"
        ctx.trace.append(TraceStep("cut notes", "a third of the model's window", sizes, 0.0))
    return cut


async def ask_writer(
    ctx: Context, prompt: Prompt[WrittenAnswer], page: EvidencePage, tokens: int, **inputs: str
) -> WrittenAnswer | None:
    """Ask the model, streaming its sentences; None if what it replies cannot be read at all."""
    chat = ctx.chat("answer")
    assert chat is not None
    streaming = StreamingChat(StyledChat.wrap(chat, ctx), ctx.on_event)
    language, like = prompt_language(ctx.question), Request(max_tokens=tokens)
    try:
        reply = await prompt.ask(
            streaming,
            language=language,
            like=like,
            question=ctx.question,
            evidence=page,
            **inputs,
        )
    except ParseError as error:
        return read_prose(error.reply) or _read_name(error.reply, page)
    return drop_copied(reply, _example_answer(prompt.template, language), page)


@cache
def _example_answer(template: PromptTemplate, language: str) -> str:
    """Return the short answer of a prompt's worked example."""
    turns = read_sections(template, language)
    shown = (text for author, text in turns if author == "assistant")
    return next((WrittenAnswer.model_validate_json(text).short for text in shown), "")


def drop_copied(reply: WrittenAnswer, example: str, page: EvidencePage) -> WrittenAnswer:
    """Drop what names the answer of the example instead of one from the passages.

    Small models do that where a question is like the example's and nothing answers it.
    """
    if any(contains_answer(example, f"{p.title} {p.text}") for p in page.passages):
        return reply
    if contains_answer(example, reply.short):
        return WrittenAnswer(enough=False, missing=reply.missing)
    own = [one for one in reply.sentences if not contains_answer(example, one.text)]
    return reply.model_copy(update={"sentences": own})


def read_prose(reply: str) -> WrittenAnswer | None:
    """Read a reply in plain sentences as an answer; its marks, such as [2], are the sources.

    Each sentence is checked against the passages like any other. None for what is no prose.
    """
    text = _strip_reply(reply)
    if len(text.split()) < _MIN_PROSE_WORDS or text[0] in _MARKUP:
        return None
    sentences = [
        CitedSentence(text=_SOURCE_MARK.sub("", part).strip(), sources=_read_marks(part))
        for start, end in sentence_spans(text)
        if (part := text[start:end]).strip()
    ]
    short = next(filter(None, (find_framed(one.text) for one in reversed(sentences))), "")
    return WrittenAnswer(enough=True, sentences=sentences, short=short)


def _strip_reply(reply: str) -> str:
    return strip_thinking(reply).strip().strip("`").strip()


def _read_name(reply: str, page: EvidencePage) -> WrittenAnswer | None:
    """Read a reply of a few words as the short answer, if a passage has it; "No." may refuse."""
    name = _SOURCE_MARK.sub("", _strip_reply(reply)).strip(' .。!*`"“”')
    if not name or name[0] in _MARKUP or name.casefold() in YES_NO or is_unknown(name):
        return None
    if not any(contains_answer(name, passage.text) for passage in page.passages):
        return None
    return WrittenAnswer(enough=True, short=name)


def _read_marks(text: str) -> list[int]:
    return [int(number) for number in _SOURCE_MARK.findall(text)]


async def _answer_without_evidence(
    ctx: Context, evidence: Evidence, mode: Mode, missing: str
) -> Answer:
    """In open mode answer from the model's own knowledge, marked as such; refuse otherwise."""
    known = await ask_own_knowledge(ctx) if mode == "open" else None
    if known is None:
        return make_refusal(ctx, evidence, missing)
    note = f"not in the documents ({missing})"
    text = f"{known.answer.strip()} {localise(ctx.question, OWN_KNOWLEDGE_MARK)}"
    return make_answer(ctx, evidence, text, (), known.short.strip(), note)


async def ask_own_knowledge(ctx: Context) -> ModelKnowledge | None:
    """Ask the model without documents; None when it does not know."""
    async with ctx.step("own knowledge", ctx.question) as step:
        chat = step.ctx.chat("answer")
        assert chat is not None
        try:
            known = await OWN_KNOWLEDGE.ask(
                chat,
                language=prompt_language(ctx.question),
                like=Request(max_tokens=_MAX_ANSWER_TOKENS),
                question=ctx.question,
            )
        except UNUSABLE_REPLY as error:
            step.output = f"no usable reply: {error}"
            return None
        step.output = known.short or known.answer
        return None if is_unknown(known.answer) else known


def compose_answer(ctx: Context, evidence: Evidence, notes: Sequence[Note], short: str) -> Answer:
    """Compose an answer by code: the result, then each step with its citation."""
    known = [note for note in notes if note.has_answer]
    citations = list(dict.fromkeys(note.citation for note in known if note.citation))

    def marked(some: Sequence[Note]) -> str:
        numbers = sorted({citations.index(note.citation) + 1 for note in some if note.citation})
        return "".join(f"[{number}]" for number in numbers)

    # The step that has the answer supports it; a comparison rests on all its steps.
    supporting = [note for note in known if short in (note.answer, note.name)] or known
    unsupported = localise(ctx.question, UNSUPPORTED_MARK)
    lines = [f"{short} {marked(supporting) or unsupported}"]
    for note in known:
        asked, _ = split_options(note.question)
        line = f"- {asked} {note.answer} {marked([note]) or unsupported}"
        if line not in lines and len(known) > 1:
            lines.append(line)
    return replace(make_answer(ctx, evidence, "\n".join(lines), citations, short), plain=short)


def quote_chain(ctx: Context, evidence: Evidence, notes: Sequence[Note], short: str) -> Answer:
    """Compose without a model: a labelled candidate, and the sentence that supports each step."""
    citations = list(dict.fromkeys(note.citation for note in notes if note.citation))
    lines = [f"{CANDIDATE_LABEL} {short}"]
    for number, cited in enumerate(citations, start=1):
        answers = [
            f"{shorten_question(n.question)} {n.answer}" for n in notes if n.citation == cited
        ]
        lines.append(f"“{cited.quote}” [{number}] ({'; '.join(dict.fromkeys(answers))})")
    note = explain_not_written(ctx, _CODE_NOTE)
    return make_answer(ctx, evidence, "\n".join(lines), citations, short, note)


def make_answer(
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


def make_refusal(ctx: Context, evidence: Evidence, missing: str) -> Answer:
    """Make a refusal that says what was missing."""
    reason = localise(ctx.question, missing.strip().rstrip("."))
    return Answer(
        *(ctx.question, "", format_refusal(ctx.question, reason), "refused", (), evidence, (), 0.0),
        missing=reason,
    )


def format_refusal(question: str, missing: str) -> str:
    """Format a refusal in the language of the question."""
    stop = "" if missing.endswith(_SENTENCE_ENDS) else "."
    return localise(question, f"Refused: {missing}{stop}")


@dataclass(frozen=True)
class StyledChat:
    """Adds the style that the caller asks for to the instructions; the rules stay as they are."""

    inner: Chat
    note: str

    @classmethod
    def wrap(cls, chat: Chat, ctx: Context) -> Chat:
        """Return the chat, with the style of the question if it has one."""
        style = ctx.style.strip()[:_MAX_STYLE_CHARS]
        if not style:
            return chat
        (note,) = STYLE.render({"style": style}, prompt_language(ctx.question))
        return cls(chat, note.content)

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Send the request with the style at the end of its system message."""
        first, *rest = request.messages
        styled = replace(first, content=f"{first.content}\n\n{self.note}")
        return await self.inner(replace(request, messages=(styled, *rest)), on_text)


# -- streaming


@dataclass
class SentenceStream:
    """Incremental parser that returns the contents of the JSON's "text" strings."""

    _buffer: str = ""
    _in_string: bool = False
    _has_text: bool = False

    def feed(self, piece: str) -> str:
        """Return the text that the next piece adds."""
        self._buffer += piece
        pieces: list[str] = []
        while self._take_text(pieces) if self._in_string else self._find_text_start(pieces):
            pass
        return "".join(pieces)

    def _find_text_start(self, pieces: list[str]) -> bool:
        """Skip to the beginning of the next text, if it has arrived."""
        found = _TEXT_START.search(self._buffer)
        if found is None:
            partial = _PARTIAL_TEXT_START.search(
                self._buffer, max(0, len(self._buffer) - _LOOK_BACK_CHARS)
            )
            self._buffer = partial[0] if partial else ""
            return False
        if self._has_text:
            pieces.append(" ")
        self._buffer = self._buffer[found.end() :]
        self._in_string = self._has_text = True
        return True

    def _take_text(self, pieces: list[str]) -> bool:
        """Emit the text so far; half a surrogate pair waits for its other half."""
        found = _STRING_BODY.match(self._buffer)
        end = found.end() if found else 0
        closed = self._buffer[end : end + 1] == '"'
        if not closed and (half := _HALF_SURROGATE.search(self._buffer, 0, end)):
            end = half.start(1)
        pieces.append(unescape(self._buffer[:end]))
        self._buffer = self._buffer[end + closed :]
        self._in_string = not closed
        return closed


@dataclass(frozen=True, eq=False)
class StreamingChat:
    """Chat wrapper that emits the answer's sentences while the model writes its JSON."""

    inner: Chat
    listener: EventListener | None
    _sent: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Ask; stream only if there is a listener."""
        emit = self.listener
        if emit is None:
            return await self.inner(request, on_text)
        sentences, streamed = SentenceStream(), 0
        if self._sent:  # what was written could not be used; a retry begins on a new line
            emit(AnswerDelta("\n", restart=True))

        def listen(piece: str) -> None:
            nonlocal streamed
            text = sentences.feed(piece) if streamed < _MAX_STREAMED_CHARS else ""
            if text:
                self._sent.append(text)
                emit(AnswerDelta(text))
                streamed += len(text)

        return await self.inner(request, listen)
