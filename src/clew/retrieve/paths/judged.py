"""Lets the span reader judge the best relation paths, where the question does not name them.

The facts along the paths are written out as short sentences and read for the question. A reader
knows from real questions what kind of thing is asked for, and which end of a relation it is: for
"what runs on cluster-west" it marks the service, and not the version.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clew.adapters import get_tuning
from clew.context import Context
from clew.graph.csr import Floats, Ints
from clew.graph.paths import EntityPathTable, follow_codes
from clew.retrieve.pack import fetch_entity_labels
from clew.retrieve.paths.relation_paths import PathSearchContext, ScoredRelationPaths
from clew.retrieve.relation_vectors import load_short_texts
from clew.retrieve.verb_sides import find_contradicting
from clew.text.word_forms import is_read_language

# Chosen on three small graphs, MetaQA and PathQuestion (docs/lego.md, "The reader as judge").
_JUDGED_PATHS = 8
_SCORED_PATHS = 24
_SCORE_WEIGHT, _LEAST_CHANCE = 1.0, 0.001
_READ_WEIGHT = 1.5
_SURE_SCORE, _UNSURE_SCORE = -2.0, -4.0  # best score at which the reader counts nothing, and fully
_SAID_ENDS, _MAX_END_CHARS = 2, 40  # of the ends that a path is said with
_MAX_READ = 15.0  # by which a span may be ahead of no answer, or behind it
_SHOWN_ENDS = 3  # ends of one path whose facts are written
_MAX_CHARS = 1600  # of the sentences: about one window of the reader
_CONTRADICTED = 6.0  # about what a step against its relation's direction costs

Span = tuple[int, int]


@dataclass
class FactSentences:
    """Facts as short sentences, each once, with the places of their two names."""

    text: str = ""
    places: dict[tuple[int, int, int], tuple[Span, Span]] = field(default_factory=dict)

    def place_end(
        self, entities: Sequence[int], codes: Sequence[int], names: dict[int, str], says: list[str]
    ) -> Span | None:
        """Write the facts of one path; return where its end stands, None if there is no room."""
        place = None
        for (near, far), code in zip(zip(entities, entities[1:], strict=False), codes, strict=True):
            head, tail = (far, near) if code % 2 else (near, far)
            fact = (head, code >> 1, tail)
            if fact not in self.places:
                if len(self.text) > _MAX_CHARS:
                    return None
                self.places[fact] = self._write(names[head], says[code >> 1], names[tail])
            place = self.places[fact][0 if code % 2 else 1]
        return place

    def _write(self, head: str, relation: str, tail: str) -> tuple[Span, Span]:
        start = len(self.text)
        second = start + len(head) + len(relation) + 2
        self.text += f"{head} {relation} {tail}. "
        return (start, start + len(head)), (second, second + len(tail))


def can_judge(ctx: Context) -> bool:
    """Whether there is a reader that knows the language of the question."""
    return (
        ctx.reader is not None and ctx.reader.reads(ctx.question) and is_read_language(ctx.question)
    )


async def judge_paths(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths
) -> ScoredRelationPaths:
    """Add the reader's score to the best paths, the more the less the question says of them.

    Not where the scores were tuned on questions of this graph, nor for sentences as relations.
    """
    if can_score(ctx):
        return await _score_paths(ctx, search, found)
    rows = found.rank()[:_JUDGED_PATHS]
    if len(rows) < 2 or get_tuning(ctx.view).paths is not None:
        return found
    share = (_SURE_SCORE - float(found.scores[rows[0]])) / (_SURE_SCORE - _UNSURE_SCORE)
    sentences = (search.ways.fact_of_code(found.codes[rows]) >= 0).any()
    if share <= 0 or sentences or not can_judge(ctx):
        return found
    routes = [
        follow_codes(search.ways, found.origin(at), found.step_codes(at)) for at in rows.tolist()
    ]
    read = _READ_WEIGHT * min(share, 1.0) * await read_ends(ctx, routes)
    return replace(found, scores=_add_read(found.scores, rows, read))


def can_score(ctx: Context) -> bool:
    """Whether there is a query scorer that knows the language of the question."""
    known = ctx.scorer is not None and ctx.scorer.reads(ctx.question)
    return known and is_read_language(ctx.question)


async def _score_paths(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths
) -> ScoredRelationPaths:
    """Add to the best paths how probable the query scorer finds it that they are asked for."""
    rows = found.rank()[:_SCORED_PATHS]
    tuned = get_tuning(ctx.view).paths is not None
    if not len(rows) or tuned or (search.ways.fact_of_code(found.codes[rows]) >= 0).any():
        return found
    routes = [
        follow_codes(search.ways, found.origin(at), found.step_codes(at)) for at in rows.tolist()
    ]
    chances = await score_paths(ctx, routes)
    odds = np.log(np.maximum(chances, _LEAST_CHANCE) / np.maximum(1 - chances, _LEAST_CHANCE))
    read = (_SCORE_WEIGHT * odds).astype(np.float32)
    return replace(found, scores=_add_read(found.scores, rows, read))


async def score_paths(ctx: Context, paths: Sequence[EntityPathTable]) -> Floats:
    """Return for each relation path how probable it is that the question asks for its end."""
    shown, names = await _show_routes(ctx, paths)
    says = await load_short_texts(ctx)
    chances = np.zeros(len(shown), np.float32)  # of those that only lead back
    led = [at for at, path in enumerate(shown) if len(path)]
    if ctx.scorer is not None and led:
        texts = [_say_route(shown[at], names, says) for at in led]
        chances[led] = await asyncio.to_thread(ctx.scorer.score, ctx.question, texts)
    return chances


async def _show_routes(
    ctx: Context, paths: Sequence[EntityPathTable]
) -> tuple[list[EntityPathTable], dict[int, str]]:
    """Return the first routes of each path, and the names along them."""
    shown = [path.select(np.arange(min(len(path), _SHOWN_ENDS))) for path in paths]
    labels = await fetch_entity_labels(
        ctx, sorted({at for path in shown for at in path.entities.reshape(-1).tolist()})
    )
    return shown, {at: label.name for at, label in labels.items()}


def _say_route(path: EntityPathTable, names: dict[int, str], says: list[str]) -> str:
    """Say a path by the names of its first route, and the ends of all that are shown."""
    codes = path.codes[0].tolist()
    route = [names[at] for at in path.entities[0].tolist()]
    facts = [
        (far, says[code >> 1], near) if code % 2 else (near, says[code >> 1], far)
        for near, far, code in zip(route, route[1:], codes, strict=False)
    ]
    ends = list(dict.fromkeys(names[at] for at in path.entities[:, -1].tolist()))
    return say_path(facts, [bool(code % 2) for code in codes], ends)


def say_path(
    facts: Sequence[tuple[str, str, str]], backward: Sequence[bool], ends: Sequence[str]
) -> str:
    """Say the facts of a path, head, relation and tail, with its end left open, and its ends.

    `backward` tells which steps go from tail to head.
    """
    *before, (head, relation, tail) = facts
    said = "".join(f"{one} {between} {other}. " for one, between, other in before)
    last = f"? {relation} {tail}" if backward[-1] else f"{head} {relation} ?"
    answer = ", ".join(ends[:_SAID_ENDS])[:_MAX_END_CHARS]
    return f"{said}{last} = {answer}"


async def put_back_contradicting(
    ctx: Context, search: PathSearchContext, found: ScoredRelationPaths
) -> ScoredRelationPaths:
    """Put paths behind the others whose first step ends at the side that is not asked for.

    "Who eats X" is not answered by what X eats.
    """
    if not found.codes.size:
        return found
    wrong = await find_contradicting(
        ctx, search.shape, await load_short_texts(ctx), found.codes[:, 0].tolist()
    )
    if not wrong:
        return found
    away = np.isin(found.codes[:, 0], np.array(sorted(wrong), np.int64))
    scores: Floats = np.where(away, found.scores - _CONTRADICTED, found.scores).astype(np.float32)
    return replace(found, scores=scores)


def _add_read(scores: Floats, rows: Ints, read: Floats) -> Floats:
    """Add to the scores of some rows; what was not read stays as far behind the best as it was."""
    added: Floats = (scores + (scores[rows] + read).max() - scores[rows].max()).astype(np.float32)
    added[rows] = scores[rows] + read
    return added


async def read_ends(ctx: Context, paths: Sequence[EntityPathTable]) -> Floats:
    """Return for each relation path how far the reader puts its best end before no answer."""
    shown, names = await _show_routes(ctx, paths)
    says, sentences = await load_short_texts(ctx), FactSentences()
    ends: list[tuple[int, Span]] = []
    for number, path in enumerate(shown):
        for entities, codes in zip(path.entities.tolist(), path.codes.tolist(), strict=True):
            place = sentences.place_end(entities, codes, names, says)
            ends += [(number, place)] if place is not None else []
    scores = np.full(len(paths), -_MAX_READ, np.float32)
    if ends and ctx.reader is not None:
        spans = [place for _, place in ends]
        read = await asyncio.to_thread(ctx.reader.score_spans, ctx.question, sentences.text, spans)
        for (number, _), score in zip(ends, read, strict=True):
            scores[number] = max(scores[number], min(score, _MAX_READ))
    return scores
