"""Tunes retrieval: collects examples, fits adapters, measures them, and stores what helps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from clew.adapt.keep import kept, untaught
from clew.adapt.learn_paths import Schooling, learn_hops, learn_paths
from clew.adapt.learn_queries import PassageExample, QuerySchooling, learn_queries
from clew.adapt.values import Floats, PathAdapter, QueryAdapter, Tuning, slots
from clew.context import Context
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.evaluate.datasets import Question
from clew.graph.traverse import Ints
from clew.recipes import asked_named, recipe_named
from clew.retrieve.paths.label_meaning import label_meaning
from clew.retrieve.paths.meaning import WEIGHTS
from clew.tune.examples import Learnable, passage_examples, path_examples, with_gold
from clew.tune.where import Tried, tried

Tell = Callable[[str, int, int], None]

_HELD = 5  # every n-th example is held out for measurement
_FEWEST = 8  # examples needed at least
_BEST = 5  # passages among which gold ones are counted
_USUAL = ("clew", "naive", "hybrid")
"""Recipes that the query adapter is tried with, unless others are named."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """The number of examples, the scores before and after, and the cost."""

    questions: int
    paths: int
    """Questions whose right relation paths follow from their answers."""
    passages: int
    """Questions with gold documents in the knowledge base."""
    before: float | None
    after: float | None
    """Share of held-out questions whose best path is right, without and with tuning."""
    passages_before: float | None
    passages_after: float | None
    """The same for passages: the share of gold ones among the best five."""
    hops_before: float | None
    hops: float | None
    """Share of held-out questions whose number of hops is predicted right."""
    recipes: tuple[Tried, ...]
    """Trials of the query adapter with each recipe; those it helps use it."""
    seconds: dict[str, float]
    bytes: int


async def tune(
    kb: KnowledgeBase, questions: Sequence[Question], tell: Tell, recipes: Sequence[str] = ()
) -> Learnt:
    """Fit adapters from questions, and store what helps in place of the old tuning.

    The old tuning stays until then: a run that fails or is stopped changes nothing.

    The query adapter is tried with `recipes` (the default ones when none are named).
    """
    if kb.embed is None:
        raise ConfigError("there is no embedder to adapt; set [embed] in clew.toml")
    recipe_names = tuple(recipes) or tuple(dict.fromkeys([retriever(kb.settings.recipe), *_USUAL]))
    for name in recipe_names:
        recipe_named(name)  # raises for unknown names before the work begins
    started = perf_counter()
    async with kb.store.snapshot() as snapshot:
        ctx = await kb.context(snapshot, "tune")
        ctx = replace(ctx, view=untaught(ctx.view))  # fitted from scratch, not on top
        examples = await _gathered(kb, ctx, questions, tell)
        collected = perf_counter()
        tell("learn", 0, 1)
        labels = (await label_meaning(ctx, np.arange(_relations(ctx)))).whole
        tuning, result = _learn_paths(examples.paths, labels)
        queries, trials, recalls = await _learn_passages(ctx, examples, recipe_names)
    if helped := tuple(one.recipe for one in trials if one.used):
        tuning = replace(tuning, queries=queries, helped=helped)
    done = perf_counter()
    size = await kept(kb.store, kb.embed.name, tuning)
    kb.forget_view()
    tell("learn", 1, 1)
    return Learnt(
        *(len(questions), len(examples.paths), len(examples.passages)),
        *(result.before, result.after, *recalls, result.hops_before, result.hops),
        recipes=trials,
        seconds={"examples": round(collected - started, 2), "learning": round(done - collected, 2)},
        bytes=size,
    )


@dataclass(frozen=True, slots=True)
class _Material:
    """The examples to fit from."""

    paths: list[Learnable]
    asked: list[Question]
    passages: list[PassageExample]
    documents: dict[str, Ints]


async def _gathered(
    kb: KnowledgeBase, ctx: Context, questions: Sequence[Question], tell: Tell
) -> _Material:
    paths = await _paths(ctx, questions, tell)
    documents = await gold_chunks(kb, ctx, questions)
    asked = with_gold(questions, documents)
    passages = await passage_examples(ctx, asked, documents)
    most = max(len(paths), len(passages))
    if most < _FEWEST:
        raise ConfigError(
            f"of {len(questions)} questions only {most} have entities and answers, or gold "
            f"documents, that are here; {_FEWEST} are needed"
        )
    return _Material(paths, asked, passages, documents)


def retriever(recipe: str) -> str:
    """Return the name of a recipe's retriever: agents have one too."""
    return asked_named(recipe).retrieve.name


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


