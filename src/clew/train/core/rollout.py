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
from clew.train.core.chat_tokens import ChatTokenizer
from clew.train.core.environment import Environment, Episode
from clew.train.core.safeguards import LogFunction, check_finite, free_gpu_cache, log_nothing
from clew.train.core.trajectory import Trajectory, TrajectoryRecorder

SampleFunction = Callable[[Any], tuple[Any, Any]]
"""Samples tokens from logits, one per row; returns tokens and log-probabilities on the device."""


class Decoder(Protocol):
    """A model with a key-value cache; rows are positions in the running batch."""

    def prefill(self, prompts: Sequence[Sequence[int]], capacity: int) -> Any:
        """Prefill new prompts; return the logits after each, one row per prompt."""
        ...

    def generate(self, tokens: Sequence[int], count: int, draw: SampleFunction) -> tuple[Any, Any]:
        """Feed one token per row and sample the next, `count` times; return a list per step.

        The last sampled tokens are not in the cache yet.
        """
        ...

    def truncate(self, lengths: Sequence[int]) -> None:
        """Truncate each row's cache to this length."""
        ...

    def extend(self, rows: Sequence[int], tokens: Sequence[Sequence[int]]) -> Any:
        """Prefill tokens in some rows; return the logits after the last, in the order of `rows`."""
        ...

    def select_rows(self, rows: Sequence[int]) -> None:
        """Keep only these rows, renumbered in this order."""
        ...

    def release(self) -> None:
        """Drop all rows and free the cache."""
        ...


@dataclass(frozen=True)
class RolloutLimits:
    """Token limits of an episode."""

    length: int = 4096
    """Tokens of a whole episode (Graph-R1: 4096)."""
    step: int = 256
    """Tokens that the model may generate in one step."""
    reply: int = 512
    """Tokens of one environment reply; longer ones are cut."""
    tokens_per_round: int = 16
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
class ActiveEpisode:
    """An unfinished episode and its row in the batch."""

    index: int
    episode: Episode
    record: TrajectoryRecorder
    tail: str = ""
    step_tokens: int = 0
    waiting: bool = False


class StopRequested(Exception):  # noqa: N818  (reads as what happened)
    """A stop was requested during a rollout; its episodes are discarded."""


