"""Lets the query scorer decide which relation path a question asks for.

Every candidate is said in plain words and compared with the question: a beam from the names that
were linked, one relation further in each round, beside the paths that the words of their relations
put first. What decides is what the scorer finds and, where it is undecided, what the words say.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clew.adapters import get_tuning
from clew.context import Context
from clew.graph.csr import Floats, Ints
from clew.graph.paths import EntityPathTable, follow_codes
from clew.graph.traverse import extend_relation_paths
from clew.odds import to_log_odds
from clew.retrieve.asked_form import AskedForm, read_form
from clew.retrieve.pack import fetch_entity_labels
from clew.retrieve.paths.relation_paths import (
    PathSearchContext,
    ScoredRelationPaths,
    add_longer_paths,
    drop_returning,
)
from clew.retrieve.relation_vectors import load_short_texts
from clew.retrieve.verb_sides import find_contradicting

SCORED_LANGUAGES = ("en", "de", "fr", "es")  # that the scorer was trained on
_LONGEST = 4  # relations of a path
_FIRST, _WIDTH, _NEXT = 16, 5, 12  # paths by words; kept in a round; scored in a round
_SURE, _BEHIND = 0.9, 0.5  # chances of a path behind which a round of longer ones ends the beam
_UNLIKELY = 0.05  # chance of a path that no words put before one that is sure
_SHOWN_ROUTES = 64  # routes of one path that its ends are taken from
_LEAST_CHANCE = 0.0005
# What words say beside the log odds: little where no path says the question, much where one does.
_LEAST_WORDS, _MOST_WORDS = 0.25, 4.0
_UNSAID_SCORE, _SAID_SCORE = -3.0, 1.0
_UNREAD_COST = 1.0  # log odds behind the best of a path that the scorer cannot judge
_SAID_ENDS, _MAX_END_CHARS = 2, 40  # of the ends that a path is said with
# About what a step against its relation's direction costs, and the chance that such a path keeps.
_CONTRADICTED, _CONTRADICTED_CHANCE = 6.0, 0.1


async def judge_paths(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths, names: Sequence[str]
) -> ScoredRelationPaths:
    """Rank the paths by what the query scorer finds asked.

    Not where the scores were tuned on questions of this graph, nor for sentences as relations.
    """
    tuned = get_tuning(ctx.view).paths is not None
    sentences = (search.ways.fact_of_code(found.codes) >= 0).any()
    if tuned or sentences or not len(found.codes) or not ctx.can_score(*SCORED_LANGUAGES):
        return found
    beam = PathBeam(ctx, search, found, read_form(ctx.question, names))
    await beam.run()
    return beam.rank()


@dataclass
class PathBeam:
    """Scores the paths that a question may ask for, shorter ones first."""

    ctx: Context
    search: PathSearchContext
    found: ScoredRelationPaths
    form: AskedForm
    chances: dict[int, float] = field(default_factory=dict)
    """By row of `found`."""
    turning: int = -1
    """The path that words put first and say, if it goes along a relation and back, to others of a
    kind: the scorer was trained on few of these, and has little to say against it."""

    async def run(self) -> None:
        """Score whole paths by words first, then those that go on from the best of each length."""
        rows = self.found.rank()
        if self._measure_said() > 0 and self._leads_to_others(int(rows[0])):
            self.turning = int(rows[0])
        await self._score(rows[:_FIRST].tolist())
        front: list[int] | None = None
        for length in range(1, _LONGEST + 1):
            if length > len(self.found.by_length):
                await self._lengthen(front or [])
            own = self._list_next(length, front)
            if not own:
                break
            await self._score(own[:_NEXT])
            scored = [row for row in own if row in self.chances]
            front = sorted(scored, key=lambda row: -self.total(row))[:_WIDTH]
            best = max(self.chances.values())
            if best >= _SURE and max(self.chances[row] for row in front) < _BEHIND * best:
                break

    def total(self, row: int) -> float:
        """Return the log odds of a path that was scored, with what its words add."""
        weight = _LEAST_WORDS + (_MOST_WORDS - _LEAST_WORDS) * self._measure_said()
        odds = to_odds(self.chances[row])
        if row == self.turning:
            odds = max(odds, to_odds(max(self.chances.values())) - _UNREAD_COST)
        elif self._repeats_turning(row):
            odds = min(odds, to_odds(max(self.chances.values())) - 2 * _UNREAD_COST)
        elif _turns_back(self.found.step_codes(row)):
            odds = min(odds, self._bound_turning())
        return odds + weight * float(self.found.scores[row])

    def _leads_to_others(self, row: int) -> bool:
        """Whether a path goes along a relation and back, and not only to where it starts."""
        only = self.found.end_entities(row).tolist() == [self.found.origin(row)]
        return not only and _turns_back(self.found.step_codes(row))

    def _repeats_turning(self, row: int) -> bool:
        """Whether a path takes the last relation of the one that words say once more.

        It goes on by a name that also stands for something of another kind (the year "1984", a
        film), and the scorer knows as little of it as of that path.
        """
        if self.turning < 0 or self.search.shape.chain:
            return False
        said: list[int] = self.found.step_codes(self.turning).tolist()
        steps: list[int] = self.found.step_codes(row).tolist()
        return steps == [*said, said[-1]]

    def _bound_turning(self) -> float:
        """Return the most log odds of a path that goes along a relation and back.

        Where another one is surely asked for, and the question says step by step what is whose
        ("X's mother"), without a word for what things share, it only happens to lead to the like.
        """
        shape = self.search.shape
        stepwise = any(shape.positions[link[0]] > shape.name_position for link in shape.chain)
        if not stepwise or shape.has_shared_word:
            return np.inf
        straight = [
            chance
            for row, chance in self.chances.items()
            if chance >= _SURE and not _turns_back(self.found.step_codes(row))
        ]
        return to_odds(max(straight)) - _UNREAD_COST if straight else np.inf

    def _measure_said(self) -> float:
        """Return how far words say what the best path by them is, from 0 to 1."""
        best = float(self.found.scores.max(initial=-np.inf))
        return min(max((best - _UNSAID_SCORE) / (_SAID_SCORE - _UNSAID_SCORE), 0.0), 1.0)

    def rank(self) -> ScoredRelationPaths:
        """Return all paths, those that were scored before the others."""
        rows = np.array(sorted(self.chances), np.int64)
        totals = self._put_unlikely_back(rows)
        old = self.found.scores
        scores: Floats = (old - old.max(initial=0.0) + totals.min() - 1.0).astype(np.float32)
        scores[rows] = totals
        chances: Floats = np.full(len(scores), -1, np.float32)
        chances[rows] = [self.chances[row] for row in rows.tolist()]
        return replace(self.found, scores=scores, chances=chances)

    def _put_unlikely_back(self, rows: Ints) -> Floats:
        """Return the totals of rows, those that are unlikely behind those that are sure."""
        totals = np.array([self.total(row) for row in rows.tolist()], np.float32)
        chances = np.array([self.chances[row] for row in rows.tolist()])
        sure = chances >= _SURE
        if sure.any():
            away = (chances < _UNLIKELY) & (rows != self.turning)
            totals[away] = np.minimum(totals[away], totals[sure].max() - 1)
        return totals

    def _list_next(self, length: int, front: list[int] | None) -> list[int]:
        """Return the rows of one length that go on from the front, the best by words first."""
        codes, scores = self.found.codes, self.found.scores
        of_length = np.flatnonzero(self.found.length_index == length - 1)
        if front is not None:
            starts = {
                (self.found.origin(row), *self.found.step_codes(row).tolist()) for row in front
            }
            of_length = np.array(
                [
                    row
                    for row in of_length.tolist()
                    if (self.found.origin(row), *codes[row, : length - 1].tolist()) in starts
                ],
                np.int64,
            )
        order: list[int] = of_length[np.argsort(-scores[of_length], kind="stable")].tolist()
        return [row for row in order if np.isfinite(scores[row])]

    async def _lengthen(self, front: Sequence[int]) -> None:
        last, deepest = self.found.by_length[-1], len(self.found.by_length) - 1
        rows = np.array(
            [self.found.row[at] for at in front if self.found.length_index[at] == deepest],
            np.int64,
        )
        if len(rows):
            returns = self.search.may_return
            longer = extend_relation_paths(self.search.ways, last.select(rows), returns=returns)
            if len(longer):
                before = self._score_by_steps(front)
                self.found = await add_longer_paths(self.search, self.found, longer)
                self._bound_words(before, len(self.found.scores) - len(longer))

    def _score_by_steps(self, rows: Sequence[int]) -> dict[tuple[int, ...], float]:
        """Return what words say of some paths, by start and steps."""
        found = self.found
        return {
            (found.origin(row), *found.step_codes(row).tolist()): float(found.scores[row])
            for row in rows
        }

    def _bound_words(self, before: dict[tuple[int, ...], float], first: int) -> None:
        """Let words say no more for a path, from row `first` on, than for it without its last step.

        Words were asked before how far a path goes: what is longer is left to the scorer.
        """
        found, scores = self.found, self.found.scores.copy()
        for row in range(first, len(scores)):
            steps = found.step_codes(row)[:-1].tolist()
            scores[row] = min(scores[row], before[found.origin(row), *steps])
        self.found = replace(found, scores=scores)

    async def _score(self, rows: Sequence[int]) -> None:
        new = [row for row in rows if row not in self.chances]
        routes = [
            follow_codes(
                self.search.ways, self.found.origin(row), self.found.step_codes(row), _SHOWN_ROUTES
            )
            for row in new
        ]
        starts = sorted({self.found.origin(row) for row in new})
        labels = await fetch_entity_labels(self.ctx, starts)
        for start in starts:
            some = [at for at, row in enumerate(new) if self.found.origin(row) == start]
            chances = await score_paths(
                self.ctx,
                self.form.ask_about(labels[start].name),
                [routes[at] for at in some],
                returns=self.search.may_return,
            )
            self.chances.update(zip([new[at] for at in some], chances.tolist(), strict=True))


def _turns_back(codes: Ints) -> bool:
    """Whether a path takes a relation in one direction and then in the other."""
    return bool((codes[1:] == codes[:-1] ^ 1).any())


def to_odds(chance: float) -> float:
    """Return the log odds of a path's probability, within bounds."""
    return to_log_odds(chance, _LEAST_CHANCE)


