"""Answer one question by reading: passages alone, together, along chains; one model ranks."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from clew.agents.citing.support import mentions_name
from clew.agents.core.confidence import JUDGED, LogisticModel, format_signals, load_models
from clew.agents.core.scratchpad import Note, RecordingRetriever
from clew.agents.core.types import run_both
from clew.agents.reading.choose import (
    Candidate,
    contradicts_kind,
    describe_candidate,
    gather_candidates,
    measure_coverage,
    measure_names,
    squash_scores,
)
from clew.agents.reading.denied import is_denied
from clew.agents.reading.follow import Chain, Follower
from clew.agents.reading.judged import (
    Place,
    can_judge,
    find_bridge,
    judge_texts,
    say_with_places,
)
from clew.agents.reading.measured import measures_other
from clew.agents.reading.restrictions import Told, find_skipped, is_contradicted
from clew.agents.reading.spans import Reading, answer_key, read_passages, read_together, same_answer
from clew.agents.reading.values import move_to_condition, tells_other_end
from clew.agents.rules.question_analysis import find_subject_names
from clew.agents.rules.table import table_for
from clew.context import Context, TraceStep
from clew.text.names import name_key, strip_disambiguation
from clew.types import Passage

_FIRST = 3  # passages that are read for the question itself; all of them where nothing is followed
_TOGETHER = 2  # passages that are read in one window
_MAX_CANDIDATES = 12  # that are ranked
_AT_ONCE = 2  # candidates that the scorer judges before it is asked whether another may win
# What speaks for a candidate that the confidence of the answer goes by as well.
_KEPT_SIGNALS = ("together", "chain", "fits", "said", "noun", "bridge", "repeats", "astray")
_SHOWN = 3  # candidates and chains that the trace shows
_SURE = 0.9  # probability of a direct reading beyond which no chain is followed
_SURE_COVERAGE = 0.5  # share of the question that it must cover for that
_LEADS_TO = "leads to"  # what is noted of a sentence that mentions the page with the answer
_LINE = re.compile(r"[^\n]+")
_SMALL_WORD = re.compile(r"\b[a-z]+\b")
# "Town Three road to Town Four": a name, words between, and no mark at the end.
_STATEMENT = re.compile(r"(?=[^\Wa-z_])[^\n]* [a-z][^\n]* [^\n]*[^\s.!?:;,]\s*\Z")


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate, what speaks for it, and the probability that follows from it."""

    candidate: Candidate
    signals: dict[str, float]
    probability: float
    bridge: Reading | None = None
    """Where another passage leads to the one that was read, if it was read together with others."""
    said: str = ""
    """What the scorer judges."""

    def notes(self, question: str) -> list[Note]:
        """Return a note for each reading, the last one for the question itself."""
        readings = self.candidate.readings
        if self.bridge is not None:
            readings = (self.bridge, *readings)
        asked = [*(r.question for r in readings[:-1]), question]
        cited = [reading.cite() for reading in readings]
        return [
            Note(text, reading.text, citation.quote, citation)
            for text, reading, citation in zip(asked, readings, cited, strict=True)
        ]


