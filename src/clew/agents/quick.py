"""The agent without a model: it reads spans, follows names from page to page, and quotes.

The span reader's probabilities are all that decides. It reads the question in the passages found,
and pieces of the question around its names ("the director of N") in the pages about them; what a
piece names then stands in the question in its place, up to four times. The answer with the
likeliest chain of readings is named, with the sentences it was read in. Where no answer is likely,
none is named: the closest passages are quoted.
"""

import asyncio
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.agents.base import Answer, Mode
from clew.agents.cite import cite_span, content_words
from clew.agents.confidence import DEFAULT_THRESHOLD, judge, load_model
from clew.agents.messages import CLOSEST, PERHAPS, UNSURE, localise
from clew.agents.tools import Toolbox
from clew.agents.writing import refuse
from clew.context import Context
from clew.index.view import View
from clew.retrieve.linking.link_names import NameLink, link_names
from clew.retrieve.pack import fetch_evidence
from clew.text.dates import is_before, is_date, parse_date
from clew.text.names import Tokens, name_key, strip_disambiguation, tokenize
from clew.text.quantities import parse_quantity
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words
from clew.types import Citation, Evidence, Found, Hit, Passage

_ASKED = 6  # pieces of the question that are asked at first
_ASKED_LATER = 3  # of what is left of it behind a first step
_PIECE_WORDS = 3  # words of content on either side of a name at which a piece may end
_OPENING_CHARS = 600  # of the page about a name: what it is comes first
_LIKELY = 0.01  # probability of what a piece names, to be put in its place
_SETTLED = 0.9  # probability beyond which nothing more is read
_MAX_NAME_WORDS = 8
_MAX_SPAN_CHARS = 160
_QUOTED = 3  # of the closest passages
_ASK_DATE, _ASK_NUMBER = "When: ", "How many: "
# The words that say which of two dates or numbers is meant.
_LESS = frozenset(
    "first earlier earliest older oldest before less least fewer smaller lower".split()
)
_MORE = frozenset(
    "later latest last younger youngest recently more most larger largest bigger higher".split()
)
_BETWEEN = 3  # words between two names that are compared
_TEMPERED = 0.25  # root of a chain's probability, which is too sure of itself
_TRIMMED = " \t\n,;:.!?\"'“”‘’"


@dataclass(frozen=True, slots=True)
class Reading:
    """A span that was read in a passage, and the probability that it answers what was asked."""

    passage: Passage
    start: int
    end: int
    chance: float

    @property
    def text(self) -> str:
        """The span, on one line."""
        return " ".join(self.passage.text[self.start : self.end].split())

    def cite(self) -> Citation:
        """Cite the sentence around the span."""
        inside = [
            span
            for span in sentence_spans(self.passage.text)
            if span[0] < self.end and self.start < span[1]
        ]
        first = min((start for start, _ in inside), default=self.start)
        last = max((end for _, end in inside), default=self.end)
        return cite_span(self.passage, min(first, self.start), max(last, self.end))


@dataclass(frozen=True, slots=True)
class Chain:
    """What is still asked, behind readings whose answers were put into the question."""

    question: str
    steps: tuple[Reading, ...] = ()
    chosen: str = ""
    """Which of two things compared is the answer."""

    @property
    def answer(self) -> str:
        """What the chain ends in."""
        return self.chosen or self.steps[-1].text

    @property
    def chance(self) -> float:
        """The product of the probabilities."""
        return math.prod(step.chance for step in self.steps)

    def then(self, reading: Reading, question: str = "") -> "Chain":
        """Return the chain with one more reading."""
        return Chain(question or self.question, (*self.steps, reading))


