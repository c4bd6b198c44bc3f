"""Fine-tunes the local encoder from questions, and re-embeds the knowledge base with it."""

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np

from clew.adapt.choice import Choice
from clew.adapt.values import Floats
from clew.context import Context
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.evaluate.datasets import Question
from clew.graph.traverse import Ints
from clew.llm.embed import Embed
from clew.llm.embedders import ENCODER, embedder
from clew.llm.local_embed import LocalEmbed
from clew.llm.onnx_weights import read_weights, write_weights
from clew.recipes import recipe_named
from clew.retrieve.paths.meaning import WEIGHTS
from clew.retrieve.paths.ways import label_words
from clew.tune.choices import passage_choices, path_choice
from clew.tune.examples import path_examples, with_gold
from clew.tune.story import gold_chunks, retriever
from clew.tune.where import Tried, recalls
from clew.types import Kind
from clew.view import View

Tell = Callable[[str, int, int], None]
Learn = Callable[[Mapping[str, Floats], bytes, Sequence[Choice], Tell], dict[str, Floats]]

_KINDS: tuple[Kind, ...] = ("chunk", "entity", "fact")
_HELD = 5  # every n-th question is held out for measurement
_FEWEST = 40  # questions needed at least: an encoder has millions of parameters to overfit
_BEST = 5  # passages among which gold ones are counted
_GRAPH, _TOKENS = Path("onnx/model.onnx"), Path("tokenizer.json")


@dataclass(frozen=True, slots=True)
class Encoded:
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
    recipe: Tried | None
    """Recall of the configured recipe, with all vectors of the old and of the new encoder."""
    kept: bool
    embedder: str
    """The embedder of the knowledge base's vectors now."""
    seconds: dict[str, float]