@dataclass(frozen=True)
class QuestionReader:
    """Reads one question in what a retriever finds for it."""

    retriever: RecordingRetriever
    rank: LogisticModel
    follow: Follower | None = Follower()
    named_only: bool = False
    """Read at once only what mentions a name of the question; the rest is reached by following."""
    keeps: Callable[[Candidate], bool] | None = None
    """Which candidates may answer; None: all."""
    judge_all: bool = False
    """Let the scorer judge also those that cannot win, to fit the model that ranks them."""

    async def __call__(self, ctx: Context, question: str) -> list[RankedCandidate]:
        """Return the candidates, best first."""
        async with ctx.step("read spans", question) as step:
            asking = step.ctx.with_question(question)
            retrieval = await self.retriever(asking, question)
            found = await self.read(asking, retrieval.evidence.chunks)
            step.output = "; ".join(
                f"{one.candidate.text} ({one.probability:.2f})" for one in found[:3]
            )
        return found

    async def read(self, ctx: Context, passages: Sequence[Passage]) -> list[RankedCandidate]:
        """Read the context's question in passages and along the chains they begin."""
        names = find_subject_names(ctx.view, ctx.question)
        passages = split_statements(ctx.question, names, passages)
        written_out = table_for(ctx.question).write_out(ctx.question)
        near = choose_mentioning(names, passages) if self.named_only else passages
        read = await read_passages(ctx, ctx.question, near[:_FIRST])
        direct = [move_to_condition(names, one) for one in read]
        retrieved = (r.evidence.chunks for r in self.retriever.book.retrievals)
        pages = find_pages([*passages, *chain.from_iterable(retrieved)])
        if _may_settle(ctx.question, names, direct):
            found = gather_candidates(direct, [], [])
            ranked = await self._rank(ctx, names, found, pages, passages)
            if _is_settled(ranked, direct):
                return ranked
        together: list[Reading] = []
        chains: list[tuple[Chain, list[Reading]]] = []
        beside = read_together(ctx, ctx.question, passages[:_TOGETHER])
        if self.follow is None:
            more = read_passages(ctx, ctx.question, near)
            together, direct = await run_both(beside, more)
        else:
            following = self.follow(ctx.with_question(written_out), self.retriever, passages)
            together, chains = await run_both(beside, following)
            _trace_chains(ctx, chains)
        candidates = gather_candidates(direct, together, chains)
        retrieved = (r.evidence.chunks for r in self.retriever.book.retrievals)
        pages = find_pages([*passages, *chain.from_iterable(retrieved)])
        return await self._rank(ctx, names, candidates, pages, passages)

    async def _rank(
        self,
        ctx: Context,
        names: Sequence[str],
        candidates: Sequence[Candidate],
        pages: Mapping[str, Passage],
        passages: Sequence[Passage],
    ) -> list[RankedCandidate]:
        """Rank the candidates that may answer."""
        rivals = describe_rivals(ctx.question, names, candidates, pages, passages)
        kept = [one for one in rivals if self.keeps is None or self.keeps(one.candidate)]
        return await rank_rivals(ctx, self.rank, kept, judge_all=self.judge_all)


