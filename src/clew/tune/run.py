"""Tunes retrieval: collects examples, fits adapters, measures them, and stores what helps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from clew.adapters import (
    AdaptedEmbedder,
    PathAdapter,
    QueryAdapter,
    SignalMix,
    Tuning,
    delete_tuning,
    save_tuning,
    without_tuning,
)
from clew.context import Context
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.evaluate.datasets import Question
from clew.graph.csr import Doubles, Floats, Ints
from clew.llm.embed import Embedder
from clew.recipes.default import CLEW
from clew.recipes.registry import get_recipe, resolve_recipe
from clew.retrieve.labels import embed_cached, load_short_texts
from clew.retrieve.step import Chain
from clew.tune.examples import (
    PathTrainingQuestion,
    collect_passage_examples,
    collect_path_examples,
    filter_with_gold,
)
from clew.tune.fit import (
    PassageExample,
    PathFitOptions,
    QueryFitOptions,
    fit_hop_classifier,
    fit_path_adapter,
    fit_query_adapter,
)
from clew.tune.signals import SignalTrial, fit_signals
from clew.types import Found

RECALL_AT = 5  # passages among which gold documents are counted
_MAX_QUESTIONS = 100  # questions a recipe is measured on: enough to see one point, in a few seconds
ProgressCallback = Callable[[str, int, int], None]
HOLDOUT_EVERY = 5  # every n-th example is held out for measurement
_MIN_EXAMPLES = 8  # examples needed at least
_TOP_PASSAGES = 5  # passages among which gold ones are counted
_PARTS = ("paths", "hops", "queries", "signals")  # of a tuning
_DEFAULT_RECIPES = ("clew", "naive", "hybrid")
"""Recipes that the query adapter is tried with, unless others are named."""


@dataclass(frozen=True, slots=True)
class RecipeTrial:
    """A recipe's recall on held-out questions, without and with the query adapter."""

    recipe: str
    before: float
    """Mean share of the gold documents among the first five passages."""
    after: float
    used: bool
    """Whether the gain is more than its standard error: only then does the recipe use it."""


@dataclass(frozen=True, slots=True)
class TuningReport:
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
    recipes: tuple[RecipeTrial, ...]
    """Trials of the query adapter with each recipe; those it helps use it."""
    signals: SignalTrial | None
    """Weights of walk, meaning, words and best sentence; None without gold documents."""
    kept: tuple[str, ...]
    """Which of paths, hops, queries and signals are better with it on the held-out questions."""
    seconds: dict[str, float]
    bytes: int
    """Stored; 0 when nothing is kept."""


async def tune(
    kb: KnowledgeBase,
    questions: Sequence[Question],
    progress: ProgressCallback,
    recipes: Sequence[str] = (),
) -> TuningReport:
    """Fit adapters from questions, and store what helps in place of the old tuning.

    The old tuning stays until then: a run that fails or is stopped changes nothing.

    The query adapter is tried with `recipes` (the default ones when none are named).
    """
    if kb.embed is None:
        raise ConfigError(
            "tuning needs an embedder, and none is configured; set [embed] in clew.toml"
        )
    chains = _find_chains(kb, recipes)  # raises for unknown names before the work begins
    started = perf_counter()
    async with kb.store.snapshot() as snapshot:
        ctx = await kb.context(snapshot, "tune")
        ctx = replace(ctx, view=without_tuning(ctx.view))  # fitted from scratch, not on top
        examples = await _collect_examples(kb, ctx, questions, progress)
        collected = perf_counter()
        progress("learn", 0, 1)
        labels = await embed_cached(ctx, await load_short_texts(ctx))
        tuning, result = _fit_paths(examples.paths, labels)
        queries, trials, recalls = await _fit_queries(ctx, examples, chains)
        signals, signal_trial = await _fit_signals(ctx, examples)
    if helped := tuple(one.recipe for one in trials if one.used):
        tuning = replace(tuning, queries=queries, helped_recipes=helped)
    tuning = replace(tuning, signals=signals)
    done = perf_counter()
    kept = tuple(name for name in _PARTS if getattr(tuning, name) is not None)
    if kept:
        size = await save_tuning(kb.store, kb.embed.name, tuning)
    else:
        size = 0
        await delete_tuning(kb.store, kb.embed.name)
    kb.forget_view()
    progress("learn", 1, 1)
    return TuningReport(
        *(len(questions), len(examples.paths), len(examples.passages)),
        *(result.before, result.after, *recalls, result.hops_before, result.hops),
        recipes=trials,
        signals=signal_trial,
        kept=kept,
        seconds={"examples": round(collected - started, 2), "learning": round(done - collected, 2)},
        bytes=size,
    )