async def score_paths(
    ctx: Context,
    questions: Sequence[str],
    paths: Sequence[EntityPathTable],
    *,
    returns: bool = False,
) -> Floats:
    """Return for each relation path how probable it is that one of the questions asks for its end.

    Routes that pass a name twice count only with `returns`; paths of no others have no chance.
    """
    shown = [path if returns else drop_returning(path) for path in paths]
    names, says = await name_entities(ctx, shown), await load_short_texts(ctx)
    chances = np.zeros(len(shown), np.float32)
    led = [at for at, path in enumerate(shown) if len(path)]
    texts = [
        say_opened(open_route(shown[at], names, says), _list_ends(shown[at], names)) for at in led
    ]
    chances[led] = await score_texts(ctx, questions, texts)
    return chances


async def score_shared(
    ctx: Context,
    questions: Sequence[str],
    pairs: Sequence[tuple[EntityPathTable, EntityPathTable]],
) -> Floats:
    """Return for each two paths to the same ends how probable it is that both are asked for."""
    every = [path for pair in pairs for path in pair]
    names, says = await name_entities(ctx, every), await load_short_texts(ctx)
    texts = [
        say_both(
            open_route(first, names, says),
            open_route(second, names, says),
            _list_ends(first, names),
        )
        for first, second in pairs
    ]
    return await score_texts(ctx, questions, texts)