@dataclass(frozen=True)
class Quick:
    """Answers without a model."""

    passages: int = 8
    read: int = 4
    """Passages in which the question itself is read."""
    hops: int = 4
    """Readings of the longest chain."""
    beam: int = 2
    """Chains that are followed at each hop."""
    least: float = 0.12
    """The confidence from which an answer is named; from .5 it counts as told."""

    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        """Name what is read with enough confidence; else quote the closest passages, or refuse."""
        found = await tools.search(ctx.question, most=self.passages)
        if not found.chunks:
            return refuse(ctx, tools.evidence(), UNSURE)
        chains = []
        if ctx.reader is not None and ctx.reader.reads(ctx.question):
            chains = await self.compare(ctx) or await self.find_chains(ctx, found.chunks)
        if chains:
            answer = name_answer(ctx, chains[0], found)
            sure = judge(answer, await load_model(ctx.key_values)).confidence
            if sure >= DEFAULT_THRESHOLD:
                return answer
            if sure >= self.least:
                return replace(answer, answer=f"{localise(ctx.question, PERHAPS)} {answer.answer}")
        return quote_closest(ctx, found, mode)

    async def find_chains(self, ctx: Context, passages: Sequence[Passage]) -> list[Chain]:
        """Return chains that end in an answer, the likeliest first."""
        read = await read_spans(ctx, ctx.question, passages[: self.read])
        ended = [Chain(ctx.question).then(one) for one in read]
        open_chains = await extend(ctx, Chain(ctx.question), passages)
        for hop in range(1, self.hops):
            likeliest = sorted(open_chains, key=lambda one: -one.chance)[: self.beam]
            open_chains = []
            for chain in likeliest:
                bridge = chain.steps[-1].text
                pages = await find_pages(ctx, bridge) or [chain.steps[-1].passage]
                near = [*pages, *(p for p in passages if mentions(p, bridge))][:2]
                last = await read_spans(ctx, chain.question, near)
                ended += [chain.then(one) for one in last]
                if not is_settled(ended[-len(last) :]) and hop + 1 < self.hops:
                    open_chains += await extend(ctx, chain, near)
        new = [one for one in ended if name_key(one.answer) not in name_key(ctx.question)]
        return sorted(new or ended, key=lambda one: -one.chance)

    async def compare(self, ctx: Context) -> list[Chain]:
        """Return which of the last two names in a question has the earlier or smaller value.

        Or the later or larger one, as its word of comparison says; none where a value is missing.
        """
        t = tokenize(ctx.question)
        least = [key in _LESS for key in t.keys if key in _LESS | _MORE]
        links = link_names(ctx.view, ctx.question, t)[-2:]
        if not least or len(links) < 2 or links[1].first - links[0].last > _BETWEEN:
            return []
        start, end = t.starts[links[0].first], t.ends[links[1].last - 1]
        names = [ctx.question[t.starts[x.first] : t.ends[x.last - 1]] for x in links]
        frame = ctx.question[:start], ctx.question[end:]
        one, other = [await read_values(ctx, name, frame) for name in names]
        pairs = [
            (a, b, order)
            for a, b in zip(one, other, strict=True)
            if a and b and (order := order_values(a.chain.answer, b.chain.answer))
        ]
        if not pairs:
            return []
        a, b, order = max(pairs, key=lambda pair: pair[0].chance * pair[1].chance)
        name = names[(order < 0) != least[0]]
        return [Chain(ctx.question, (*a.chain.steps, *b.chain.steps), name)]


@dataclass(frozen=True, slots=True)
class Value:
    """A chain that ends in a date or number; its readings have their share among their like."""

    chain: Chain
    chance: float
    """The reader's own probability, which is low: the question does not ask for a value."""


async def read_values(
    ctx: Context, name: str, frame: tuple[str, str]
) -> tuple[Value | None, Value | None]:
    """Read a date or a number for a name on its own page, and on that of a name it leads to."""
    pages = await find_pages(ctx, name)
    if not pages:
        return None, None
    question = name.join(frame)
    here = await read_value(ctx, Chain(question), pages)
    names = [
        named
        for one in await read_spans(ctx, question, pages)
        if (named := narrow_to_name(ctx.view, one, 0.0)) is not None
        and name_key(named.text) not in name_key(question)
    ]
    for named in names:
        if further := await find_pages(ctx, named.text):
            step = Chain(question).then(share_chance(named, names), named.text.join(frame))
            return here, await read_value(ctx, step, further)
    return here, None


async def read_value(ctx: Context, chain: Chain, pages: Sequence[Passage]) -> Value | None:
    """Read the likeliest date, or else number, for what a chain asks."""
    for asked, is_value in ((_ASK_DATE, is_date), (_ASK_NUMBER, parse_quantity)):
        read = await read_spans(ctx, asked + chain.question, pages)
        values = [one for one in read if is_value(one.text)]
        if values:
            return Value(chain.then(share_chance(values[0], values)), values[0].chance)
    return None