def choose_mentioning(names: Sequence[str], passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages that mention one of the names; all of them where none does."""
    texts = ((passage, f"{passage.title} {passage.text}") for passage in passages)
    found = [p for p, text in texts if any(mentions_name(name, text) for name in names)]
    return found or list(passages)


def split_statements(
    question: str, names: Sequence[str], passages: Sequence[Passage]
) -> list[Passage]:
    """Take of passages that are lines of statements, such as rows of a graph, the named lines.

    Beside "A road to B", the line "C road to D" says nothing about A.
    """
    found: list[Passage] = []
    cut: list[Passage] = []
    for passage in passages:
        lines = list(_LINE.finditer(passage.text))
        if passage.title or passage.heading or not _are_statements(lines):
            found.append(passage)
            continue
        first = passage.start
        cut += [
            replace(passage, text=line[0], start=first + line.start(), end=first + line.end())
            for line in lines
            if any(mentions_name(name, line[0]) for name in names)
        ]
    return _choose_direction(question, names, cut) + found or list(passages)


def _choose_direction(
    question: str, names: Sequence[str], lines: Sequence[Passage]
) -> list[Passage]:
    """Of lines with the same relation keep those that have the name on the side asked about.

    "Who has a road to B" is told by "A road to B", "where does B lead" by "B road to C".
    """
    asked, keys = f" {name_key(question)} ", [name_key(name) for name in names]
    before = [f" {asked.partition(f' {key} ')[0].split(' ')[-1]} {key} " for key in keys]
    told = [line for line in lines if any(one in f" {name_key(line.text)} " for one in before)]
    if not told:
        told = [
            one for one in lines if name_key(one.text).startswith(tuple(f"{key} " for key in keys))
        ]
    said = {tuple(_SMALL_WORD.findall(line.text)) for line in told}
    return [one for one in lines if one in told or tuple(_SMALL_WORD.findall(one.text)) not in said]


def _are_statements(lines: Sequence[re.Match[str]]) -> bool:
    return len(lines) > 1 and all(_STATEMENT.match(line[0]) for line in lines)


def find_pages(passages: Sequence[Passage]) -> dict[str, Passage]:
    """Return the passage that begins each page, by its title's key."""
    found: dict[str, Passage] = {}
    for passage in passages:
        if passage.start == 0:
            found.setdefault(answer_key(strip_disambiguation(passage.title)), passage)
    return found


@dataclass(frozen=True, slots=True)
class Rival:
    """A candidate with what speaks for it, before the scorer has judged it."""

    candidate: Candidate
    signals: dict[str, float]
    is_other: bool
    """Whether it is plainly of another kind, or said of something else: it comes last."""
    said: str
    """What the scorer judges."""
    bridge: Reading | None = None

    def rank(self, rank: LogisticModel, judged: float | None) -> RankedCandidate:
        """Return it with its probability, given the scorer's opinion."""
        signals = self.signals if judged is None else {**self.signals, JUDGED: judged}
        return RankedCandidate(self.candidate, signals, rank(signals), self.bridge, self.said)

    def key(self, rank: LogisticModel, judged: float | None) -> tuple[bool, float]:
        """Return its place among others, given the scorer's opinion."""
        return self.is_other, -self.rank(rank, judged).probability


def describe_rivals(
    question: str,
    names: Sequence[str],
    candidates: Sequence[Candidate],
    pages: Mapping[str, Passage],
    passages: Sequence[Passage],
) -> list[Rival]:
    """Describe the most likely candidates.

    What is plainly of another kind comes last: a date does not say where; and so does what a
    sentence says of another time, ordinal or sort of thing, or leaves out the relation to it.
    """
    some = sorted(candidates, key=_best_score, reverse=True)[:_MAX_CANDIDATES]
    scores = [squash_scores(one) for one in some]
    best = {way: max(one[way] for one in scores) for way in scores[0]} if scores else {}
    found = []
    for one in some:
        signals = describe_candidate(one, some, question, names, pages, best)
        told = gather_told(one)
        is_other = contradicts_kind(question, one.text) or is_contradicted(question, names, told)
        is_other = is_other or bool(find_skipped(question, names, told.whole))
        is_other = is_other or tells_other_end(question, told.sentence, told.at)
        is_other = is_other or measures_other(question, told.sentence, told.at)
        last = one.readings[-1]
        is_other = is_other or is_denied(question, last.passage, last.start, passages)
        said, bridge = say_candidate(one, names, passages), read_bridge(one, names, passages)
        found.append(Rival(one, signals, is_other, said, bridge))
    return found


def read_bridge(
    candidate: Candidate, names: Sequence[str], passages: Sequence[Passage]
) -> Reading | None:
    """Return where a passage about the question's names mentions the page that has the answer.

    Read together, the two say what neither says alone: both are cited.
    """
    if candidate.together is None or len(candidate.readings) > 1:
        return None
    home = candidate.readings[-1].passage
    place = find_bridge(names, home, passages)
    if place is None:
        return None
    title, start = strip_disambiguation(home.title), place.start
    return Reading(_LEADS_TO, title, place.passage, start, start + len(title), 0.0)


async def rank_rivals(
    ctx: Context, rank: LogisticModel, rivals: Sequence[Rival], *, judge_all: bool = False
) -> list[RankedCandidate]:
    """Rank by the model, best first; the scorer judges as many as may come first or second.

    Whatever it finds of the others, they stay behind the best answer and the next different one.
    """
    ranked = await _judge_rivals(ctx, rank, rivals, judge_all)
    _trace_ranked(ctx, ranked)
    return ranked


async def _judge_rivals(
    ctx: Context, rank: LogisticModel, rivals: Sequence[Rival], judge_all: bool
) -> list[RankedCandidate]:
    if not can_judge(ctx):
        return [one.rank(rank, None) for one in sorted(rivals, key=lambda o: o.key(rank, None))]
    most = 1.0 if rank.weights.get(JUDGED, 0.0) >= 0 else -1.0
    left, judged = sorted(rivals, key=lambda one: one.key(rank, most)), dict[str, float]()
    while left:
        bar = None if judge_all else _find_second(rank, rivals, judged)
        some = [one for one in left if bar is None or one.key(rank, most) < bar][:_AT_ONCE]
        if not some:
            break
        values = await judge_texts(ctx, ctx.question, [one.said for one in some])
        judged |= {one.said: value for one, value in zip(some, values, strict=True)}
        left = left[len(some) :]
    order = sorted(rivals, key=lambda one: one.key(rank, judged.get(one.said, -most)))
    return [one.rank(rank, judged.get(one.said, -most)) for one in order]


def _trace_ranked(ctx: Context, ranked: Sequence[RankedCandidate]) -> None:
    """Trace the spans read, best first, each with its probability, its document and its signals."""
    spans: list[TraceStep] = []
    for one in ranked[:_SHOWN]:
        last = one.candidate.readings[-1]
        place = f"{one.candidate.text} ({one.probability:.2f}, {last.passage.doc})"
        said = f"{place} by {format_signals(one.signals)}"
        spans.append(TraceStep("rival" if spans else "chosen", last.question, said, 0.0))
    best = [f"{one.candidate.text} ({one.probability:.2f})" for one in ranked[:_SHOWN]]
    said = "; ".join(best) or "no span answers"
    ctx.trace.append(TraceStep("read", ctx.question, said, 0.0, steps=tuple(spans)))


def _trace_chains(ctx: Context, chains: Sequence[tuple[Chain, list[Reading]]]) -> None:
    """Trace what was asked along each chain, and what was read for it."""
    hops: list[TraceStep] = []
    for followed, last in chains[:_SHOWN]:
        for one in (*followed.steps, *last[:1]):
            said = f"{one.text} ({one.passage.doc})"
            hops.append(TraceStep("ask", one.question, said, 0.0))
    if hops:
        told = f"{len(chains)} {'chain' if len(chains) == 1 else 'chains'}"
        ctx.trace.append(TraceStep("follow", ctx.question, told, 0.0, steps=tuple(hops)))


def _find_second(
    rank: LogisticModel, rivals: Sequence[Rival], judged: Mapping[str, float]
) -> tuple[bool, float] | None:
    """Return the place of the best answer that differs from the first, of those judged so far."""
    known = [one for one in rivals if one.said in judged]
    known.sort(key=lambda one: one.key(rank, judged[one.said]))
    others = (o for o in known if not same_answer(o.candidate.text, known[0].candidate.text))
    second = next(others, None)
    return second.key(rank, judged[second.said]) if second is not None else None


def say_candidate(candidate: Candidate, names: Sequence[str], passages: Sequence[Passage]) -> str:
    """Say a candidate with the sentences that were read for it."""
    places = [Place(one.passage, one.start, one.end) for one in candidate.readings]
    return say_with_places(candidate.text, places, names, passages)


def gather_told(candidate: Candidate) -> Told:
    """Gather what a candidate rests on: the sentence that has it, and those that led to it."""
    *before, last = candidate.readings
    start, end = last.sentence()
    quotes = [reading.cite().quote for reading in before]
    home = f"{last.passage.title} {last.passage.heading}"
    around = " ".join((home, *quotes, *(reading.passage.title for reading in before)))
    return Told(last.passage.text[start:end], last.start - start, around)


def describe_best(ranked: Sequence[RankedCandidate]) -> dict[str, float]:
    """Return what speaks for the best candidate, and its lead over the next different answer."""
    best = ranked[0]
    rivals = (o for o in ranked if not same_answer(o.candidate.text, best.candidate.text))
    rival = next((one.probability for one in rivals), 0.0)
    kept = {name: best.signals[name] for name in (*_KEPT_SIGNALS, JUDGED) if name in best.signals}
    return kept | {"lead": best.probability - rival}


async def load_rank(ctx: Context) -> LogisticModel:
    """Load the model that ranks candidates, with the scorer's opinion where there is one."""
    models = await load_models(ctx.key_values)
    return models[f"{JUDGED} rank" if can_judge(ctx) else "rank"]


async def rank_readings(ctx: Context, passages: Sequence[Passage]) -> list[RankedCandidate]:
    """Rank the answers read in passages alone, without following anything."""
    rank = await load_rank(ctx)
    names = find_subject_names(ctx.view, ctx.question)
    passages = split_statements(ctx.question, names, passages)
    direct = await read_passages(ctx, ctx.question, passages)
    found = gather_candidates(direct, [], [])
    rivals = describe_rivals(ctx.question, names, found, find_pages(passages), passages)
    return await rank_rivals(ctx, rank, rivals)


def _best_score(candidate: Candidate) -> float:
    readings = (candidate.direct, candidate.together, candidate.last)
    return max((r.score for r in readings if r is not None), default=-1e9)


def _may_settle(question: str, names: Sequence[str], direct: Sequence[Reading]) -> bool:
    """Whether one passage may answer the whole question: the reader is sure of its best span."""
    best = max(direct, key=lambda one: one.score, default=None)
    if best is None or best.probability < _SURE or measure_names(names, (best.passage,)) < 1:
        return False
    told = f"{best.cite().quote} {best.passage.title}"
    return measure_coverage(question, told) >= _SURE_COVERAGE


def _is_settled(ranked: Sequence[RankedCandidate], direct: Sequence[Reading]) -> bool:
    """Whether one passage answers the whole question, so that nothing is left to follow.

    Not where the reader itself prefers another span to the one that ranks first.
    """
    best = ranked[0].candidate.direct if ranked else None
    return best is not None and best.score >= max(one.score for one in direct)