async def score_texts(ctx: Context, questions: Sequence[str], texts: Sequence[str]) -> Floats:
    """Return for each text how probable it is that one of the questions asks for it."""
    chances = np.zeros(len(texts), np.float32)
    if ctx.scorer is not None and texts:
        for question in questions:
            own = await asyncio.to_thread(ctx.scorer.score, question, list(texts))
            chances = np.maximum(chances, own)
    return chances


async def name_entities(ctx: Context, paths: Sequence[EntityPathTable]) -> dict[int, str]:
    """Return the names of what the texts of paths name: their first routes, and first ends."""
    some = {at for path in paths if len(path) for at in path.entities[0].tolist()}
    some |= {at for path in paths for at in _first_ends(path)}
    labels = await fetch_entity_labels(ctx, sorted(some))
    return {at: label.name for at, label in labels.items()}


def _first_ends(path: EntityPathTable) -> list[int]:
    return list(dict.fromkeys(path.entities[:, -1].tolist()))[:_SAID_ENDS]


def _list_ends(path: EntityPathTable, names: dict[int, str]) -> list[str]:
    return [names[at] for at in _first_ends(path)]


def open_route(path: EntityPathTable, names: dict[int, str], says: list[str]) -> str:
    """Say a path by the names of its first route, with its end left open."""
    codes = path.codes[0].tolist()
    route = [names[at] for at in path.entities[0].tolist()]
    facts = [
        (far, says[code >> 1], near) if code % 2 else (near, says[code >> 1], far)
        for near, far, code in zip(route, route[1:], codes, strict=False)
    ]
    return open_path(facts, [bool(code % 2) for code in codes])


