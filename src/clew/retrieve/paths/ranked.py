"""One-step path retrieval: by structure alone (SBR) or all paths ranked by relations (OSAR), and
the ranking of answer entities by the paths that reach them, with how far the best path says what a
question asks.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from clew.context import Context
from clew.graph.csr import Doubles, Floats, Ints
from clew.graph.paths import EntityPathTable, follow_codes, shortest_paths, simple_paths
from clew.graph.traverse import FactGraph
from clew.retrieve.claim_sides import ends_at_other_side
from clew.retrieve.model_choice import MAX_CHOICES, ScoringModel, choose_items
from clew.retrieve.order_sides import compare_order
from clew.retrieve.path_scores import FEATURE_WEIGHTS, FEATURES, compute_path_features
from clew.retrieve.paths.absent import weigh_absent
from clew.retrieve.paths.alike import find_alike
from clew.retrieve.paths.asked_kind import go_on_to_kind, keep_gender
from clew.retrieve.paths.both import find_both
from clew.retrieve.paths.judged import judge_paths, put_back_contradicting, to_odds
from clew.retrieve.paths.possessors import find_possessing, put_possessors_first
from clew.retrieve.paths.relation_paths import (
    ASKED_MARK,
    KeepAllPaths,
    PathSearchContext,
    ScoredRelationPaths,
    describe_paths,
    drop_returning,
    prepare_search,
    search_further,
    search_relation_paths,
    select_best_paths,
)
from clew.retrieve.rank import ANSWER_MARK, hit_positions
from clew.retrieve.relation_vectors import find_converse, load_short_texts
from clew.retrieve.spelled_out import ask_plainly
from clew.retrieve.text_scores import PathScorerName
from clew.retrieve.verb_sides import find_contradicting
from clew.types import Found, Hit, Path

UNCLEAR = "unclear"
"""The hint that a path answers something else, or one of several things, that may be meant."""
Supplement = Literal["fill", "none"]
_SHOWN = ("unspoken", "kind", "last")
_IN_ORDER = ("unexplained_in_order", "unspoken_in_order", "backward", "chain_gap")
_MAX_HOPS = 3  # of a path; more count as many
_GOOD_SCORE = 8.0  # by which the scorer's sum is divided: about that of a path that fits
_GOOD_ODDS = 7.0  # log odds of a path that the query scorer is sure of
_UNNAMED = 0.25  # share of a relation that no word of a question says
_ABSENT_ODDS = 1.0  # log odds by which a path that the graph lacks may be likelier
_CLEAR_ODDS = 0.5  # log odds by which one direction of a relation must be likelier
_LONGEST_CHAIN = 6  # links of a possessive chain that are followed
_FURTHER_HOPS = 2  # beyond `max_hop`, where a relation that is asked for was not reached


@dataclass(frozen=True)
class StructuralPaths:
    """Takes the shortest paths from the linked entities, or all simple ones; no embedder.

    Shorter paths come first, then those through facts that the subgraph ranks higher.
    """

    which: Literal["shortest", "simple"] = "shortest"
    max_hop: int = 4
    top_k: int = 1000

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`."""
        search = prepare_search(ctx, found)
        facts = hit_positions(found.facts)
        scores = np.array([hit.score for hit in found.facts])
        order = np.argsort(facts)
        find = shortest_paths if self.which == "shortest" else simple_paths
        paths: list[Path] = []
        for start in search.starts.tolist():
            for routes in find(search.ways, start, self.max_hop, self.top_k):
                fact_scores = _fact_scores(routes.facts, facts[order], scores[order])
                paths += self._to_paths(routes, fact_scores, self.top_k - len(paths))
        paths.sort(key=lambda path: (len(path.facts), -path.score, path.entities, path.facts))
        return replace(found, paths=tuple(paths[: self.top_k]))

    def _to_paths(self, routes: EntityPathTable, value: Doubles, most: int) -> list[Path]:
        """Return the best paths of one length; a path scores as its lowest fact."""
        least = value.min(axis=1)
        best = np.lexsort((np.arange(len(least)), -least))[: max(most, 0)]
        rows = zip(
            routes.entities[best].tolist(),
            routes.facts[best].tolist(),
            least[best].tolist(),
            strict=True,
        )
        return [Path(tuple(e), tuple(f), score, self.which) for e, f, score in rows]


