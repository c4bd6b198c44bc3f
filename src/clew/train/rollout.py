"""Batched multi-turn generation: every episode goes on as soon as its reply is there.

A decoder holds the running sequences' keys and values between turns, so a reply is only read once.
Episodes that end leave the batch; those that ask wait for a few tokens at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Protocol

from clew import sync
from clew.train.environment import Environment, Episode
from clew.train.trajectory import Recorder, Trajectory
from clew.train.wording import Wording


class Decoder(Protocol):
    """A model that reads on from what it has read. Rows are positions in the running batch."""

    def begin(self, prompts: Sequence[Sequence[int]], room: int) -> Any:
        """Read fresh prompts; logits after each, one row a prompt."""
        ...

    def step(self, tokens: Sequence[int], live: Sequence[bool]) -> Any:
        """Read one token in every live row; logits of all rows, those of others undefined."""
        ...

    def extend(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> Any:
        """Read several tokens in some rows; logits after the last, in the order of `rows`."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Forget all rows but these, which are numbered anew."""
        ...


@dataclass(frozen=True)
class Limits:
    """How far an episode may go."""

    length: int = 4096
    """Tokens of a whole episode (Graph-R1: 4096)."""
    step: int = 256
    """Tokens the model may write in one step."""
    reply: int = 512
    """Tokens of one reply; longer ones are cut."""
    patience: int = 16
    """Tokens decoded before those that ask are answered."""


@dataclass(frozen=True)
class Timing:
    """Where the time of a rollout went."""

    seconds: float = 0.0
    retrieving: float = 0.0
    tokens: int = 0
    episodes: int = 0


@dataclass
class Running:
    """One sequence in the batch."""

    number: int
    episode: Episode
    record: Recorder
    tail: str = ""
    wrote: int = 0
    waiting: bool = False


@dataclass(frozen=True)
class Rollout:
    """Plays episodes with a decoder in an environment."""

    decoder: Decoder
    environment: Environment
    wording: Wording
    limits: Limits = Limits()
    batch: int = 1024
    """Sequences at once."""

    def __call__(
        self, questions: Sequence[str], *, temperature: float = 1.0, seed: int = 0
    ) -> tuple[list[Trajectory], Timing]:
        """One trajectory a question; repeat a question for a group. Temperature 0 is greedy."""
        found: list[Trajectory] = []
        timing = Timing()
        for first in range(0, len(questions), self.batch):
            part = questions[first : first + self.batch]
            play = _Play(self, temperature, _generator(seed * 1009 + first))
            found.extend(play.run(part))
            timing = Timing(
                timing.seconds + play.seconds,
                timing.retrieving + play.retrieving,
                timing.tokens + play.tokens,
                timing.episodes + len(part),
            )
        return found, timing


def _generator(seed: int) -> Any:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.Generator(device=device).manual_seed(seed)


class _Play:
    """One batch from its prompts to its last answer."""

    def __init__(self, rollout: Rollout, temperature: float, generator: Any) -> None:
        self.r, self.temperature, self.generator = rollout, temperature, generator
        self.seconds = self.retrieving = 0.0
        self.tokens = 0

    def run(self, questions: Sequence[str]) -> list[Trajectory]:
        began = perf_counter()
        prompts = [self.r.wording.opening(question) for question in questions]
        episodes = self.r.environment.reset(questions)
        rows = [
            Running(at, episode, Recorder(prompt))
            for at, (episode, prompt) in enumerate(zip(episodes, prompts, strict=True))
        ]
        done: dict[int, Trajectory] = {}
        logits = self.r.decoder.begin(prompts, self.r.limits.length)
        self._draw(rows, range(len(rows)), logits)
        while rows:
            for _ in range(self.r.limits.patience):
                if all(row.waiting for row in rows):
                    break
                self._decode(rows)
            rows = self._answer(rows, done)
        self.seconds = perf_counter() - began
        return [done[at] for at in range(len(questions))]

    def _decode(self, rows: list[Running]) -> None:
        live = [not row.waiting for row in rows]
        logits = self.r.decoder.step([row.record.ids[-1] for row in rows], live)
        self._draw(rows, [at for at, on in enumerate(live) if on], logits)

    def _draw(
        self, rows: list[Running], which: Sequence[int], logits: Any, *, narrow: bool = False
    ) -> None:
        """Draw a token for some rows; `logits` has one line a row, or one for each of `which`."""
        tokens, logprobs = sampled(logits, self.temperature, self.generator)
        for line, at in enumerate(which):
            row, from_line = rows[at], line if narrow else at
            token = tokens[from_line]
            row.record.drawn(token, logprobs[from_line])
            row.wrote += 1
            self.tokens += 1
            over, row.tail = self.r.wording.ends(row.tail, token)
            full = len(row.record.ids) >= self.r.limits.length
            row.waiting = over or full or row.wrote >= self.r.limits.step

    def _answer(self, rows: list[Running], done: dict[int, Trajectory]) -> list[Running]:
        """Let the environment reply to those that wait; drop those that are done."""
        waiting = [at for at, row in enumerate(rows) if row.waiting]
        if not waiting:
            return rows
        self._step([rows[at] for at in waiting])
        kept: list[int] = []
        replies: list[tuple[int, list[int]]] = []
        for at, row in enumerate(rows):
            if row.waiting:
                reply = self._reply(row)
                if reply is None:
                    done[row.number] = row.record.finished(row.episode)
                    continue
                replies.append((len(kept), [row.record.ids[-1], *reply]))
                row.record.given(reply)
                row.tail, row.wrote, row.waiting = "", 0, False
            kept.append(at)
        rows = [rows[at] for at in kept]
        if rows:
            self.r.decoder.keep(kept)
        if replies:
            asked = [at for at, _ in replies]
            logits = self.r.decoder.extend(asked, [ids for _, ids in replies])
            self._draw(rows, asked, logits, narrow=True)
        return rows

    def _step(self, waiting: list[Running]) -> None:
        began = perf_counter()
        said = [self.r.wording.text(row.record.ids[row.record.turn :]) for row in waiting]
        after = sync.wait(self.r.environment.step([row.episode for row in waiting], said))
        for row, episode in zip(waiting, after, strict=True):
            row.episode = episode
        self.retrieving += perf_counter() - began

    def _reply(self, row: Running) -> list[int] | None:
        """The reply's tokens, or nothing when the episode is over."""
        if row.episode.done:
            return None
        limits, wording = self.r.limits, self.r.wording
        room = limits.length - len(row.record.ids) - limits.step // 4
        if room < wording.least:
            row.episode = replace(row.episode, done=True, cut=True)
            return None
        return wording.reply(row.episode.reply, row.record.ids[-1], min(room, limits.reply))


def sampled(logits: Any, temperature: float, generator: Any) -> tuple[list[int], list[float]]:
    """Draw one token a row, and its log-probability under the distribution it was drawn from."""
    import torch

    with torch.inference_mode():
        scores = logits.float()
        if temperature > 0:
            scores = scores / temperature
        logprobs = torch.log_softmax(scores, dim=-1)
        if temperature > 0:
            # The least of exponential times, each at its token's rate, is a draw by probability.
            times = torch.empty_like(logprobs).exponential_(generator=generator)
            tokens = (logprobs - times.log()).argmax(dim=-1)
        else:
            tokens = logprobs.argmax(dim=-1)
        chosen = logprobs.gather(-1, tokens[:, None])[:, 0]
        return tokens.tolist(), chosen.tolist()
