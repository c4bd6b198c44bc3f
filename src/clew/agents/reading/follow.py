"""Follow a question along the graph: read a part of it, put the answer in its place, go on.

No grammar decides what the parts are. Around each linked name every longer piece of the question
is asked by itself, where passages mention the name; the reader's own score says which piece names
something ("director of film N"), and that answer then stands in the question instead of the piece.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from clew.agents.citing.support import has_title, mentions_name
from clew.agents.core.scratchpad import RecordingRetriever
from clew.agents.core.types import run_concurrently
from clew.agents.reading.spans import (
    Reading,
    answer_key,
    asked_words,
    read_passages,
    same_answer,
)
from clew.agents.rules.question_analysis import find_question_name_spans
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.retrieve.question import QUESTION_WORDS
from clew.text.dates import is_date
from clew.text.sentences import sentence_spans
from clew.types import Passage

_PREPOSITIONS = frozenset("of to from in by for with at on".split())
_WORD = re.compile(r"[\w’'.-]*\w")
_OWNS = re.compile(r"['’]s?\s+\w")
_BREAK = re.compile(r"[,;:?!]")
_RELATIVE = re.compile(r"\b(?:where|that|which|who|whom|whose|when)\b", re.IGNORECASE)
_MAX_PIECES = 3  # pieces on each side of a name
_MAX_CLAUSE_WORDS = 4  # words behind a name that end a clause about it
_MAX_ASKED = 6  # pieces of a question that are asked
_MAX_ASKED_LATER = 3  # of what is left of it behind a first step
_OPENING_CHARS = 600  # of the page about a name: what it is comes first
_MAX_NAME_WORDS = 8  # words of an answer that is put in the place of a piece
_MAX_PIECE_WORDS = 12
_NEAR = 2  # passages in which a piece is read: those about its name, else those that mention it
_MAX_NAMES = 2  # names of a question that are followed
_LAST = 2  # passages in which what is left to ask is read
_SETTLED = 0.9  # probability of what a chain still asked, beyond which it leads no further
_MIN_PROBABILITY = 0.2  # of the answer to a piece, to be put in its place


@dataclass(frozen=True, slots=True)
class Chain:
    """What is still asked, after the readings whose answers were put into the question."""

    question: str
    steps: tuple[Reading, ...] = ()

    @property
    def probability(self) -> float:
        """The product of the readings' probabilities."""
        product = 1.0
        for step in self.steps:
            product *= step.probability
        return product


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a question around a name, by its span."""

    start: int
    end: int
    name: str


@dataclass(frozen=True)
class Follower:
    """Extends chains by one reading each, and keeps the likeliest."""

    hops: int = 4
    """Answers that may be put into a question, one after the other."""
    beam: int = 2
    """Chains that are kept after each."""

    async def __call__(
        self, ctx: Context, retriever: RecordingRetriever, passages: Sequence[Passage]
    ) -> list[tuple[Chain, list[Reading]]]:
        """Return chains, likeliest first, each with the readings of what is left to ask.

        What does not wait for each other is read at the same time.
        """
        found: list[tuple[Chain, list[Reading]]] = []
        grown = await extend(ctx, Chain(ctx.question), passages)
        for hop in range(1, self.hops + 1):
            chains = _choose_likeliest(grown, self.beam)
            reached = await run_concurrently(
                [self._reach(ctx, retriever, one, passages, hop) for one in chains]
            )
            found += [(chain, last) for chain, (last, _) in zip(chains, reached, strict=True)]
            grown = [new for _, more in reached for new in more]
        return found

    async def _reach(
        self,
        ctx: Context,
        retriever: RecordingRetriever,
        chain: Chain,
        passages: Sequence[Passage],
        hop: int,
    ) -> tuple[list[Reading], list[Chain]]:
        """Read what a chain still asks, and extend it where that leaves something open."""
        bridge, here = chain.steps[-1].text, list(passages)
        if not any(has_title(passage, bridge) for passage in here):
            here = await _look_up(ctx, retriever, chain, here)
        about = choose_near(bridge, here)
        near = {passage.id for passage in about}
        last = [*about, *(p for p in here if p.id not in near)][:_LAST]
        readings = await read_passages(ctx, chain.question, last)
        settled = bool(readings) and readings[0].probability >= _SETTLED
        longer = [] if settled or hop == self.hops else await extend(ctx, chain, here)
        return readings, longer


async def _look_up(
    ctx: Context, retriever: RecordingRetriever, chain: Chain, known: Sequence[Passage]
) -> list[Passage]:
    """Return the page about what a chain has reached, else what mentions it, with what is known.

    What mentions it nearest to the question is found in a tenth of the time of a retrieval.
    """
    bridge = chain.steps[-1].text
    page = await retriever.find_page(ctx, bridge)
    if not any(has_title(passage, bridge) for passage in page):
        page = await retriever.find_mentions(ctx, bridge, chain.question)
    if page:
        return list({passage.id: passage for passage in (*page, *known)}.values())
    return list((await retriever(ctx, chain.question)).evidence.chunks)


def _choose_likeliest(chains: Sequence[Chain], most: int) -> list[Chain]:
    ranked = sorted(chains, key=lambda chain: -chain.probability)
    return _drop_same(ranked)[:most]


def _drop_same(chains: Sequence[Chain]) -> list[Chain]:
    first: dict[str, Chain] = {}
    for chain in chains:
        first.setdefault(answer_key(chain.question), chain)
    return list(first.values())


async def extend(ctx: Context, chain: Chain, passages: Sequence[Passage]) -> list[Chain]:
    """Ask each piece of the question around its names, and put likely answers in its place."""
    most = _MAX_ASKED_LATER if chain.steps else _MAX_ASKED
    pieces = find_pieces(ctx, chain.question)[:most]
    asked = [
        read_passages(
            ctx, ask_piece(chain.question, piece), choose_near(piece.name, passages), most=2
        )
        for piece in pieces
    ]
    found = []
    for piece, readings in zip(pieces, await run_concurrently(asked), strict=True):
        for reading in readings:
            named = narrow_to_name(ctx, reading)
            if named is not None and leads_on(chain.question, piece, named.text):
                filled = put_in_place(chain.question, piece, named.text)
                found.append(Chain(filled, (*chain.steps, named)))
    return found


def narrow_to_name(ctx: Context, reading: Reading) -> Reading | None:
    """Return a likely reading as the one name it consists of, "poet N" as N; else None."""
    if reading.probability < _MIN_PROBABILITY:
        return None
    if any(char.isdigit() for char in reading.text) and is_date(reading.text):
        return reading
    spans = find_question_name_spans(ctx.view, reading.text)
    start, end = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
    words, all_words = len(reading.text[start:end].split()), len(reading.text.split())
    if 2 * words < all_words or not 0 < words <= _MAX_NAME_WORDS:
        return None
    first = reading.start + start
    return replace(reading, text=reading.text[start:end], start=first, end=first + end - start)


def choose_near(name: str, passages: Sequence[Passage]) -> list[Passage]:
    """Return the opening of the page about a name, else the first passages that mention it."""
    about = next((p for p in passages if has_title(p, name)), None)
    if about is not None:
        return [cut_to_opening(about)]
    return [p for p in passages if mentions_name(name, p.text)][:_NEAR]


def cut_to_opening(passage: Passage) -> Passage:
    """Return a passage up to the end of the sentence in which its opening ends."""
    ends = (end for _, end in sentence_spans(passage.text) if end >= _OPENING_CHARS)
    text = passage.text[: next(ends, None)]
    return replace(passage, text=text, end=passage.start + len(text))


def ask_piece(question: str, piece: Piece) -> str:
    """Ask for what a piece of a question names."""
    text = question[piece.start : piece.end].strip()
    article = "" if text.startswith(piece.name) else "the "
    return f"Who or what is {article}{text}?"


def put_in_place(question: str, piece: Piece, answer: str) -> str:
    """Put an answer in the place of a piece, with the article before it."""
    before = re.sub(r"\b(?:the|an?)\s+$", "", question[: piece.start], flags=re.IGNORECASE)
    return f"{before}{answer}{question[piece.end :]}"


def find_pieces(ctx: Context, question: str) -> list[Piece]:
    """Return the pieces around each name that add at least one word of content to it.

    Where a clause about the name begins before it ("the city where N was born"), the piece goes on
    to the clause's end behind the name.
    """
    spans = find_question_name_spans(ctx.view, question)[:_MAX_NAMES]
    found: list[list[Piece]] = []
    for start, end in spans:
        name = question[start:end]
        others = [span for span in spans if span != (start, end)]
        ends = _find_clause_ends(question, end, others)
        pieces = []
        owns = _OWNS.match(question, end) is not None  # "the death of N's father" is not N's
        for left in () if owns else _find_starts(question, start, others):
            clause = ends and _opens_clause(question[left:start])
            pieces += [Piece(left, right, name) for right in (ends if clause else [end])]
        found.append(pieces)
        found.append([Piece(start, right, name) for right in _find_ends(question, end, others)])
    return [one for row in zip_longest(*found) for one in row if one is not None]


def _opens_clause(before: str) -> bool:
    """Whether a name is the subject of a clause: "city where N", "the company N" (is part of)."""
    words = before.split()
    noun = bool(words) and _is_content(words[-1]) and not words[-1].endswith("ed")
    return noun or _RELATIVE.search(before) is not None


def _find_clause_ends(question: str, end: int, others: Sequence[tuple[int, int]]) -> list[int]:
    """Return where a clause about a name may end: at a mark, or behind its first word of content.

    A preposition that nothing follows belongs to it: "is part of", "belongs to".
    """
    stop = _BREAK.search(question, end)
    limit = min([stop.start() if stop else len(question), *(a for a, _ in others if a > end)])
    words = list(_WORD.finditer(question, end, limit))
    found = [words[-1].end()] if 0 < len(words) <= _MAX_CLAUSE_WORDS else []
    first = next((at for at, word in enumerate(words) if _is_content(word[0])), _MAX_CLAUSE_WORDS)
    if first < _MAX_CLAUSE_WORDS:
        after = words[first + 1 : first + 3]
        stranded = after and after[0][0].lower() in _PREPOSITIONS
        whole = stranded and (len(after) == 1 or _is_content(after[1][0]))
        found.append(after[0].end() if whole else words[first].end())
    return list(dict.fromkeys(found))


def _find_starts(question: str, start: int, others: Sequence[tuple[int, int]]) -> list[int]:
    """Return where longer pieces may begin: at words of content before a name."""
    found: list[int] = []
    words = [match for match in _WORD.finditer(question, 0, start)]
    opening = _find_opening(question)
    for count, word in enumerate(reversed(words), start=1):
        inside = any(a <= word.start() < b for a, b in others)
        if inside or count > _MAX_PIECE_WORDS or word.start() < opening:
            break
        if _BREAK.search(question, word.end(), start):
            break
        if _is_content(word[0]):
            found.append(word.start())
    return found[:_MAX_PIECES]


def _find_ends(question: str, end: int, others: Sequence[tuple[int, int]]) -> list[int]:
    """Return where longer pieces may end: after words of content behind a name."""
    found: list[int] = []
    for count, word in enumerate(_WORD.finditer(question, end), start=1):
        inside = any(a <= word.start() < b for a, b in others)
        if inside or count > _MAX_PIECE_WORDS or _BREAK.search(question, end, word.start()):
            break
        if _is_content(word[0]):
            found.append(word.end())
    return found[:_MAX_PIECES]


def _find_opening(question: str) -> int:
    """Return where the question's own words end: "In which city was"."""
    opening = table_for(question).question_words.search(question)
    return opening.end() if opening and opening.start() < len(question) / 2 else 0


def _is_content(word: str) -> bool:
    key = word.lower().strip("'’.-")
    return len(key) > 1 and key not in QUESTION_WORDS


def leads_on(question: str, piece: Piece, text: str) -> bool:
    """Whether the answer to a piece is a new thing, and the question still asks something of it."""
    if not any(char.isupper() or char.isdigit() for char in text):
        return False
    if same_answer(text, piece.name) or answer_key(text) in answer_key(question):
        return False
    rest = question[: piece.start] + " " + question[piece.end :]
    return bool(asked_words(rest))
