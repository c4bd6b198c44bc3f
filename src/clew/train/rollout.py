"""Batched multi-turn generation: every episode goes on as soon as its reply is there.

A decoder holds the running sequences' keys and values between turns, so a reply is only read once.
It draws a few tokens in all rows without waiting for this side, which then looks where steps ended
and forgets what was drawn beyond. Episodes that end leave the batch.
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
"""Logits to tokens and their log-probabilities, one a row, all on the device."""


class Decoder(Protocol):
    """A model that reads on from what it has read. Rows are positions in the running batch."""

    def begin(self, prompts: Sequence[Sequence[int]], room: int) -> Any:
        """Read fresh prompts; logits after each, one row a prompt."""
        ...

    def walk(self, tokens: Sequence[int], count: int, draw: Draw) -> tuple[Any, Any]:
        """Read a token in every row and draw the next, `count` times; lists of tokens, a step each.

        The last ones drawn are not read yet.
        """
        ...

    def settle(self, lengths: Sequence[int]) -> None:
        """Forget what each row has read beyond this length."""
        ...

    def extend(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> Any:
        """Read several tokens in some rows; logits after the last, in the order of `rows`."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Forget all rows but these, which are numbered anew in this order."""
        ...

    def release(self) -> None:
        """Forget everything and hold no memory for it."""
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
    """Tokens drawn at a go, before those that ask are answered."""


@dataclass(frozen=True)
class Timing:
    """Where the time of a rollout went."""

    seconds: float = 0.0
    retrieving: float = 0.0
    reading: float = 0.0
    """Of prompts and replies."""
    tokens: int = 0
    episodes: int = 0
    steps: int = 0
    """Tokens drawn one after another: what decides how long it takes."""

    def __add__(self, other: "Timing") -> "Timing":
        """Both."""
        return Timing(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass
class Running:
    """One sequence in the batch."""

    number: int
    episode: Episode
    record: Recorder
    tail: str = ""
    wrote: int = 0
    waiting: bool = False


class Stopped(Exception):  # noqa: N818  (reads as what happened)
    """Someone asked to stop while episodes were being played; they are thrown away."""


@dataclass
class Rollout:
    """Plays episodes with a decoder in an environment."""

    decoder: Decoder
    environment: Environment
    wording: Wording
    limits: Limits = Limits()
    batch: int = 1024
    """Sequences at once; halved when memory runs out."""
    tell: Tell = lambda line: None
    stop: Event | None = None
    """Looked at between turns; once set, `Stopped` is raised."""

    def __call__(
        self, questions: Sequence[str], *, temperature: float = 1.0, seed: int = 0
    ) -> tuple[list[Trajectory], Timing]:
        """One trajectory a question; repeat a question for a group. Temperature 0 is greedy."""
        found: list[Trajectory] = []
        timing = Timing()
        while len(found) < len(questions):
            part = questions[len(found) : len(found) + self.batch]
            play = _Play(self, temperature, _generator(seed * 1009 + len(found)))
            played = self._tried(play, part)
            if played is not None:
                finite([one.logprobs for one in played], "what the model wrote")
                found.extend(played)
                timing += play.timing
        return found, timing

    def _tried(self, play: "_Play", questions: Sequence[str]) -> list[Trajectory] | None:
        """Episodes, or nothing when memory ran out and half as many are to be played at once."""
        import torch

        try:
            return play.run(questions)
        except torch.OutOfMemoryError as error:
            if len(questions) == 1:
                raise ModelError(
                    f"one episode of {self.limits.length} tokens does not fit in memory; set a "
                    "smaller length"
                ) from error
        # Out here the failed play's tensors are no longer held by its traceback.
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
    """One batch from its prompts to its last answer."""

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
        """Read prompts or replies and draw the token after each."""
        began = perf_counter()
        tokens, logprobs = (drawn.tolist() for drawn in self.draw(read()))
        self.reading += perf_counter() - began
        for row, token, logprob in zip(rows, tokens, logprobs, strict=True):
            self._note(row, token, logprob)

    def _walk(self, rows: list[Running]) -> None:
        """Draw a few tokens in every row; what comes after a step's end is forgotten."""
        count = self.r.limits.patience
        last = [row.record.ids[-1] for row in rows]
        tokens, logprobs = self.r.decoder.walk(last, count, self.draw)
        self.steps += count
        for at, row in enumerate(rows):
            for step in range(count):
                if row.waiting:
                    break
                self._note(row, tokens[step][at], logprobs[step][at])
        # The newest token of a row is read with what comes after it.
        self.r.decoder.settle([len(row.record.ids) - 1 for row in rows])

    def _note(self, row: Running, token: int, logprob: float) -> None:
        row.record.drawn(token, logprob)
        row.wrote += 1
        self.tokens += 1
        over, row.tail = self.r.wording.ends(row.tail, token)
        full = len(row.record.ids) >= self.r.limits.length
        row.waiting = over or full or row.wrote >= self.r.limits.step

    def _answer(self, rows: list[Running], done: dict[int, Trajectory]) -> list[Running]:
        """Let the environment reply to those that wait; drop those that are done."""
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
        asked = [at for at, row in enumerate(rows) if row.number in replies]
        given = [[rows[at].record.ids[-1], *replies[rows[at].number]] for at in asked]
        for at in asked:
            row = rows[at]
            row.record.given(replies[row.number])
            row.tail, row.wrote, row.waiting = "", 0, False
        if asked:
            self._first([rows[at] for at in asked], lambda: self.r.decoder.extend(asked, given))
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


def packed(stay: Sequence[bool]) -> list[int]:
    """An order of those that stay in which few of them move: the last fill the holes."""
    count = sum(stay)
    late = [at for at in range(count, len(stay)) if stay[at]]
    return [at if stay[at] else late.pop() for at in range(count)]


def sampled(logits: Any, temperature: float, generator: Any) -> tuple[Any, Any]:
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
        return tokens, logprobs.gather(-1, tokens[:, None])[:, 0]
