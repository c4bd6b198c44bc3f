"""The tune story: examples from questions, an adapter from examples, kept with the base."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from clew.adapt.keep import forgotten, kept
from clew.adapt.learn_paths import Schooling, learn_hops, learn_paths
from clew.adapt.learn_queries import PassageExample, QuerySchooling, learn_queries
from clew.adapt.values import Floats, PathAdapter, QueryAdapter, Tuning, slots
from clew.context import Context
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.evaluate.datasets import Question
from clew.graph.traverse import Ints
from clew.retrieve.label_meaning import label_meaning
from clew.retrieve.path_meaning import WEIGHTS
from clew.tune.examples import Learnable, passage_examples, path_examples

Tell = Callable[[str, int, int], None]

_HELD = 5  # every so many-th example is held back to see what learning brings
_FEWEST = 8  # examples to learn from at least
_BEST = 5  # passages among which gold ones are counted


@dataclass(frozen=True, slots=True)
class Learnt:
    """What was learnt from, what it brings, and what it took."""

    questions: int
    paths: int
    """Questions whose right relation paths could be told from their answers."""
    passages: int
    """Questions with gold documents that are here."""
    before: float | None
    after: float | None
    """Share of questions held back whose best path is right, without and with what was learnt."""
    passages_before: float | None
    passages_after: float | None
    """The same for passages: the part of the gold ones that is among the best five."""
    hops: float | None
    """Share of questions held back whose number of hops is told right."""
    seconds: dict[str, float]
    bytes: int


async def tune(kb: KnowledgeBase, questions: Sequence[Question], tell: Tell) -> Learnt:
    """Learn from questions, and keep what was learnt in place of what was there."""
    if kb.embed is None:
        raise ConfigError("there is no embedder to adapt; set [embed] in clew.toml")
    await forgotten(kb.store, kb.embed.name)
    kb.forget_view()
    started = perf_counter()
    async with kb.store.snapshot() as snapshot:
        ctx = await kb.context(snapshot, "tune")
        paths = await _paths(ctx, questions, tell)
        passages = await _passages(kb, ctx, questions)
        labels = (await label_meaning(ctx, np.arange(_relations(ctx)))).whole
    gathered = perf_counter()
    if max(len(paths), len(passages)) < _FEWEST:
        raise ConfigError(
            f"of {len(questions)} questions only {max(len(paths), len(passages))} have entities "
            f"and answers, or gold documents, that are here; {_FEWEST} are needed"
        )
    tell("learn", 0, 1)
    tuning = Tuning()
    before = after = hops = None
    if len(paths) >= _FEWEST:
        tuning, before, after, hops = _learn_paths(paths, labels)
        if after < before:
            tuning = replace(tuning, paths=None)
    passages_before = passages_after = None
    if len(passages) >= _FEWEST:
        queries, passages_before, passages_after = _learn_passages(passages)
        # What does not help on questions held back is not kept.
        tuning = replace(tuning, queries=queries if passages_after > passages_before else None)
    learnt = perf_counter()
    size = await kept(kb.store, kb.embed.name, tuning)
    kb.forget_view()
    tell("learn", 1, 1)
    return Learnt(
        *(len(questions), len(paths), len(passages), before, after),
        *(passages_before, passages_after, hops),
        seconds={"examples": round(gathered - started, 2), "learning": round(learnt - gathered, 2)},
        bytes=size,
    )


def _relations(ctx: Context) -> int:
    return len(ctx.view.arrays.get("relation_fact", ()))


async def _paths(ctx: Context, questions: Sequence[Question], tell: Tell) -> list[Learnable]:
    usable = [q for q in questions if q.entities and q.answers]
    found = []
    done = 0
    async for one in path_examples(ctx, usable, WEIGHTS):
        done += 1
        tell("examples", done, len(usable))
        if one is not None:
            found.append(one)
    return found


def _learn_paths(examples: list[Learnable], labels: Floats) -> tuple[Tuning, float, float, float]:
    """Learn from most to see what it brings; then from all."""
    held = examples[::_HELD]
    rest = [one for at, one in enumerate(examples) if at % _HELD]
    how = Schooling()
    trial, _ = learn_paths([one.path for one in rest], labels, WEIGHTS, how)
    choice = learn_hops(np.array([o.path.asked for o in rest]), np.array([o.hops for o in rest]))
    before = float(np.mean([one.first for one in held]))
    after = float(np.mean([_right_first(trial, one, labels) for one in held]))
    told = float(np.mean([choice.most_likely(one.path.asked) == one.hops for one in held]))
    paths, _ = learn_paths([one.path for one in examples], labels, WEIGHTS, how)
    asked = np.array([one.path.asked for one in examples])
    hops = learn_hops(asked, np.array([one.hops for one in examples]))
    return Tuning(paths=paths, hops=hops), before, after, told


def _right_first(adapter: PathAdapter, one: Learnable, labels: Floats) -> bool:
    example = one.path
    table = adapter.table(example.asked, labels)
    row, column = np.nonzero(example.codes >= 0)
    step = table[slots(example.codes)[row, column], example.codes[row, column] >> 1]
    scores = example.seen @ adapter.weights + np.bincount(row, step, minlength=len(example.codes))
    return bool(example.right[int(scores.argmax())])


async def _passages(
    kb: KnowledgeBase, ctx: Context, questions: Sequence[Question]
) -> list[PassageExample]:
    wanted = {doc for question in questions for doc in question.gold}
    if not wanted:
        return []
    sources = await kb.store.sources()
    ids = {sources[name].document: name for name in wanted if name in sources}
    keys = ctx.view.keys("chunk")
    chunks = await ctx.snapshot.chunks(keys.tolist())
    held: dict[str, list[int]] = {}
    for at, key in enumerate(keys.tolist()):
        name = ids.get(chunks[key].document)
        if name is not None:
            held.setdefault(name, []).append(at)
    documents: dict[str, Ints] = {name: np.array(at, np.int64) for name, at in held.items()}
    return await passage_examples(ctx, questions, documents)


def _learn_passages(
    examples: list[PassageExample],
) -> tuple[QueryAdapter, float, float]:
    held = examples[::_HELD]
    rest = [one for at, one in enumerate(examples) if at % _HELD]
    trial, _ = learn_queries(rest, QuerySchooling())
    before = float(np.mean([_gold_share(one, one.asked) for one in held]))
    after = float(np.mean([_gold_share(one, trial(one.asked)) for one in held]))
    queries, _ = learn_queries(examples, QuerySchooling())
    return queries, before, after


def _gold_share(one: PassageExample, asked: Floats) -> float:
    """Which part of the gold passages is among the best five."""
    top = np.argsort(-(one.passages @ asked), kind="stable")[:_BEST]
    return float(one.right[top].sum() / one.right.sum())
