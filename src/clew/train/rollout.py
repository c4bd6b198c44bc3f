"""Batched multi-turn generation: each episode continues as soon as it has its reply.

The decoder keeps keys and values between turns, so each reply is prefilled only once. It generates
a few tokens in all rows without host synchronisation; then step ends are detected and the tokens
beyond them dropped. Finished episodes leave the batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from threading import Event
from time import perf_counter
from typing import Any, Protocol

from clew import sync
from clew.errors import ModelError
from clew.train.environment import Environment, Episode
from clew.train.learn.finite import finite
from clew.train.learn.memory import Tell, give_back
from clew.train.trajectory import Recorder, Trajectory
from clew.train.wording import Wording

Draw = Callable[[Any], tuple[Any, Any]]
"""Samples tokens from logits, one per row; returns tokens and log-probabilities on the device."""


class Decoder(Protocol):
    """A model with a key-value cache; rows are positions in the running batch."""

    def begin(self, prompts: Sequence[Sequence[int]], room: int) -> Any:
        """Prefill new prompts; return the logits after each, one row per prompt."""
        ...

    def walk(self, tokens: Sequence[int], count: int, draw: Draw) -> tuple[Any, Any]:
        """Feed one token per row and sample the next, `count` times; return a list per step.

        The last sampled tokens are not in the cache yet.
        """
        ...

    def settle(self, lengths: Sequence[int]) -> None:
        """Truncate each row's cache to this length."""
        ...

    def extend(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> Any:
        """Prefill tokens in some rows; return the logits after the last, in the order of `rows`."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Keep only these rows, renumbered in this order."""
        ...

    def release(self) -> None:
        """Drop all rows and free the cache."""
        ...


@dataclass(frozen=True)
class Limits:
    """Token limits of an episode."""

    length: int = 4096
    """Tokens of a whole episode (Graph-R1: 4096)."""
    step: int = 256
    """Tokens that the model may generate in one step."""
    reply: int = 512
    """Tokens of one environment reply; longer ones are cut."""
    patience: int = 16
    """Tokens generated per round, before finished steps get their replies."""


@dataclass(frozen=True)
class Timing:
    """Time and token counts of a rollout."""

    seconds: float = 0.0
    retrieving: float = 0.0
    reading: float = 0.0
    """Seconds of prefilling prompts and replies."""
    tokens: int = 0
    episodes: int = 0
    steps: int = 0
    """Sequential decoding steps, which determine the time."""

    def __add__(self, other: "Timing") -> "Timing":
        """Add field by field."""
        return Timing(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass
class Running:
    """An unfinished episode and its row in the batch."""

    number: int
    episode: Episode
    record: Recorder
    tail: str = ""
    wrote: int = 0
    waiting: bool = False


class Stopped(Exception):  # noqa: N818  (reads as what happened)
    """A stop was requested during a rollout; its episodes are discarded."""


@dataclass
class Rollout:
    """Generates episodes with a decoder in an environment."""

    decoder: Decoder
    environment: Environment
    wording: Wording
    limits: Limits = Limits()
    batch: int = 1024
    """Sequences generated at once; halved when memory runs out."""
    tell: Tell = lambda line: None
    stop: Event | None = None
    """Checked between turns; once set, `StopRequested` is raised."""

    def __call__(
        self, questions: Sequence[str], *, temperature: float = 1.0, seed: int = 0
    ) -> tuple[list[Trajectory], Timing]:
        """Return one trajectory per question (repeat it for a group); temperature 0 is greedy."""
        trajectories: list[Trajectory] = []
        timing = Timing()
        while len(trajectories) < len(questions):
            part = questions[len(trajectories) : len(trajectories) + self.batch]
            play = _Play(self, temperature, _generator(seed * 1009 + len(trajectories)))
            played = self._tried(play, part)
            if played is not None:
                finite([one.logprobs for one in played], "what the model wrote")
                trajectories.extend(played)
                timing += play.timing
        return trajectories, timing

    def _tried(self, play: "_Play", questions: Sequence[str]) -> list[Trajectory] | None:
        """Play the questions; None when memory ran out and the batch was halved."""
        import torch

        try:
            return play.run(questions)
        except torch.OutOfMemoryError as error:
            if len(questions) == 1:
                raise ModelError(
                    f"one episode of {self.limits.length} tokens does not fit in memory; set a "
                    "smaller length"
                ) from error
        # Outside the handler the traceback no longer holds the failed batch's tensors.
        self.decoder.release()
        give_back()
        self.batch = max(len(questions) // 2, 1)
        self.tell(f"memory ran out: {self.batch} episodes are played at once from now on")
        return None


def _generator(seed: int) -> Any:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.Generator(device=device).manual_seed(seed % 2**63)


class _Play:
    """One batch of episodes, from the prompts to the last answer."""

    def __init__(self, rollout: Rollout, temperature: float, generator: Any) -> None:
        self.r, self.temperature, self.generator = rollout, temperature, generator
        self.retrieving = self.reading = 0.0
        self.tokens = self.steps = 0
        self.timing = Timing()

    def draw(self, logits: Any) -> tuple[Any, Any]:
        return sampled(logits, self.temperature, self.generator)

    def run(self, questions: Sequence[str]) -> list[Trajectory]:
        began = perf_counter()
        prompts = [self.r.wording.opening(question) for question in questions]
        episodes = self.r.environment.reset(questions)
        rows = [
            Running(at, episode, Recorder(prompt))
            for at, (episode, prompt) in enumerate(zip(episodes, prompts, strict=True))
        ]
        done: dict[int, Trajectory] = {}
        limits = self.r.limits
        self._first(rows, lambda: self.r.decoder.begin(prompts, limits.length + limits.patience))
        while rows:
            if self.r.stop is not None and self.r.stop.is_set():
                raise Stopped
            self._walk(rows)
            rows = self._answer(rows, done)
        seconds = perf_counter() - began
        self.timing = Timing(
            *(seconds, self.retrieving, self.reading, self.tokens, len(questions), self.steps)
        )
        return [done[at] for at in range(len(questions))]

    def _first(self, rows: Sequence[Running], read: Callable[[], Any]) -> None:
        """Prefill prompts or replies and sample the token after each."""
        began = perf_counter()
        tokens, logprobs = (drawn.tolist() for drawn in self.draw(read()))
        self.reading += perf_counter() - began
        for row, token, logprob in zip(rows, tokens, logprobs, strict=True):
            self._note(row, token, logprob)

    def _walk(self, rows: list[Running]) -> None:
        """Generate a few tokens in every row; tokens after a step's end are dropped."""
        count = self.r.limits.patience
        last = [row.record.ids[-1] for row in rows]
        tokens, logprobs = self.r.decoder.walk(last, count, self.draw)
        self.steps += count
        for at, row in enumerate(rows):
            for step in range(count):
                if row.waiting:
                    break
                self._note(row, tokens[step][at], logprobs[step][at])
        # A row's newest token is prefilled together with what follows it.
        self.r.decoder.settle([len(row.record.ids) - 1 for row in rows])

    def _note(self, row: Running, token: int, logprob: float) -> None:
        row.record.drawn(token, logprob)
        row.wrote += 1
        self.tokens += 1
        over, row.tail = self.r.wording.ends(row.tail, token)
        full = len(row.record.ids) >= self.r.limits.length
        row.waiting = over or full or row.wrote >= self.r.limits.step

    def _answer(self, rows: list[Running], done: dict[int, Trajectory]) -> list[Running]:
        """Send replies to finished steps; remove finished episodes."""
        waiting = [row for row in rows if row.waiting]
        if not waiting:
            return rows
        self._step(waiting)
        replies: dict[int, list[int]] = {}
        for row in waiting:
            reply = self._reply(row)
            if reply is None:
                done[row.number] = row.record.finished(row.episode)
            else:
                replies[row.number] = reply
        kept = packed([row.number not in done for row in rows])
        rows = [rows[at] for at in kept]
        if not rows:
            return rows
        self.r.decoder.keep(kept)
        active = [at for at, row in enumerate(rows) if row.number in replies]
        tokens = [[rows[at].record.ids[-1], *replies[rows[at].number]] for at in active]
        for at in active:
            row = rows[at]
            row.record.given(replies[row.number])
            row.tail, row.wrote, row.waiting = "", 0, False
        if active:
            self._first([rows[at] for at in active], lambda: self.r.decoder.extend(active, tokens))
        return rows

    def _step(self, waiting: list[Running]) -> None:
        began = perf_counter()
        texts = [self.r.wording.text(row.record.ids[row.record.turn :]) for row in waiting]
        episodes = sync.wait(self.r.environment.step([row.episode for row in waiting], texts))
        for row, episode in zip(waiting, episodes, strict=True):
            row.episode = episode
        self.retrieving += perf_counter() - began

    def _reply(self, row: Running) -> list[int] | None:
        """Tokenize the reply; None when the episode is over."""
        if row.episode.done:
            return None
        limits, wording = self.r.limits, self.r.wording
        room = limits.length - len(row.record.ids) - limits.step // 4
        if room < wording.least:
            row.episode = replace(row.episode, done=True, cut=True)
            return None
        return wording.reply(row.episode.reply, row.record.ids[-1], min(room, limits.reply))


def packed(remaining: Sequence[bool]) -> list[int]:
    """Order the remaining rows so that few move: the last ones fill the gaps."""
    count = sum(remaining)
    late = [at for at in range(count, len(remaining)) if remaining[at]]
    return [at if remaining[at] else late.pop() for at in range(count)]


def sampled(logits: Any, temperature: float, generator: Any) -> tuple[Any, Any]:
    """Sample one token per row, with its log-probability under the sampling distribution."""
    import torch

    with torch.inference_mode():
        scores = logits.float()
        if temperature > 0:
            scores = scores / temperature
        logprobs = torch.log_softmax(scores, dim=-1)
        if temperature > 0:
            # Exponential race (Gumbel-max trick): the argmax is a categorical sample.
            times = torch.empty_like(logprobs).exponential_(generator=generator)
            tokens = (logprobs - times.log()).argmax(dim=-1)
        else:
            tokens = logprobs.argmax(dim=-1)
        return tokens, logprobs.gather(-1, tokens[:, None])[:, 0]