@dataclass(frozen=True, slots=True)
class _Known:
    """Scores on the held-out questions."""

    before: float | None = None
    after: float | None = None
    hops_before: float | None = None
    hops: float | None = None


def _learn_paths(examples: list[Learnable], labels: Floats) -> tuple[Tuning, _Known]:
    """Fit on most to measure the gain, then on all; what brings no gain is left out."""
    if len(examples) < _FEWEST:
        return Tuning(), _Known()
    held_out = examples[::_HELD]
    rest = [one for at, one in enumerate(examples) if at % _HELD]
    how = Schooling()
    trial, _ = learn_paths([one.path for one in rest], labels, WEIGHTS, how)
    choice = learn_hops(np.array([o.path.asked for o in rest]), np.array([o.hops for o in rest]))
    result = _Known(
        before=float(np.mean([one.first for one in held_out])),
        after=float(np.mean([_right_first(trial, one, labels) for one in held_out])),
        hops_before=float(np.mean([one.counted == one.hops for one in held_out])),
        hops=float(np.mean([choice.most_likely(one.path.asked) == one.hops for one in held_out])),
    )
    tuning = Tuning()
    if (result.after or 0) > (result.before or 0):
        paths, _ = learn_paths([one.path for one in examples], labels, WEIGHTS, how)
        tuning = replace(tuning, paths=paths)
    if (result.hops or 0) > (result.hops_before or 0):
        asked = np.array([one.path.asked for one in examples])
        hops = learn_hops(asked, np.array([one.hops for one in examples]))
        tuning = replace(tuning, hops=hops)
    return tuning, result


def _right_first(adapter: PathAdapter, one: Learnable, labels: Floats) -> bool:
    example = one.path
    table = adapter.table(example.asked, labels)
    row, column = np.nonzero(example.codes >= 0)
    step = table[slots(example.codes)[row, column], example.codes[row, column] >> 1]
    scores = example.seen @ adapter.weights + np.bincount(row, step, minlength=len(example.codes))
    return bool(example.right[int(scores.argmax())])


async def gold_chunks(
    kb: KnowledgeBase, ctx: Context, questions: Sequence[Question]
) -> dict[str, Ints]:
    """Return the chunks of every known gold document, by its name."""
    wanted = {doc for question in questions for doc in question.gold}
    if not wanted:
        return {}
    sources = await kb.store.sources()
    ids = {sources[name].document: name for name in wanted if name in sources}
    keys = ctx.view.keys("chunk")
    chunks = await ctx.snapshot.chunks(keys.tolist())
    found: dict[str, list[int]] = {}
    for at, key in enumerate(keys.tolist()):
        name = ids.get(chunks[key].document)
        if name is not None:
            found.setdefault(name, []).append(at)
    return {name: np.array(at, np.int64) for name, at in found.items()}


async def _learn_passages(
    ctx: Context, found: _Material, recipes: Sequence[str]
) -> tuple[QueryAdapter | None, tuple[Tried, ...], tuple[float | None, float | None]]:
    """Return the adapter fitted on all, its trial with each recipe, and its gain by itself."""
    examples = found.passages
    if len(examples) < _FEWEST:
        return None, (), (None, None)
    held_out = examples[::_HELD]
    rest = [one for at, one in enumerate(examples) if at % _HELD]
    trial, _ = learn_queries(rest, QuerySchooling())
    before = float(np.mean([_gold_share(one, one.asked) for one in held_out]))
    after = float(np.mean([_gold_share(one, trial(one.asked)) for one in held_out]))
    asked = found.asked[::_HELD]
    trials = tuple([await tried(ctx, one, asked, trial, found.documents) for one in recipes])
    queries, _ = learn_queries(examples, QuerySchooling())
    return queries, trials, (before, after)


def _gold_share(one: PassageExample, asked: Floats) -> float:
    """Return the share of the gold passages among the best five."""
    top = np.argsort(-(one.passages @ asked), kind="stable")[:_BEST]
    return float(one.right[top].sum() / one.right.sum())