def say_path(
    facts: Sequence[tuple[str, str, str]], backward: Sequence[bool], ends: Sequence[str]
) -> str:
    """Say the facts of a path, head, relation and tail, with its end left open, and its ends.

    `backward` tells which steps go from tail to head.
    """
    return say_opened(open_path(facts, backward), ends)


def say_opened(opened: str, ends: Sequence[str]) -> str:
    """Say a path with its end left open, and its ends."""
    return f"{opened} = {', '.join(ends[:_SAID_ENDS])[:_MAX_END_CHARS]}"


def say_both(first: str, second: str, ends: Sequence[str]) -> str:
    """Say what two open paths share, and its ends."""
    return say_opened(f"{first} and {second}", ends)


def open_path(facts: Sequence[tuple[str, str, str]], backward: Sequence[bool]) -> str:
    """Say the facts of a path with its end left open."""
    *before, (head, relation, tail) = facts
    said = "".join(f"{one} {between} {other}. " for one, between, other in before)
    return said + (f"? {relation} {tail}" if backward[-1] else f"{head} {relation} ?")


async def put_back_contradicting(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths, names: Sequence[str]
) -> ScoredRelationPaths:
    """Put paths behind the others whose first step ends at the side that is not asked for.

    "Who eats X" is not answered by what X eats. Which side a claim means is asked where it is
    decided.
    """
    if not found.codes.size or read_form(ctx.question, names).wants == "check":
        return found
    texts = await load_short_texts(ctx)
    starts = np.array([part.origin[row] for part, row in found.list_places()], np.int64)
    scores = found.scores.copy()
    chances = None if found.chances is None else found.chances.copy()
    for start in np.unique(starts).tolist():
        own = starts == start
        wrong = await find_contradicting(ctx, search.shape, texts, found.codes[own, 0].tolist())
        away = own & np.isin(found.codes[:, 0], sorted(wrong))
        scores[away] -= _CONTRADICTED
        if chances is not None:
            chances[away] = np.minimum(chances[away], _CONTRADICTED_CHANCE)
    return replace(found, scores=scores, chances=chances)
