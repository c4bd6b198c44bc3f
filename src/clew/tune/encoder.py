"""The encoder itself, learnt further from questions and kept with the knowledge base."""

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
_HELD = 5  # every so many-th question is held back to see what learning brings
_FEWEST = 40  # questions to learn from at least: an encoder has millions of numbers to lead astray
_BEST = 5  # passages among which gold ones are counted
_GRAPH, _TOKENS = Path("onnx/model.onnx"), Path("tokenizer.json")


@dataclass(frozen=True, slots=True)
class Encoded:
    """What an encoder was learnt from, what it brings, and whether it stays."""

    questions: int
    paths: int
    passages: int
    before: float | None
    after: float | None
    """Share of questions held back whose best path is right, by the old and by the new encoder."""
    passages_before: float | None
    passages_after: float | None
    """Part of the gold passages that comes before all but four of those that only seem right."""
    recipe: Tried | None
    """What the usual recipe finds, with all vectors made by the old and by the new encoder."""
    kept: bool
    embedder: str
    """The one that the knowledge base's vectors are of now."""
    seconds: dict[str, float]


async def tune_encoder(
    kb: KnowledgeBase, questions: Sequence[Question], learn: Learn, tell: Tell
) -> Encoded:
    """Learn from four fifths; where the rest gains and loses nothing, make all vectors anew."""
    base = _base(kb)
    started = perf_counter()
    async with kb.store.snapshot() as now:
        ctx = await kb.context(now, "tune")
        seen = await _seen(kb, ctx, base, questions, tell)
        gathered = perf_counter()
        room = kb.settings.kb / f"{ENCODER}.new" / ENCODER
        made = await _made(base, kb.settings.cache, room, seen.choices(), learn, tell)
        learnt = perf_counter()
        before = await seen.measured(ctx, kb.embed or base)
        after = await seen.measured(ctx, made)
    usual: Tried | None = None
    stays = _gains(before, after)
    if stays:
        stays, usual = await _moved_in(kb, made, room, seen, tell)
    if not stays:
        made.weights.model.unlink(missing_ok=True)
    shutil.rmtree(room.parent, ignore_errors=True)
    return Encoded(
        *(len(questions), len(seen.paths), len(seen.passages)),
        *(before.paths, after.paths, before.passages, after.passages),
        recipe=usual,
        kept=stays,
        embedder=kb.embed.name if kb.embed else "",
        seconds={
            "examples": round(gathered - started, 2),
            "learning": round(learnt - gathered, 2),
            "vectors": round(perf_counter() - learnt, 2),
        },
    )


async def _moved_in(
    kb: KnowledgeBase, made: LocalEmbed, room: Path, seen: "_Seen", tell: Tell
) -> tuple[bool, Tried | None]:
    """Go over to the new encoder, and back again if the usual recipe finds less with it."""
    old, mine, aside = kb.embed, kb.settings.kb / ENCODER, room.parent / "before"
    name = retriever(kb.settings.recipe)
    before = await seen.recall(kb, name)
    _exchange(room, mine, aside)
    try:
        await _switched(kb, replace(made, folder=mine), tell)
    finally:
        manifest = await kb.store.recall("manifest", ["embedder"])
        if manifest.get("embedder") != made.name:  # it failed or was stopped
            _put_back(aside, mine)
    after = await seen.recall(kb, name)
    if before is None or after is None:
        return True, None
    if after >= before:
        return True, Tried(name, before, after, used=True)
    if old is not None:
        await _switched(kb, old, tell)
    _put_back(aside, mine)
    return False, Tried(name, before, after, used=False)


def _exchange(new: Path, mine: Path, aside: Path) -> None:
    """Put a folder in its place, and what was there aside."""
    if mine.is_dir():
        mine.rename(aside)
    if new.is_dir():
        new.rename(mine)


def _put_back(aside: Path, mine: Path) -> None:
    shutil.rmtree(mine)
    _exchange(aside, mine, aside)


async def forget_encoder(kb: KnowledgeBase, tell: Tell) -> bool:
    """Go back to the settings' embedder, where an own encoder is in use."""
    mine = kb.settings.kb / ENCODER
    if not mine.is_dir():
        return False
    if kb.embed is not None and kb.embed.name.startswith(f"{ENCODER}-"):
        await _switched(kb, embedder(kb.settings.embed, kb.settings.cache), tell)
    shutil.rmtree(mine)
    return True