def _find_chains(kb: KnowledgeBase, recipes: Sequence[str]) -> list[Chain]:
    """Return the recipes of these names, or those that are tried where none is named."""
    usual = (retriever_name(kb, kb.settings.recipe), *_DEFAULT_RECIPES)
    return [get_recipe(name, kb.recipes) for name in recipes or dict.fromkeys(usual)]


async def try_recipe(
    ctx: Context,
    chain: Chain,
    questions: Sequence[Question],
    learnt: QueryAdapter,
    documents: dict[str, Ints],
) -> RecipeTrial:
    """Run the held-out questions without and with the adapter."""
    assert ctx.embed is not None
    before = await measure_recalls(ctx, chain, questions, ctx.embed, documents)
    after = await measure_recalls(
        ctx, chain, questions, AdaptedEmbedder(ctx.embed, learnt), documents
    )
    gain = after - before
    standard_error = gain.std() / np.sqrt(len(gain))
    used = bool(gain.mean() > standard_error)
    return RecipeTrial(chain.name, float(before.mean()), float(after.mean()), used)


async def measure_recalls(
    ctx: Context,
    chain: Chain,
    questions: Sequence[Question],
    embed: Embedder,
    documents: dict[str, Ints],
) -> Doubles:
    """Return for each question the share of its gold documents that a recipe finds first."""
    found = []
    for question in questions[:_MAX_QUESTIONS]:
        asking = replace(
            ctx,
            question=question.text,
            given_entities=question.entities,
            embed=embed,
            trace=[],
            _vectors={},
        )
        chunks = (await chain(asking, Found())).chunks[:RECALL_AT]
        top = np.array([hit.at for hit in chunks], np.int64)
        gold = [documents[name] for name in question.gold if name in documents]
        found.append(np.mean([bool(np.isin(one, top).any()) for one in gold]))
    return np.array(found, np.float64)


@dataclass(frozen=True, slots=True)
class _TuningExamples:
    """The examples to fit from."""

    paths: list[PathTrainingQuestion]
    questions: list[Question]
    passages: list[PassageExample]
    documents: dict[str, Ints]


async def _collect_examples(
    kb: KnowledgeBase, ctx: Context, questions: Sequence[Question], progress: ProgressCallback
) -> _TuningExamples:
    paths = await _collect_paths(ctx, questions, progress)
    documents = await find_gold_chunks(kb, ctx, questions)
    asked = filter_with_gold(questions, documents)
    passages = await collect_passage_examples(ctx, asked, documents)
    most = max(len(paths), len(passages))
    if most < _MIN_EXAMPLES:
        raise ConfigError(
            f"tuning needs at least {_MIN_EXAMPLES} questions whose entities and answers, or gold "
            f"documents, are in the knowledge base; there are {most} of {len(questions)}"
        )
    return _TuningExamples(paths, asked, passages, documents)


def retriever_name(kb: KnowledgeBase, recipe: str) -> str:
    """Return the name of a recipe's retriever: agents have one too."""
    return resolve_recipe(recipe, kb.recipes).retrieve.name


def _relation_count(ctx: Context) -> int:
    return len(ctx.view.arrays.get("relation_fact", ()))


