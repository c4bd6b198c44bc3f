"""Fine-tunes the local encoder from questions, and re-embeds the knowledge base with it."""

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

from clew.adapters import ContrastiveExample
from clew.context import Context
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.evaluate.datasets import Question
from clew.graph.csr import Floats, Ints
from clew.index.view import View
from clew.llm.embed import Embedder
from clew.llm.embed_local import LocalEmbedder
from clew.llm.embed_weights import read_weights, write_weights
from clew.llm.factory import TUNED_ENCODER, create_embedder
from clew.recipes.registry import get_recipe
from clew.retrieve.labels import load_relation_texts
from clew.store.merge import embedded_text
from clew.store.protocol import Snapshot
from clew.tune.examples import PathTrainingQuestion, collect_path_examples, filter_with_gold
from clew.tune.run import (
    HOLDOUT_EVERY,
    ProgressCallback,
    RecipeTrial,
    find_gold_chunks,
    measure_recalls,
    retriever_name,
)
from clew.types import Kind

_MAX_NEGATIVES = 8  # hard negatives of one question
LearnEncoder = Callable[
    [Mapping[str, Floats], bytes, Sequence[ContrastiveExample], ProgressCallback], dict[str, Floats]
]
_VECTOR_KINDS: tuple[Kind, ...] = ("chunk", "entity", "fact")
_MIN_QUESTIONS = 40  # questions needed at least: an encoder has millions of parameters to overfit
RECALL_AT = 5  # passages among which gold ones are counted
_MODEL_FILE, _TOKENIZER_FILE = Path("onnx/model.onnx"), Path("tokenizer.json")


@dataclass(frozen=True, slots=True)
class EncoderTuningReport:
    """The number of training questions, the scores before and after, and whether it was kept."""

    questions: int
    paths: int
    passages: int
    before: float | None
    after: float | None
    """Share of held-out questions whose best path is right, by the old and by the new encoder."""
    passages_before: float | None
    passages_after: float | None
    """Share of the gold passages among the nearest five, negatives included."""
    recipe: RecipeTrial | None
    """Recall of the configured recipe, with all vectors of the old and of the new encoder."""
    kept: bool
    embedder: str
    """The embedder of the knowledge base's vectors now."""
    seconds: dict[str, float]


async def tune_encoder(
    kb: KnowledgeBase,
    questions: Sequence[Question],
    learn: LearnEncoder,
    progress: ProgressCallback,
) -> EncoderTuningReport:
    """Train on four fifths; if the rest improves and nothing gets worse, re-embed everything."""
    base = _base_encoder(kb)
    started = perf_counter()
    async with kb.store.snapshot() as snapshot:
        ctx = await kb.context(snapshot, "tune")
        examples = await _collect_questions(kb, ctx, base, questions, progress)
        collected_at = perf_counter()
        folder = kb.settings.folder / f"{TUNED_ENCODER}.new" / TUNED_ENCODER
        tuned = await _train_encoder(
            base, kb.settings.cache, folder, examples.training_examples(), learn, progress
        )
        trained_at = perf_counter()
        before = await examples.measure(ctx, kb.embed or base)
        after = await examples.measure(ctx, tuned)
    trial: RecipeTrial | None = None
    keep = is_improvement(before, after)
    if keep:
        keep, trial = await _adopt_encoder(kb, tuned, folder, examples, progress)
    if not keep:
        tuned.weights.model.unlink(missing_ok=True)
    shutil.rmtree(folder.parent, ignore_errors=True)
    return EncoderTuningReport(
        *(len(questions), len(examples.paths), len(examples.passages)),
        *(before.paths, after.paths, before.passages, after.passages),
        recipe=trial,
        kept=keep,
        embedder=kb.embed.name if kb.embed else "",
        seconds={
            "examples": round(collected_at - started, 2),
            "learning": round(trained_at - collected_at, 2),
            "vectors": round(perf_counter() - trained_at, 2),
        },
    )


async def forget_encoder(kb: KnowledgeBase, progress: ProgressCallback) -> bool:
    """Switch back to the configured embedder, where a tuned encoder is in use."""
    mine = kb.settings.folder / TUNED_ENCODER
    if not mine.is_dir():
        return False
    if kb.embed is not None and kb.embed.name.startswith(f"{TUNED_ENCODER}-"):
        await _switch_embedder(kb, create_embedder(kb.settings.embed, kb.settings.cache), progress)
    shutil.rmtree(mine)
    return True