def share_chance(one: Reading, others: Sequence[Reading]) -> Reading:
    """Return a reading with its probability given that one of these is right."""
    return replace(one, chance=one.chance / max(sum(o.chance for o in others), 1e-9))


def order_values(one: str, other: str) -> int:
    """Return -1 if a date or number is before another, 1 if it is behind, 0 if nothing tells."""
    days = parse_date(one), parse_date(other)
    if days[0] and days[1]:
        before = is_before(days[0], days[1])
        return 0 if before is None else (-1 if before else 1)
    sizes = parse_quantity(one), parse_quantity(other)
    if sizes[0] and sizes[1] and sizes[0].dimension == sizes[1].dimension:
        return int(np.sign(sizes[0].amount - sizes[1].amount))
    return 0


def is_settled(chains: Sequence[Chain]) -> bool:
    """Whether a chain is so likely that nothing more needs to be read."""
    return any(chain.chance >= _SETTLED for chain in chains)


async def read_spans(
    ctx: Context, question: str, passages: Sequence[Passage], most: int = 4
) -> list[Reading]:
    """Read a question in each passage alone; the best spans of all, best first."""
    if ctx.reader is None or not passages:
        return []
    texts, titles = [p.text for p in passages], [p.title for p in passages]
    found = await asyncio.to_thread(ctx.reader.read, question, texts, titles=titles, most=most)
    readings = []
    for span in found:
        start, end = trim(texts[span.passage], span.start, span.end)
        if 0 < end - start <= _MAX_SPAN_CHARS:
            chance = float(1 / (1 + np.exp(-np.clip(span.score, -30, 30))))
            readings.append(Reading(passages[span.passage], start, end, chance))
    return readings


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without marks and blanks at its ends."""
    while start < end and text[start] in _TRIMMED:
        start += 1
    while start < end and text[end - 1] in _TRIMMED:
        end -= 1
    return start, end


async def extend(ctx: Context, chain: Chain, passages: Sequence[Passage]) -> list[Chain]:
    """Ask pieces of what a chain still asks, and put likely answers in their place."""
    question, t = chain.question, tokenize(chain.question)
    extended = []
    for link, first, last in find_pieces(ctx.view, question, t)[
        : _ASKED_LATER if chain.steps else _ASKED
    ]:
        name = question[t.starts[link.first] : t.ends[link.last - 1]]
        piece = question[t.starts[first] : t.ends[last - 1]]
        pages = await find_pages(ctx, name) or [p for p in passages if mentions(p, name)]
        asked = f"Who or what is {'' if first == link.first else 'the '}{piece}?"
        for one in await read_spans(ctx, asked, pages[:1], most=2):
            named = narrow_to_name(ctx.view, one)
            if named is None or name_key(named.text) in name_key(question):
                continue
            begin = t.starts[first - 1 if first and t.keys[first - 1] == "the" else first]
            rest = question[:begin], question[t.ends[last - 1] :]
            if content_words(" ".join(rest)):
                extended.append(chain.then(named, named.text.join(rest)))
    return extended


def find_pieces(view: View, question: str, t: Tokens) -> list[tuple[NameLink, int, int]]:
    """Return pieces of a question: each name with words before it, or behind, up to the next."""
    links = link_names(view, question, t)
    taken = {at for link in links for at in range(link.first, link.last)}
    pieces: list[tuple[NameLink, int, int]] = []
    for link in links:
        before = count_out(t, range(link.first - 1, 0, -1), taken)
        behind = count_out(t, range(link.last, len(t)), taken)
        pieces += [(link, first, link.last) for first in before]
        pieces += [(link, link.first, last + 1) for last in behind]
    return pieces


def count_out(t: Tokens, places: Iterable[int], taken: set[int]) -> list[int]:
    """Return the first places that hold a word of content, up to the next name."""
    found: list[int] = []
    for at in places:
        if at in taken or len(found) == _PIECE_WORDS:
            break
        if t.keys[at] in content_words(t.keys[at]) and len(t.keys[at]) > 3:
            found.append(at)
    return found


def narrow_to_name(view: View, reading: Reading, likely: float = _LIKELY) -> Reading | None:
    """Return a likely reading as the one name in it, "poet N" as N; None where there is none."""
    if reading.chance < likely:
        return None
    text = reading.passage.text[reading.start : reading.end]
    t = tokenize(text)
    links = link_names(view, text, t)
    best = max(links, key=lambda link: link.last - link.first, default=None)
    if best is None or 2 * (best.last - best.first) < len(t):
        return None
    if best.last - best.first > _MAX_NAME_WORDS:
        return None
    begin = reading.start
    return replace(reading, start=begin + t.starts[best.first], end=begin + t.ends[best.last - 1])


async def find_pages(ctx: Context, name: str) -> list[Passage]:
    """Return the opening of the page about a name, where the graph knows one."""
    view = ctx.view
    entities = view.find_by_name_or_alias(name).astype(np.int64)
    owners = view.links("owners")
    if not len(entities):
        return []
    _, edges = owners.edges_of(entities)
    if not len(edges):
        return []
    best = int(owners.columns[edges[int(np.argmax(owners.weights[edges]))]])
    fetched = await fetch_evidence(ctx, Found(chunks=(Hit(best, 1.0, "page"),)))
    return [cut_to_opening(one) for one in fetched.chunks]


def cut_to_opening(passage: Passage) -> Passage:
    """Return a passage up to the end of the sentence in which its opening ends."""
    ends = (end for _, end in sentence_spans(passage.text) if end >= _OPENING_CHARS)
    text = passage.text[: next(ends, None)]
    return replace(passage, text=text, end=passage.start + len(text))


def mentions(passage: Passage, name: str) -> bool:
    """Whether a passage or its title has a name."""
    said = f" {name_key(f'{passage.title} {passage.text}')} "
    return f" {name_key(strip_disambiguation(name))} " in said


def name_answer(ctx: Context, chain: Chain, found: Evidence) -> Answer:
    """Name the end of a chain, and quote where each of its steps was read."""
    short, readings = chain.answer, chain.steps
    sources = [one.passage for one in readings]
    citations = tuple(dict.fromkeys(one.cite() for one in readings))
    said = " ".join([*(p.title for p in sources), *(c.quote for c in citations)])
    relevance = measure_said(ctx.view, ctx.question, said)
    evidence = replace(found, chunks=tuple({p.id: p for p in (*sources, *found.chunks)}.values()))
    text = f"{short}\n{format_quotes(citations)}"
    return Answer(
        *(ctx.question, "", text, "answered", citations, evidence),
        candidate=short,
        signals={"read": chain.chance**_TEMPERED, "relevance": relevance},
    )


def measure_said(view: View, question: str, text: str) -> float:
    """Return the share of a question's words that a text has; rare words count more."""
    said, count = set(split_words(text)), view.count("chunk")
    weights = {
        word: math.log1p(count / (0.5 + len(view.bm25.chunks_with(word))))
        for word in content_words(question)
    }
    known = sum(weight for word, weight in weights.items() if word in said)
    return known / max(sum(weights.values()), 1e-9)


