"""Chooses how much each signal of the default recipe counts, from questions with gold documents.

The default weighs its walk by what the corpus is like, and the rest by shares that were chosen on
several corpora. Here other weights are tried: first those of the walk, then those of meaning, words
and best sentence. They are kept only if questions that had no part in the choice gain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clew.adapters import SignalMix, with_signals
from clew.context import Context
from clew.evaluate.datasets import Question
from clew.graph.csr import Doubles, Floats, Ints
from clew.llm.embed import Embedder, EmbedRole, Vectors
from clew.retrieve.blend import PLAIN_SHARES
from clew.retrieve.step import Chain
from clew.types import Found

Weights = tuple[float, float, float, float]
AS_MEASURED = -1.0
"""The weight of a walk that is measured on the corpus, question by question."""
_WALKS = (AS_MEASURED, 0.0, 0.5, 1.0)
_SHARES = (
    PLAIN_SHARES,
    (0.6, 0.2, 0.2),
    (0.2, 0.6, 0.2),
    (0.2, 0.2, 0.6),
    (0.5, 0.5, 0.0),
    (0.5, 0.0, 0.5),
    (0.0, 0.5, 0.5),
)
_DEPTHS = (2, 5, 10)  # passages among which gold documents are counted
_MAX_QUESTIONS = 60  # questions that each choice is tried on
_EVERY = 2  # every n-th question has no part in the choice


@dataclass(frozen=True, slots=True)
class SignalTrial:
    """The weights chosen, and the recall of questions that had no part in the choice."""

    walk: float | None
    """None: as measured on the corpus."""
    shares: tuple[float, float, float]
    """Of meaning, words and best sentence."""
    before: float
    """Mean share of the gold documents among the first two, five and ten passages."""
    after: float
    used: bool
    """Whether the gain is more than its standard error: only then are the weights kept."""


@dataclass(frozen=True)
class RememberedEmbedder:
    """An embedder that embeds every text once: each choice asks the same questions."""

    embed: Embedder
    known: dict[tuple[str, str], Floats] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The embedder's own name."""
        return self.embed.name

    @property
    def dim(self) -> int:
        """The length of every vector."""
        return self.embed.dim

    def measure_known(self, text: str) -> float:
        """Return how far the embedder knows the words of a text."""
        measure = getattr(self.embed, "measure_known", None)
        share: float = measure(text) if measure else 1.0
        return share

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        """Embed what is new."""
        new = [text for text in dict.fromkeys(texts) if (role, text) not in self.known]
        if new:
            vectors = await self.embed(new, role=role)
            self.known.update({(role, text): one for text, one in zip(new, vectors, strict=True)})
        return np.array([self.known[role, text] for text in texts], np.float32)


async def fit_signals(
    ctx: Context, chain: Chain, questions: Sequence[Question], documents: dict[str, Ints]
) -> tuple[SignalMix | None, SignalTrial]:
    """Choose weights on every other question and test them on the rest; None: nothing is gained."""
    assert ctx.embed is not None
    ctx = replace(ctx, embed=RememberedEmbedder(ctx.embed))
    held_out = questions[::_EVERY][:_MAX_QUESTIONS]
    rest = [one for at, one in enumerate(questions) if at % _EVERY][:_MAX_QUESTIONS]
    used = (AS_MEASURED, *PLAIN_SHARES)
    chosen = await _choose(ctx, chain, rest, documents, [(walk, *PLAIN_SHARES) for walk in _WALKS])
    if chosen[0] < 1:  # otherwise nothing else counts
        tried = [(chosen[0], *shares) for shares in _SHARES]
        chosen = await _choose(ctx, chain, rest, documents, tried)
    before = await _measure(ctx, chain, held_out, documents, used)
    after = await _measure(ctx, chain, held_out, documents, chosen)
    gain = after - before
    better = bool(gain.mean() > gain.std() / np.sqrt(len(gain)))
    mix = SignalMix(np.array(chosen, np.float32))
    trial = SignalTrial(mix.walk, chosen[1:], float(before.mean()), float(after.mean()), better)
    return mix if better else None, trial


async def _choose(
    ctx: Context,
    chain: Chain,
    questions: Sequence[Question],
    documents: dict[str, Ints],
    tried: Sequence[Weights],
) -> Weights:
    """Return the weights with the highest recall; of equally good ones the first."""
    recalls = [(await _measure(ctx, chain, questions, documents, one)).mean() for one in tried]
    return tried[int(np.argmax(recalls))]


async def _measure(
    ctx: Context,
    chain: Chain,
    questions: Sequence[Question],
    documents: dict[str, Ints],
    weights: Weights,
) -> Doubles:
    """Return for each question the mean recall of its gold documents at several depths."""
    view = with_signals(ctx.view, SignalMix(np.array(weights, np.float32)))
    found = []
    for question in questions:
        asking = replace(
            ctx.with_question(question.text),
            view=view,
            given_entities=question.entities,
            trace=[],
            _vectors={},
            _cosines_by_vector={},
        )
        top = np.array([hit.at for hit in (await chain(asking, Found())).chunks], np.int64)
        gold = [documents[name] for name in question.gold if name in documents]
        found.append(
            np.mean([np.isin(one, top[:depth]).any() for one in gold for depth in _DEPTHS])
        )
    return np.array(found, np.float64)