def make_contrastive_path(example: PathTrainingQuestion, words: list[str]) -> ContrastiveExample:
    """Return the relations of right paths, and of the best-scored wrong ones, in any order."""
    rows: list[list[int]] = example.path.codes.tolist()
    texts = [tuple(sorted(words[code >> 1] for code in row if code >= 0)) for row in rows]
    right = dict.fromkeys(texts[at] for at in np.flatnonzero(example.path.is_right).tolist())
    order = np.argsort(-example.path.scores, kind="stable").tolist()
    wrong = [text for text in dict.fromkeys(texts[at] for at in order) if text not in right]
    return ContrastiveExample(example.rest, tuple(right), tuple(wrong[:_MAX_NEGATIVES]))


async def make_contrastive_passages(
    ctx: Context, now: Snapshot, questions: Sequence[Question], documents: Mapping[str, Ints]
) -> list[ContrastiveExample]:
    """Return the gold passages of each question, and the nearest others as negatives."""
    keys = ctx.view.keys("chunk")
    found = []
    for question in questions:
        gold = np.unique(np.concatenate([documents[d] for d in question.gold if d in documents]))
        asked = await ctx.vector(question.text)
        near, _ = ctx.nearest("chunk", asked, _MAX_NEGATIVES + len(gold))
        wrong = near[~np.isin(near, gold)][:_MAX_NEGATIVES]
        wanted = keys[np.append(gold, wrong).astype(np.int64)].tolist()
        fetched = await now.chunks(wanted)
        texts = [(embedded_text(fetched[key]),) for key in wanted]
        found.append(
            ContrastiveExample(question.text, tuple(texts[: len(gold)]), tuple(texts[len(gold) :]))
        )
    return found


async def _adopt_encoder(
    kb: KnowledgeBase,
    tuned: LocalEmbedder,
    folder: Path,
    examples: "_TuningQuestions",
    progress: ProgressCallback,
) -> tuple[bool, RecipeTrial | None]:
    """Switch to the new encoder, and back again if the configured recipe finds less with it."""
    old, mine, aside = kb.embed, kb.settings.folder / TUNED_ENCODER, folder.parent / "before"
    name = retriever_name(kb, kb.settings.recipe)
    before = await examples.measure_recall(kb, name)
    _swap_folder(folder, mine, aside)
    try:
        await _switch_embedder(kb, replace(tuned, folder=mine), progress)
    finally:
        manifest = await kb.store.get("manifest", ["embedder"])
        if manifest.get("embedder") != tuned.name:  # it failed or was stopped
            _restore_folder(aside, mine)
    after = await examples.measure_recall(kb, name)
    if before is None or after is None:
        return True, None
    if after >= before:
        return True, RecipeTrial(name, before, after, used=True)
    if old is not None:
        await _switch_embedder(kb, old, progress)
    _restore_folder(aside, mine)
    return False, RecipeTrial(name, before, after, used=False)


def _swap_folder(new: Path, mine: Path, aside: Path) -> None:
    """Move a folder into its place, and the one that was there aside."""
    if mine.is_dir():
        mine.rename(aside)
    if new.is_dir():
        new.rename(mine)


def _restore_folder(aside: Path, mine: Path) -> None:
    shutil.rmtree(mine)
    _swap_folder(aside, mine, aside)


def _base_encoder(kb: KnowledgeBase) -> LocalEmbedder:
    """Return the encoder to start from: always the original, never a tuned one."""
    base = create_embedder(kb.settings.embed, kb.settings.cache)
    if kb.embed is None or not isinstance(base, LocalEmbedder):
        raise ConfigError(
            "only the local encoder can be fine-tuned; set model = 'local' under [embed] in "
            "clew.toml, or run `clew tune` without --encoder"
        )
    return base


async def _train_encoder(
    base: LocalEmbedder,
    cache: Path,
    folder: Path,
    choices: list[ContrastiveExample],
    learn: LearnEncoder,
    progress: ProgressCallback,
) -> LocalEmbedder:
    """Train, and write the new weights as a folder that the local embedder reads."""
    if len(choices) < _MIN_QUESTIONS:
        raise ConfigError(
            f"fine-tuning needs at least {_MIN_QUESTIONS} questions whose entities and answers, or "
            f"gold documents, are in the knowledge base; there are {len(choices)}"
        )

    def work() -> None:
        files = base.weights
        tokens = files.tokenizer.read_bytes()
        weights = learn(read_weights(files.full_precision), tokens, choices, progress)
        shutil.rmtree(folder.parent, ignore_errors=True)  # what a killed run left
        write_weights(files.full_precision, weights, folder / _MODEL_FILE)
        (folder / _TOKENIZER_FILE).write_bytes(tokens)

    await asyncio.to_thread(work)
    return LocalEmbedder(cache, folder=folder, precision=base.weights.precision)