def quote_closest(ctx: Context, found: Evidence, mode: Mode) -> Answer:
    """Refuse; in open mode show the closest passages, too."""
    refused = refuse(ctx, found, UNSURE)
    if mode == "reject":
        return refused
    near = (best_sentence(ctx.question, one) for one in found.chunks[:_QUOTED])
    asked = content_words(ctx.question)
    citations = tuple(one for one in near if asked & set(split_words(one.quote)))
    if not citations:
        return refused
    text = f"{localise(ctx.question, CLOSEST)}\n{format_quotes(citations)}"
    return replace(refused, answer=text, citations=citations)


def format_quotes(citations: Sequence[Citation]) -> str:
    """Write each quote on a line of its own, with its number."""
    return "\n".join(f"{' '.join(c.quote.split())} [{n}]" for n, c in enumerate(citations, 1))


def best_sentence(question: str, passage: Passage) -> Citation:
    """Cite the sentence of a passage that shares most with a question; of several the longest."""
    asked = content_words(question)
    asked = asked - set(split_words(passage.title)) or asked
    spans = sentence_spans(passage.text) or [(0, len(passage.text))]
    best = max(
        spans, key=lambda s: (len(asked & set(split_words(passage.text[slice(*s)]))), s[1] - s[0])
    )
    return cite_span(passage, *best)