async def _collect_paths(
    ctx: Context, questions: Sequence[Question], progress: ProgressCallback
) -> list[PathTrainingQuestion]:
    usable = [q for q in questions if q.entities and q.answers]
    found = []
    done = 0
    async for one in collect_path_examples(ctx, usable):
        done += 1
        progress("examples", done, len(usable))
        if one is not None:
            found.append(one)
    return found


@dataclass(frozen=True, slots=True)
class _HoldoutResult:
    """Scores on the held-out questions."""

    before: float | None = None
    after: float | None = None
    hops_before: float | None = None
    hops: float | None = None


def _fit_paths(
    examples: list[PathTrainingQuestion], labels: Floats
) -> tuple[Tuning, _HoldoutResult]:
    """Fit on most to measure the gain, then on all; what brings no gain is left out."""
    if len(examples) < _MIN_EXAMPLES:
        return Tuning(), _HoldoutResult()
    held_out = examples[::HOLDOUT_EVERY]
    rest = [one for at, one in enumerate(examples) if at % HOLDOUT_EVERY]
    how = PathFitOptions()
    trial, _ = fit_path_adapter([one.path for one in rest], labels, how)
    choice = fit_hop_classifier(
        np.array([o.path.question for o in rest]), np.array([o.hops for o in rest])
    )
    result = _HoldoutResult(
        before=float(np.mean([one.ranked_first for one in held_out])),
        after=float(np.mean([_ranks_right_first(trial, one, labels) for one in held_out])),
        hops_before=float(np.mean([one.predicted_hops == one.hops for one in held_out])),
        hops=float(np.mean([choice.predict(one.path.question) == one.hops for one in held_out])),
    )
    tuning = Tuning()
    if (result.after or 0) > (result.before or 0):
        paths, _ = fit_path_adapter([one.path for one in examples], labels, how)
        tuning = replace(tuning, paths=paths)
    if (result.hops or 0) > (result.hops_before or 0):
        asked = np.array([one.path.question for one in examples])
        hops = fit_hop_classifier(asked, np.array([one.hops for one in examples]))
        tuning = replace(tuning, hops=hops)
    return tuning, result


def _ranks_right_first(adapter: PathAdapter, one: PathTrainingQuestion, labels: Floats) -> bool:
    example = one.path
    scores = adapter.score_paths(example.question, labels, example.codes, example.scores)
    return bool(example.is_right[int(scores.argmax())])


async def find_gold_chunks(
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


async def _fit_queries(
    ctx: Context, found: _TuningExamples, chains: Sequence[Chain]
) -> tuple[QueryAdapter | None, tuple[RecipeTrial, ...], tuple[float | None, float | None]]:
    """Return the adapter fitted on all, its trial with each recipe, and its gain by itself."""
    examples = found.passages
    if len(examples) < _MIN_EXAMPLES:
        return None, (), (None, None)
    held_out = examples[::HOLDOUT_EVERY]
    rest = [one for at, one in enumerate(examples) if at % HOLDOUT_EVERY]
    trial, _ = fit_query_adapter(rest, QueryFitOptions())
    before = float(np.mean([_gold_share(one, one.question) for one in held_out]))
    after = float(np.mean([_gold_share(one, trial(one.question)) for one in held_out]))
    asked = found.questions[::HOLDOUT_EVERY]
    trials = tuple([await try_recipe(ctx, one, asked, trial, found.documents) for one in chains])
    queries, _ = fit_query_adapter(examples, QueryFitOptions())
    return queries, trials, (before, after)


async def _fit_signals(
    ctx: Context, found: _TuningExamples
) -> tuple[SignalMix | None, SignalTrial | None]:
    if len(found.questions) < _MIN_EXAMPLES:
        return None, None
    return await fit_signals(ctx, CLEW, found.questions, found.documents)


def _gold_share(one: PassageExample, asked: Floats) -> float:
    top = np.argsort(-(one.passages @ asked), kind="stable")[:_TOP_PASSAGES]
    return float(one.is_right[top].sum() / one.is_right.sum())