def _base(kb: KnowledgeBase) -> LocalEmbed:
    """What is learnt further: always the encoder as it was given, never one learnt before."""
    base = embedder(kb.settings.embed, kb.settings.cache)
    if kb.embed is None or not isinstance(base, LocalEmbed):
        raise ConfigError(
            "only the local encoder can be learnt further; set [embed] model = 'local', or "
            "`clew tune` without --encoder"
        )
    return base


async def _made(
    base: LocalEmbed, cache: Path, room: Path, choices: list[Choice], learn: Learn, tell: Tell
) -> LocalEmbed:
    """Learn, and write the new weights as a folder that the local embedder reads."""
    if len(choices) < _FEWEST:
        raise ConfigError(
            f"{len(choices)} questions to learn from have entities and answers, or gold documents, "
            f"that are here; an encoder needs {_FEWEST}"
        )

    def work() -> None:
        files = base.weights
        tokens = files.tokenizer.read_bytes()
        weights = learn(read_weights(files.graph), tokens, choices, tell)
        shutil.rmtree(room.parent, ignore_errors=True)  # what a killed run left
        write_weights(files.graph, weights, room / _GRAPH)
        (room / _TOKENS).write_bytes(tokens)

    await asyncio.to_thread(work)
    return LocalEmbed(cache, folder=room, precision=base.weights.precision)


async def _switched(kb: KnowledgeBase, embed: Embed, tell: Tell) -> None:
    """Make the vectors there are anew; the knowledge base goes over to them in one step."""
    held = kb.embed.name if kb.embed else ""
    there = [kind for kind in _KINDS if len(kb.store.vectors(held, kind).matrix())]
    await replace(kb.builder, embed=embed).reembed(tell, only=there)
    kb.embed = embed
    kb.__dict__.pop("builder", None)
    kb.forget_view()


@dataclass(frozen=True, slots=True)
class _Marks:
    paths: float | None
    passages: float | None


def _gains(before: _Marks, after: _Marks) -> bool:
    """Nothing is lost, and something is won."""
    pairs = ((before.paths, after.paths), (before.passages, after.passages))
    gains = [b - a for a, b in pairs if a is not None and b is not None]
    return bool(gains) and min(gains) >= 0 and max(gains) > 0


@dataclass(frozen=True, slots=True)
class _Seen:
    """Questions by what can be learnt from them; every fifth is held back."""

    paths: list[tuple[Question, Choice]]
    passages: list[Choice]
    asked: list[Question]
    """Those that `passages` were made from."""
    documents: dict[str, Ints]

    def choices(self) -> list[Choice]:
        """What to learn from."""
        told = [choice for _, choice in self.paths]
        return [one for part in (told, self.passages) for at, one in enumerate(part) if at % _HELD]

    async def recall(self, kb: KnowledgeBase, recipe: str) -> float | None:
        """How much of the gold documents a recipe finds for the questions held back."""
        if kb.embed is None or not self.asked:
            return None
        async with kb.store.snapshot() as now:
            ctx = await kb.context(now, "tune")
            chain, held = recipe_named(recipe), self.asked[::_HELD]
            return float((await recalls(ctx, chain, held, kb.embed, self.documents)).mean())

    async def measured(self, ctx: Context, embed: Embed) -> _Marks:
        """How an encoder does on what is held back, with vectors of its own alone."""
        bare = _bare(ctx, embed)
        asked = [question for question, _ in self.paths[::_HELD]]
        first = [one.first async for one in path_examples(bare, asked, WEIGHTS) if one is not None]
        shares = await _shares(embed, self.passages[::_HELD])
        return _Marks(
            float(np.mean(first)) if first else None, float(np.mean(shares)) if shares else None
        )


def _bare(ctx: Context, embed: Embed) -> Context:
    """Without stored vectors, which are another encoder's, and without what was learnt before."""
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
    """For each question the part of what is right that is among the nearest five."""
    found = []
    for one in choices:
        texts = [text for (text,) in (*one.right, *one.wrong)]
        [asked] = await embed([one.asked], role="query")
        near = np.argsort(-(await embed(texts) @ asked), kind="stable")[:_BEST]
        found.append(float((near < len(one.right)).sum() / min(len(one.right), _BEST)))
    return found
