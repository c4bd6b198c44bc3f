"""Relevance gate: scores whether the knowledge base covers a question; threshold by calibration."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.agents.citing.support import mentions_name
from clew.agents.rules.question_analysis import find_names
from clew.context import Context
from clew.retrieve.question import QUESTION_WORDS
from clew.store.protocol import KeyValueStore
from clew.text.unicode import split_words
from clew.types import Evidence

_CALIBRATION = "calibration"
GATE_PASSAGES = 5  # passages that are scored
GATE = "gate"
# Below this score a question counts as off-topic; `clew calibrate` sets a better value.
DEFAULT_THRESHOLD = 0.35
_WEIGHTS = (0.45, 0.25, 0.3)  # names, words, meaning: see docs/agents.md
_GREETINGS = frozenset(
    """
    hello hi hey hiya greetings morning afternoon evening night thanks thank thx cheers bye goodbye
    welcome sorry ok okay yes yeah nope great nice cool awesome wow lol haha fine perfect done you
    """.split()
)
# A message of nothing but these words is small talk.
_SMALL_TALK_WORDS = _GREETINGS | frozenset(
    """
    good day please no well how are doing do today what is s up whats your name who can see later
    soon again so very much really a lot the it i am m re that to meet and my friend there all
    everyone for help
    """.split()
)
_QUESTION_OPENERS = frozenset(("what", "who", "how"))
# No alternative is made of others, so that matching stays linear in the length.
_CHINESE_SMALL_TALK = re.compile(
    "(?:你好|您好|大家好|早上好|晚上好|早安|晚安|谢谢|多谢|感谢|再见|拜拜|对不起|不好意思|你是谁|"
    "好的|太好了|真棒|辛苦了|哈|嗨|你|您|啊|呀|吗|了)+"
)


def is_small_talk(message: str) -> bool:
    """Whether a message consists of greetings, thanks and the like only."""
    used = set(split_words(message))
    if used & _GREETINGS and used <= _SMALL_TALK_WORDS:
        # "how are you?", and not "what is cool?"
        return not used & _QUESTION_OPENERS or "you" in used
    letters = "".join(char for char in message if char.isalnum())
    return _CHINESE_SMALL_TALK.fullmatch(letters) is not None


@dataclass(frozen=True, slots=True)
class Relevance:
    """How far the evidence covers the question; each part and the score are between 0 and 1."""

    names: float
    words: float
    meaning: float
    unknown: tuple[str, ...] = ()
    """Names in the question that the evidence never mentions."""

    @property
    def score(self) -> float:
        """The weighted sum."""
        parts = (self.names, self.words, self.meaning)
        return sum(weight * part for weight, part in zip(_WEIGHTS, parts, strict=True))


async def score_relevance(ctx: Context, evidence: Evidence) -> Relevance:
    """Score how many names and words of the question the evidence has, and the best cosine."""
    texts = [f"{p.title}\n{p.text}" for p in evidence.chunks[:GATE_PASSAGES]]
    text = "\n".join(texts)
    names = find_names(ctx.view, ctx.question)
    unknown = tuple(name for name in names if not any(mentions_name(name, page) for page in texts))
    asked = {word for word in split_words(ctx.question) if word not in QUESTION_WORDS}
    shared = asked & set(split_words(text))
    meaning = 0.0
    if ctx.embed is not None and ctx.view.count("chunk"):
        _, cosines = ctx.nearest("chunk", await ctx.vector(), 1)
        meaning = float(cosines.max(initial=0))
    known = 1 - len(unknown) / len(names) if names else meaning
    return Relevance(known, len(shared) / max(1, len(asked)), meaning, unknown)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold between answerable and unanswerable questions, with its precision and recall."""

    value: float
    precision: float
    recall: float
    """Share of the unanswerable questions that are refused."""
    good: int = 0
    bad: int = 0
    refused_good: int = 0
    """Answerable questions below the threshold."""
    passed_bad: int = 0
    """Unanswerable questions at or above it."""

    @property
    def balance(self) -> float:
        """Refused share of bad minus that of good (Youden's J); 0 for refusing all or none."""
        return self.recall - self.refused_good / max(1, self.good)


def calibrate_threshold(good: Sequence[float], bad: Sequence[float]) -> Threshold:
    """Choose the threshold with the best balance; scores below it are refused."""
    best = Threshold(0.0, 0.0, 0.0, len(good), len(bad), 0, len(bad))
    scores = sorted({*good, *bad})
    cuts = [(a + b) / 2 for a, b in zip(scores, scores[1:], strict=False)]
    for cut in [*cuts, (scores[-1] + 1e-6) if scores else 0.0]:
        refused_bad = sum(score < cut for score in bad)
        refused_good = sum(score < cut for score in good)
        refused = refused_bad + refused_good
        precision = refused_bad / refused if refused else 0.0
        candidate = Threshold(
            *(cut, precision, refused_bad / max(1, len(bad)), len(good), len(bad)),
            refused_good,
            len(bad) - refused_bad,
        )
        if candidate.balance > best.balance:
            best = candidate
    return best


async def load_threshold(memory: KeyValueStore | None, name: str = GATE) -> float | None:
    """Load the calibrated threshold of this knowledge base, or None."""
    if memory is None:
        return None
    stored = await memory.get(_CALIBRATION, [name])
    return float(stored[name]) if name in stored else None


async def save_threshold(memory: KeyValueStore, value: float, name: str = GATE) -> None:
    """Store a calibrated threshold in the knowledge base."""
    await memory.set(_CALIBRATION, {name: repr(round(value, 6))})