def _fact_scores(wanted: Ints, facts: Ints, scores: Doubles) -> Doubles:
    """Return the subgraph's score of each fact; 0 without a subgraph."""
    if not len(facts):
        return np.zeros(wanted.shape)
    return scores[np.minimum(np.searchsorted(facts, wanted), len(facts) - 1)]


@dataclass(frozen=True)
class RankedPaths:
    """Enumerates every relation path up to `max_hop` steps, then keeps the best fitting.

    A possessive chain with more links ("X's a's b's c's d") is followed to its end, and the best
    paths are followed further while a relation that the question names was not taken; where it says
    little of the best ones, the reader judges their ends.
    `scorer` says how: ours, or LEGO-GraphRAG's (`cosine`, `cross-encoder`, `llm-embeddings`). With
    `by="llm"` a model chooses among the best relation paths, `rounds` times over (M-LLMs).
    `supplement="fill"` fills the remaining places by the scorer's ranking (EEMs-S); `rerank` puts
    the model's choice in the scorer's order (EEMs-R). If it chooses nothing, the scorer's stands.
    """

    top_k: int = 32
    max_hop: int = 3
    by: ScoringModel = "eem"
    rounds: int = 1
    supplement: Supplement = "none"
    rerank: bool = False
    scorer: PathScorerName = "clew"

    @property
    def reads(self) -> bool:
        """Whether it uses the reader."""
        return self.scorer == "clew"

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`, best first; never empty where there is a path."""
        ctx = await ask_plainly(ctx, found.names)
        search = prepare_search(ctx, found, self.scorer)
        linked, _ = search.shape.bound_hops()
        hops = max(self.max_hop, min(linked, _LONGEST_CHAIN))
        all_trails = await search_relation_paths(search, hops, KeepAllPaths(search.scorer))
        if self.scorer == "clew":
            all_trails = await search_further(ctx, search, all_trails, hops + _FURTHER_HOPS)
            having = await find_possessing(ctx, search, all_trails)
            all_trails = put_possessors_first(all_trails, having)
            all_trails = await judge_paths(ctx, search, all_trails, found.names)
            all_trails = put_possessors_first(all_trails, having)
            all_trails = await put_back_contradicting(ctx, search, all_trails, found.names)
            all_trails = await go_on_to_kind(ctx, search, all_trails)
            all_trails = await keep_gender(ctx, search, all_trails)
            all_trails = await find_both(ctx, search, all_trails, found.names)
            all_trails = await find_alike(ctx, search, all_trails, found.names)
            all_trails = await weigh_absent(ctx, search, all_trails, found.names)
        if self.by == "llm":
            all_trails = await self._choose_by_model(ctx, search, all_trails)
        return replace(
            found, paths=select_best_paths(search, all_trails, self.top_k, f"ranked by {self.by}")
        )

    async def _choose_by_model(
        self, ctx: Context, search: PathSearchContext, found: ScoredRelationPaths
    ) -> ScoredRelationPaths:
        rows = found.rank()[:MAX_CHOICES].tolist()
        kept = rows
        for _ in range(self.rounds):
            picked = await choose_items(
                ctx, "paths", await describe_paths(ctx, search, found, kept), self.top_k
            )
            if not picked:
                break
            kept = [kept[at] for at in picked]
        if kept is rows or kept == rows:
            return found
        return promote_paths(found, kept, rerank=self.rerank, only=self.supplement == "none")


def promote_paths(
    found: ScoredRelationPaths, rows: list[int], *, rerank: bool, only: bool
) -> ScoredRelationPaths:
    """Raise the scores of a model's choice above all others (or rule out the others)."""
    scores = found.scores.copy()
    gap = float(scores.max() - scores.min()) + 1.0
    if rerank:
        scores[rows] += gap
    else:
        # One nat apart: the first choice leads, the next ones still count.
        scores[rows] = scores.max() + gap + len(rows) - np.arange(len(rows), dtype=np.float32)
    if only:
        left = np.ones(len(scores), np.bool_)
        left[rows] = False
        scores[left] = -np.inf
    return replace(found, scores=scores)


_TAIL_ROLE = 3  # role code
_RESCORE_FACTOR = 4  # paths rescored per path kept: several may end at one entity


@dataclass(frozen=True)
class RankAnswers:
    """Keeps the best `top_k` paths, and puts the entities they end at before all others.

    With `read`, paths found by structure alone are first scored by their relations.
    """

    top_k: int = 32
    read: bool = False
    scorer: PathScorerName = "clew"

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`, `facts` to those on them, and `entities` to answers, then seeds."""
        paths = list(found.paths)
        if self.read and paths:
            paths = await self._score_paths(ctx, found)
        score: dict[int, float] = defaultdict(float)
        for path in paths:
            score[path.entities[-1]] = max(score[path.entities[-1]], path.score)
        starts = {hit.at for hit in found.entities}
        # Of equals, what the question already names comes last.
        ranked = sorted(score, key=lambda at: (-score[at], at in starts))
        kept = paths[: self.top_k]
        facts = dict.fromkeys(fact for path in kept for fact in path.facts)
        value = {fact: path.score for path in reversed(kept) for fact in path.facts}
        answers = tuple(Hit(at, score[at], ANSWER_MARK) for at in ranked[: self.top_k])
        shown = {hit.at for hit in answers}
        return replace(
            found,
            paths=tuple(kept),
            entities=(*answers, *(hit for hit in found.entities if hit.at not in shown)),
            facts=tuple(Hit(fact, value[fact], "path") for fact in facts),
        )

    async def _score_paths(self, ctx: Context, found: Found) -> list[Path]:
        search = prepare_search(ctx, replace(found, facts=()), self.scorer)
        codes, which = np.unique(path_codes(search.ways, found.paths), axis=0, return_inverse=True)
        chance = softmax((await search.scorer.score_paths(codes))[which.reshape(-1)])
        order = np.lexsort((np.arange(len(chance)), -chance))[: _RESCORE_FACTOR * self.top_k]
        return [replace(found.paths[at], score=float(chance[at])) for at in order.tolist()]


def softmax(scores: Floats) -> Floats:
    """Return the scores as probabilities that sum to 1."""
    chance = np.exp(scores - scores.max(initial=-np.inf))
    found: Floats = (chance / max(float(chance.sum()), 1e-9)).astype(np.float32)
    return found


def path_codes(ways: FactGraph, paths: tuple[Path, ...]) -> Ints:
    """Return the step codes of paths, padded with -1."""
    width = max((len(path.facts) for path in paths), default=0)
    fact = np.full((len(paths), width), -1, np.int64)
    near = fact.copy()
    for row, path in enumerate(paths):
        fact[row, : len(path.facts)] = path.facts
        near[row, : len(path.facts)] = path.entities[:-1]
    rows, columns = np.nonzero(fact >= 0)
    facts, source = fact[rows, columns], near[rows, columns]
    at, edge = ways.members.edges_of(facts)
    source_edges = np.flatnonzero(ways.members.columns[edge] == source[at])
    tail = np.zeros(len(facts), np.bool_)
    tail[at[source_edges]] = ways.members.weights[edge[source_edges]] == _TAIL_ROLE
    label = ways.labels[facts].astype(np.int64)
    codes: Ints = np.full(fact.shape, -1, np.int64)
    codes[rows, columns] = np.where(label < 0, (ways.relation_count + facts) * 2, label * 2 + tail)
    return codes


async def measure_fit(ctx: Context, found: Found) -> dict[str, float]:
    """Return how far the first path covers the question, and how likely it is beside others.

    Numbers between -1 and 1; none where a path goes through sentences, which have no relation.
    """
    if not found.paths or not found.paths[0].facts:
        return {}
    ctx = await ask_plainly(ctx, found.names)
    search = prepare_search(ctx, replace(found, facts=()))
    codes = path_codes(search.ways, found.paths)
    if (search.ways.fact_of_code(codes) >= 0).any():
        return {}
    distinct, which = np.unique(codes, axis=0, return_inverse=True)
    features = await compute_path_features(ctx, search.ways, search.shape, distinct)
    first = int(which.reshape(-1)[0])
    of = dict(zip(FEATURES, features[first].tolist(), strict=True))
    hops = min(int((codes[0] >= 0).sum()), _MAX_HOPS)
    texts = await load_short_texts(ctx)
    wrong = await find_contradicting(ctx, search.shape, texts, codes[:, 0].tolist())
    first_code, label = int(codes[0, 0]), texts[codes[0, 0] >> 1]
    said = of["unspoken"] < _UNNAMED or find_converse(search.shape.words, label)
    said = said or compare_order(search.shape, label, first_code) > 0
    unclear = _asks_rather_absent(found.paths[0])
    unclear = unclear or not said and _has_equal_mirror(found.paths, codes)
    if hops == 1 and not unclear:
        unclear = await ends_at_other_side(ctx, search.shape, label, first_code)
    return {
        **_measure_asked(found.paths),
        **({UNCLEAR: 1.0} if unclear else {}),
        **({"wrong side": 1.0} if first_code in wrong else {}),
        **{name: _clip(of[name]) for name in _SHOWN},
        **{name.replace("_", " "): _clip(of[name] / hops) for name in _IN_ORDER},
        "hops": (hops - 1) / (_MAX_HOPS - 1),
        "chance": _clip(found.paths[0].score),
        "fit of path": _clip(float(features[first] @ FEATURE_WEIGHTS) / _GOOD_SCORE),
    }


def list_ends(ctx: Context, found: Found) -> list[int]:
    """Return the entities that the relation path of the first path leads to; none without one."""
    if not found.paths:
        return []
    search = prepare_search(ctx, replace(found, facts=()))
    codes = path_codes(search.ways, found.paths[:1])[0]
    routes = follow_codes(search.ways, found.paths[0].entities[0], codes)
    if found.paths[0].by == ASKED_MARK and not search.may_return:
        routes = drop_returning(routes)
    return list(dict.fromkeys(routes.entities[:, -1].tolist()))


def _measure_asked(paths: Sequence[Path]) -> dict[str, float]:
    """Return how probable the scorer finds the first path, and how far it is before others."""
    if paths[0].asked < 0:
        return {}
    others = (path for path in paths if path.by != paths[0].by and path.asked >= 0)
    second = max((path.asked for path in others), default=0.0)
    odds = to_odds(paths[0].asked)
    known = paths[0].absent >= 0
    return {
        "asked": paths[0].asked,
        "odds": _clip(odds / _GOOD_ODDS),
        "margin": _clip((odds - to_odds(second)) / _GOOD_ODDS),
        **({"absent": _clip((to_odds(paths[0].absent) - odds) / _GOOD_ODDS)} if known else {}),
    }


def _asks_rather_absent(path: Path) -> bool:
    """Whether the scorer finds a path likelier that the graph lacks: what is asked is not there."""
    return path.absent >= 0 and to_odds(path.absent) - to_odds(path.asked) > _ABSENT_ODDS


def _has_equal_mirror(paths: Sequence[Path], codes: Ints) -> bool:
    """Whether the scorer finds the first path hardly likelier than the same one mirrored."""
    if paths[0].asked < 0:
        return False
    mirrored = np.where(codes[0] >= 0, codes[0] ^ 1, -1)
    rivals = [
        path.asked
        for path, own in zip(paths, codes, strict=True)
        if path.entities[0] == paths[0].entities[0]
        and path.by != paths[0].by
        and np.array_equal(own, mirrored)
    ]
    least = to_odds(paths[0].asked) - _CLEAR_ODDS
    return any(to_odds(asked) > least for asked in rivals)


def _clip(value: float) -> float:
    """Return the value, at most 1 away from 0."""
    return max(-1.0, min(1.0, value))