async def tune_encoder(
    kb: KnowledgeBase, questions: Sequence[Question], learn: Learn, tell: Tell
) -> Encoded:
    """Train on four fifths; if the rest improves and nothing gets worse, re-embed everything."""
    base = _base(kb)
    started = perf_counter()
    async with kb.store.snapshot() as snapshot:
        ctx = await kb.context(snapshot, "tune")
        examples = await _seen(kb, ctx, base, questions, tell)
        collected_at = perf_counter()
        folder = kb.settings.kb / f"{ENCODER}.new" / ENCODER
        tuned = await _made(base, kb.settings.cache, folder, examples.choices(), learn, tell)
        trained_at = perf_counter()
        before = await examples.measured(ctx, kb.embed or base)
        after = await examples.measured(ctx, tuned)
    trial: Tried | None = None
    keep = _gains(before, after)
    if keep:
        keep, trial = await _moved_in(kb, tuned, folder, examples, tell)
    if not keep:
        tuned.weights.model.unlink(missing_ok=True)
    shutil.rmtree(folder.parent, ignore_errors=True)
    return Encoded(
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


async def _moved_in(
    kb: KnowledgeBase, tuned: LocalEmbed, folder: Path, examples: "_Seen", tell: Tell
) -> tuple[bool, Tried | None]:
    """Switch to the new encoder, and back again if the configured recipe finds less with it."""
    old, mine, aside = kb.embed, kb.settings.kb / ENCODER, folder.parent / "before"
    name = retriever(kb.settings.recipe)
    before = await examples.recall(kb, name)
    _exchange(folder, mine, aside)
    try:
        await _switched(kb, replace(tuned, folder=mine), tell)
    finally:
        manifest = await kb.store.recall("manifest", ["embedder"])
        if manifest.get("embedder") != tuned.name:  # it failed or was stopped
            _put_back(aside, mine)
    after = await examples.recall(kb, name)
    if before is None or after is None:
        return True, None
    if after >= before:
        return True, Tried(name, before, after, used=True)
    if old is not None:
        await _switched(kb, old, tell)
    _put_back(aside, mine)
    return False, Tried(name, before, after, used=False)


def _exchange(new: Path, mine: Path, aside: Path) -> None:
    """Move a folder into its place, and the one that was there aside."""
    if mine.is_dir():
        mine.rename(aside)
    if new.is_dir():
        new.rename(mine)


def _put_back(aside: Path, mine: Path) -> None:
    shutil.rmtree(mine)
    _exchange(aside, mine, aside)


async def forget_encoder(kb: KnowledgeBase, tell: Tell) -> bool:
    """Switch back to the configured embedder, where a tuned encoder is in use."""
    mine = kb.settings.kb / ENCODER
    if not mine.is_dir():
        return False
    if kb.embed is not None and kb.embed.name.startswith(f"{ENCODER}-"):
        await _switched(kb, embedder(kb.settings.embed, kb.settings.cache), tell)
    shutil.rmtree(mine)
    return True


def _base(kb: KnowledgeBase) -> LocalEmbed:
    """Return the encoder to start from: always the original, never a tuned one."""
    base = embedder(kb.settings.embed, kb.settings.cache)
    if kb.embed is None or not isinstance(base, LocalEmbed):
        raise ConfigError(
            "only the local encoder can be learnt further; set [embed] model = 'local', or "
            "`clew tune` without --encoder"
        )
    return base


async def _made(
    base: LocalEmbed, cache: Path, folder: Path, choices: list[Choice], learn: Learn, tell: Tell
) -> LocalEmbed:
    """Train, and write the new weights as a folder that the local embedder reads."""
    if len(choices) < _FEWEST:
        raise ConfigError(
            f"{len(choices)} questions to learn from have entities and answers, or gold documents, "
            f"that are here; an encoder needs {_FEWEST}"
        )

    def work() -> None:
        files = base.weights
        tokens = files.tokenizer.read_bytes()
        weights = learn(read_weights(files.graph), tokens, choices, tell)
        shutil.rmtree(folder.parent, ignore_errors=True)  # what a killed run left
        write_weights(files.graph, weights, folder / _GRAPH)
        (folder / _TOKENS).write_bytes(tokens)

    await asyncio.to_thread(work)
    return LocalEmbed(cache, folder=folder, precision=base.weights.precision)


async def _switched(kb: KnowledgeBase, embed: Embed, tell: Tell) -> None:
    """Re-embed all kinds that have vectors; the knowledge base switches to them atomically."""
    old_name = kb.embed.name if kb.embed else ""
    kinds = [kind for kind in _KINDS if len(kb.store.vectors(old_name, kind).matrix())]
    await replace(kb.builder, embed=embed).reembed(tell, only=kinds)
    kb.embed = embed
    kb.__dict__.pop("builder", None)
    kb.forget_view()


@dataclass(frozen=True, slots=True)
class _Marks:
    paths: float | None
    passages: float | None


def _gains(before: _Marks, after: _Marks) -> bool:
    """Tell whether some score improves and none gets worse."""
    pairs = ((before.paths, after.paths), (before.passages, after.passages))
    gains = [b - a for a, b in pairs if a is not None and b is not None]
    return bool(gains) and min(gains) >= 0 and max(gains) > 0


@dataclass(frozen=True, slots=True)
class _Seen:
    """Questions by what can be learnt from them; every fifth is held out."""

    paths: list[tuple[Question, Choice]]
    passages: list[Choice]
    asked: list[Question]
    """The questions that `passages` were made from."""
    documents: dict[str, Ints]

    def choices(self) -> list[Choice]:
        """Return the training examples."""
        paths = [choice for _, choice in self.paths]
        return [one for part in (paths, self.passages) for at, one in enumerate(part) if at % _HELD]

    async def recall(self, kb: KnowledgeBase, recipe: str) -> float | None:
        """Measure the gold documents a recipe finds for the held-out questions."""
        if kb.embed is None or not self.asked:
            return None
        async with kb.store.snapshot() as snapshot:
            ctx = await kb.context(snapshot, "tune")
            chain, held_out = recipe_named(recipe), self.asked[::_HELD]
            return float((await recalls(ctx, chain, held_out, kb.embed, self.documents)).mean())

    async def measured(self, ctx: Context, embed: Embed) -> _Marks:
        """Measure an encoder on the held-out questions, with its own vectors alone."""
        bare = _bare(ctx, embed)
        asked = [question for question, _ in self.paths[::_HELD]]
        first = [one.first async for one in path_examples(bare, asked, WEIGHTS) if one is not None]
        shares = await _shares(embed, self.passages[::_HELD])
        return _Marks(
            float(np.mean(first)) if first else None, float(np.mean(shares)) if shares else None
        )


def _bare(ctx: Context, embed: Embed) -> Context:
    """Return a context without stored vectors, which are another encoder's, and without tuning."""
    view = View(ctx.view.arrays, {}, ctx.view.generation)
    return replace(ctx, view=view, embed=embed, trace=[], _vectors={})


async def _seen(
    kb: KnowledgeBase, ctx: Context, base: Embed, questions: Sequence[Question], tell: Tell
) -> _Seen:
    bare = _bare(ctx, base)
    words = await label_words(bare)
    usable = [q for q in questions if q.entities and q.answers]
    paths: list[tuple[Question, Choice]] = []
    done = 0
    async for one in path_examples(bare, usable, WEIGHTS):
        if one is not None:
            paths.append((usable[done], path_choice(one, words)))
        done += 1
        tell("examples", done, len(usable))
    documents = await gold_chunks(kb, ctx, questions)
    asked = with_gold(questions, documents)
    passages = await passage_choices(ctx, ctx.snapshot, asked, documents)
    return _Seen(paths, passages, asked, documents)


async def _shares(embed: Embed, choices: Sequence[Choice]) -> list[float]:
    """Return for each question the share of its gold passages among the nearest five."""
    found = []
    for example in choices:
        texts = [text for (text,) in (*example.right, *example.wrong)]
        [vector] = await embed([example.asked], role="query")
        near = np.argsort(-(await embed(texts) @ vector), kind="stable")[:_BEST]
        found.append(float((near < len(example.right)).sum() / min(len(example.right), _BEST)))
    return found