@dataclass
class Rollout:
    """Generates episodes with a decoder in an environment."""

    decoder: Decoder
    environment: Environment
    chat_tokenizer: ChatTokenizer
    limits: RolloutLimits = RolloutLimits()
    batch: int = 1024
    """Sequences generated at once; halved when memory runs out."""
    report: LogFunction = log_nothing
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
            play = _RolloutBatch(
                self, temperature, _make_generator(seed * 1009 + len(trajectories))
            )
            played = self._play_batch(play, part)
            if played is not None:
                check_finite([one.logprobs for one in played], "generated tokens")
                trajectories.extend(played)
                timing += play.timing
        return trajectories, timing

    def _play_batch(
        self, play: "_RolloutBatch", questions: Sequence[str]
    ) -> list[Trajectory] | None:
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
        free_gpu_cache()
        self.batch = max(len(questions) // 2, 1)
        self.report(f"out of memory: the rollout batch is reduced to {self.batch} episodes")
        return None


def _make_generator(seed: int) -> Any:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.Generator(device=device).manual_seed(seed % 2**63)


class _RolloutBatch:
    """One batch of episodes, from the prompts to the last answer."""

    def __init__(self, rollout: Rollout, temperature: float, generator: Any) -> None:
        self.rollout, self.temperature, self.generator = rollout, temperature, generator
        self.retrieving = self.reading = 0.0
        self.tokens = self.steps = 0
        self.timing = Timing()

    def sample(self, logits: Any) -> tuple[Any, Any]:
        return sample_tokens(logits, self.temperature, self.generator)

    def run(self, questions: Sequence[str]) -> list[Trajectory]:
        began = perf_counter()
        prompts = [self.rollout.chat_tokenizer.encode_prompt(question) for question in questions]
        episodes = self.rollout.environment.reset(questions)
        rows = [
            ActiveEpisode(at, episode, TrajectoryRecorder(prompt))
            for at, (episode, prompt) in enumerate(zip(episodes, prompts, strict=True))
        ]
        done: dict[int, Trajectory] = {}
        limits = self.rollout.limits
        self._prefill_and_sample(
            rows,
            lambda: self.rollout.decoder.prefill(prompts, limits.length + limits.tokens_per_round),
        )
        while rows:
            if self.rollout.stop is not None and self.rollout.stop.is_set():
                raise StopRequested
            self._generate(rows)
            rows = self._send_replies(rows, done)
        seconds = perf_counter() - began
        self.timing = Timing(
            *(seconds, self.retrieving, self.reading, self.tokens, len(questions), self.steps)
        )
        return [done[at] for at in range(len(questions))]

    def _prefill_and_sample(self, rows: Sequence[ActiveEpisode], read: Callable[[], Any]) -> None:
        """Prefill prompts or replies and sample the token after each."""
        began = perf_counter()
        tokens, logprobs = (drawn.tolist() for drawn in self.sample(read()))
        self.reading += perf_counter() - began
        for row, token, logprob in zip(rows, tokens, logprobs, strict=True):
            self._record_token(row, token, logprob)

    def _generate(self, rows: list[ActiveEpisode]) -> None:
        """Generate a few tokens in every row; tokens after a step's end are dropped."""
        count = self.rollout.limits.tokens_per_round
        last = [row.record.ids[-1] for row in rows]
        tokens, logprobs = self.rollout.decoder.generate(last, count, self.sample)
        self.steps += count
        for at, row in enumerate(rows):
            for step in range(count):
                if row.waiting:
                    break
                self._record_token(row, tokens[step][at], logprobs[step][at])
        # A row's newest token is prefilled together with what follows it.
        self.rollout.decoder.truncate([len(row.record.ids) - 1 for row in rows])

    def _record_token(self, row: ActiveEpisode, token: int, logprob: float) -> None:
        row.record.append_generated(token, logprob)
        row.step_tokens += 1
        self.tokens += 1
        over, row.tail = self.rollout.chat_tokenizer.check_step_end(row.tail, token)
        full = len(row.record.ids) >= self.rollout.limits.length
        row.waiting = over or full or row.step_tokens >= self.rollout.limits.step

    def _send_replies(
        self, rows: list[ActiveEpisode], done: dict[int, Trajectory]
    ) -> list[ActiveEpisode]:
        """Send replies to finished steps; remove finished episodes."""
        waiting = [row for row in rows if row.waiting]
        if not waiting:
            return rows
        self._step_environment(waiting)
        replies: dict[int, list[int]] = {}
        for row in waiting:
            reply = self._encode_reply(row)
            if reply is None:
                done[row.index] = row.record.to_trajectory(row.episode)
            else:
                replies[row.index] = reply
        kept = compact_rows([row.index not in done for row in rows])
        rows = [rows[at] for at in kept]
        if not rows:
            return rows
        self.rollout.decoder.select_rows(kept)
        active = [at for at, row in enumerate(rows) if row.index in replies]
        tokens = [[rows[at].record.ids[-1], *replies[rows[at].index]] for at in active]
        for at in active:
            row = rows[at]
            row.record.append_reply(replies[row.index])
            row.tail, row.step_tokens, row.waiting = "", 0, False
        if active:
            self._prefill_and_sample(
                [rows[at] for at in active], lambda: self.rollout.decoder.extend(active, tokens)
            )
        return rows

    def _step_environment(self, waiting: list[ActiveEpisode]) -> None:
        began = perf_counter()
        texts = [
            self.rollout.chat_tokenizer.decode(row.record.ids[row.record.step_start :])
            for row in waiting
        ]
        episodes = sync.wait(self.rollout.environment.step([row.episode for row in waiting], texts))
        for row, episode in zip(waiting, episodes, strict=True):
            row.episode = episode
        self.retrieving += perf_counter() - began

    def _encode_reply(self, row: ActiveEpisode) -> list[int] | None:
        """Tokenize the reply; None when the episode is over."""
        if row.episode.done:
            return None
        limits, chat_tokenizer = self.rollout.limits, self.rollout.chat_tokenizer
        available = limits.length - len(row.record.ids) - limits.step // 4
        if available < chat_tokenizer.min_reply_tokens:
            row.episode = replace(row.episode, done=True, truncated=True)
            return None
        return chat_tokenizer.encode_reply(
            row.episode.reply, row.record.ids[-1], min(available, limits.reply)
        )


def compact_rows(remaining: Sequence[bool]) -> list[int]:
    """Order the remaining rows so that few move: the last ones fill the gaps."""
    count = sum(remaining)
    late = [at for at in range(count, len(remaining)) if remaining[at]]
    return [at if remaining[at] else late.pop() for at in range(count)]


def sample_tokens(logits: Any, temperature: float, generator: Any) -> tuple[Any, Any]:
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