async def _switch_embedder(kb: KnowledgeBase, embed: Embedder, progress: ProgressCallback) -> None:
    """Re-embed all kinds that have vectors; the knowledge base switches to them atomically."""
    old_name = kb.embed.name if kb.embed else ""
    kinds = [kind for kind in _VECTOR_KINDS if len(kb.store.vectors(old_name, kind).matrix())]
    await replace(kb.builder, embed=embed).reembed(progress, only=kinds)
    kb.embed = embed
    kb.__dict__.pop("builder", None)
    kb.forget_view()


@dataclass(frozen=True, slots=True)
class _HoldoutScores:
    paths: float | None
    passages: float | None


def is_improvement(before: _HoldoutScores, after: _HoldoutScores) -> bool:
    """Whether nothing got worse and something got better."""
    pairs = ((before.paths, after.paths), (before.passages, after.passages))
    gains = [b - a for a, b in pairs if a is not None and b is not None]
    return bool(gains) and min(gains) >= 0 and max(gains) > 0


@dataclass(frozen=True, slots=True)
class _TuningQuestions:
    """Questions by what can be learnt from them; every fifth is held out."""

    paths: list[tuple[Question, ContrastiveExample]]
    passages: list[ContrastiveExample]
    questions: list[Question]
    """The questions that `passages` were made from."""
    documents: dict[str, Ints]

    def training_examples(self) -> list[ContrastiveExample]:
        """Return the training examples."""
        paths = [choice for _, choice in self.paths]
        return [
            one
            for part in (paths, self.passages)
            for at, one in enumerate(part)
            if at % HOLDOUT_EVERY
        ]

    async def measure_recall(self, kb: KnowledgeBase, recipe: str) -> float | None:
        """Measure the gold documents a recipe finds for the held-out questions."""
        if kb.embed is None or not self.questions:
            return None
        async with kb.store.snapshot() as snapshot:
            ctx = await kb.context(snapshot, "tune")
            chain, held_out = get_recipe(recipe, kb.recipes), self.questions[::HOLDOUT_EVERY]
            return float(
                (await measure_recalls(ctx, chain, held_out, kb.embed, self.documents)).mean()
            )

    async def measure(self, ctx: Context, embed: Embedder) -> _HoldoutScores:
        """Measure an encoder on the held-out questions, with its own vectors alone."""
        bare = _without_vectors(ctx, embed)
        asked = [question for question, _ in self.paths[::HOLDOUT_EVERY]]
        first = [
            one.ranked_first async for one in collect_path_examples(bare, asked) if one is not None
        ]
        shares = await _measure_shares(embed, self.passages[::HOLDOUT_EVERY])
        return _HoldoutScores(
            float(np.mean(first)) if first else None, float(np.mean(shares)) if shares else None
        )


def _without_vectors(ctx: Context, embed: Embedder) -> Context:
    """Return a context without stored vectors, which are another encoder's, and without tuning."""
    view = View(ctx.view.arrays, {}, ctx.view.generation)
    return replace(ctx, view=view, embed=embed, trace=[], _vectors={})


async def _collect_questions(
    kb: KnowledgeBase,
    ctx: Context,
    base: Embedder,
    questions: Sequence[Question],
    progress: ProgressCallback,
) -> _TuningQuestions:
    bare = _without_vectors(ctx, base)
    words = await load_relation_texts(bare)
    usable = [q for q in questions if q.entities and q.answers]
    paths: list[tuple[Question, ContrastiveExample]] = []
    done = 0
    async for one in collect_path_examples(bare, usable):
        if one is not None:
            paths.append((usable[done], make_contrastive_path(one, words)))
        done += 1
        progress("examples", done, len(usable))
    documents = await find_gold_chunks(kb, ctx, questions)
    asked = filter_with_gold(questions, documents)
    passages = await make_contrastive_passages(ctx, ctx.snapshot, asked, documents)
    return _TuningQuestions(paths, passages, asked, documents)


async def _measure_shares(embed: Embedder, choices: Sequence[ContrastiveExample]) -> list[float]:
    """Return for each question the share of its gold passages among the nearest five."""
    found = []
    for example in choices:
        texts = [text for (text,) in (*example.positives, *example.negatives)]
        [vector] = await embed([example.question], role="query")
        near = np.argsort(-(await embed(texts) @ vector), kind="stable")[:RECALL_AT]
        found.append(
            float((near < len(example.positives)).sum() / min(len(example.positives), RECALL_AT))
        )
    return found
