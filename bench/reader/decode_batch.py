"""Runs many conversations about texts at once, each asking the model several things of one text.

A job is a generator that first yields the text it is about, then yields requests and gets the
replies. The text is prefilled once: after a reply the row goes back to the end of its text, so
every request is a fresh prompt at the price of its own tokens.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

try:
    import torch
except ImportError as missing:
    raise SystemExit("this needs torch; install the extra: pip install 'clew[train]'") from missing

TOKENS_PER_ROUND = 12  # tokens generated between changes of the batch
MIN_SHARE = 0.05  # tokens less likely than this share of the likeliest are never drawn


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked about the text; temperature 0 takes the likeliest tokens."""

    prompt: str
    max_tokens: int
    temperature: float = 0.0
    stop: str = ""


Job = Generator["Request | str", str, None]
"""First yields its text, then requests."""


@dataclass
class _Row:
    """A row of the decoder and the job in it."""

    job: Job | None = None
    text_tokens: int = 0
    request: Request | None = None
    ids: list[int] = field(default_factory=list)
    length: int = 0
    """Tokens in the cache that belong to the prompt and the reply so far."""


class JobRunner:
    """Keeps the rows of a decoder busy with jobs."""

    def __init__(self, decoder: Any, tokenizer: Any, rows: int, room: int) -> None:
        """Allocate the cache: `room` is the most tokens of a text, a request and its reply."""
        self.decoder, self.tokenizer, self.room = decoder, tokenizer, room
        decoder.allocate_cache(rows, room + TOKENS_PER_ROUND)
        self.rows: list[_Row] = []
        self.restart(rows)
        self.end_ids = {tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|im_end|>")}
        self.generated = self.prefilled = self.finished = 0

    def restart(self, rows: int) -> None:
        """Drop what runs and start with empty rows."""
        for row in self.rows:
            if row.job is not None:
                row.job.close()
        self.rows = [_Row() for _ in range(rows)]
        self.decoder.lengths = [0] * rows

    def run(self, jobs: Iterator[Job], until: float, after_round: Callable[[], None]) -> None:
        """Run jobs until there are none left or the time is up, which drops unfinished ones."""
        waiting = True
        while time.monotonic() < until:
            if waiting:
                waiting = self._admit(jobs)
            if not any(row.job for row in self.rows):
                if not waiting:
                    return
                continue
            if not waiting:
                self._drop_idle_rows()
            self._generate()
            after_round()

    # -- admitting

    def _admit(self, jobs: Iterator[Job]) -> bool:
        """Give idle rows new jobs; return whether there may be more."""
        starts: list[tuple[int, list[int]]] = []
        more = True
        for number, row in enumerate(self.rows):
            while row.job is None:
                job = next(jobs, None)
                if job is None:
                    more = False
                    break
                text = next(job)
                request = next(job)
                if not isinstance(text, str) or not isinstance(request, Request):
                    raise TypeError("a job yields its text, then requests")
                ids = self._tokenize(text)
                asked = self._tokenize(request.prompt)
                if len(ids) + len(asked) + request.max_tokens > self.room:
                    job.close()
                    continue
                self.rows[number] = row = _Row(job, len(ids), request, [], 0)
                self.decoder.lengths[number] = 0
                starts.append((number, ids + asked))
        self._prefill(starts)
        return more

    def _prefill(self, starts: list[tuple[int, list[int]]]) -> None:
        """Prefill prompts and draw the first token of each; rows that end go on at once."""
        while starts:
            numbers, prompts = [one[0] for one in starts], [one[1] for one in starts]
            logits = self.decoder.extend(numbers, prompts)
            self.prefilled += sum(map(len, prompts))
            drawn = self._plan_draw(numbers)(logits)[0].tolist()
            for number in numbers:
                self.rows[number].length = self.decoder.lengths[number]
            for number, token in zip(numbers, drawn, strict=True):
                self._record(self.rows[number], token)
            starts = self._continue([n for n in numbers if self._is_done(self.rows[n])])

    def _continue(self, done: list[int]) -> list[tuple[int, list[int]]]:
        """Hand replies to their jobs; return what is to be prefilled next."""
        if not done:
            return []
        replies = self.tokenizer.batch_decode(
            [[one for one in self.rows[number].ids if one not in self.end_ids] for number in done],
            skip_special_tokens=True,
        )
        starts = []
        for number, reply in zip(done, replies, strict=True):
            row = self.rows[number]
            if row.job is None or row.request is None:
                continue
            if row.request.stop:
                reply = reply.split(row.request.stop)[0]
            asked = self._next_request(row, reply)
            if asked is None:
                self.finished += 1
                self.rows[number] = _Row()
                self.decoder.lengths[number] = 0
            else:
                row.request, row.ids, row.length = asked[0], [], row.text_tokens
                self.decoder.lengths[number] = row.text_tokens
                starts.append((number, asked[1]))
        return starts

    def _next_request(self, row: _Row, reply: str) -> tuple[Request, list[int]] | None:
        """The job's next request that fits in the room, with its tokens."""
        while row.job is not None:
            try:
                request = row.job.send(reply)
            except StopIteration:
                return None
            if not isinstance(request, Request):
                raise TypeError("a job yields one text only")
            ids = self._tokenize(request.prompt)
            if row.text_tokens + len(ids) + request.max_tokens <= self.room:
                return request, ids
            reply = ""
        return None

    # -- generating

    def _generate(self) -> None:
        """Generate a few tokens in every row."""
        active = [number for number, row in enumerate(self.rows) if row.job]
        last = [row.ids[-1] if row.ids else 0 for row in self.rows]
        draw = self._plan_draw(list(range(len(self.rows))))
        drawn, _ = self.decoder.generate(last, TOKENS_PER_ROUND, draw)
        for step in drawn:
            for number in active:
                row = self.rows[number]
                if not self._is_done(row):
                    row.length += 1
                    self._record(row, step[number])
        self.decoder.truncate([row.length for row in self.rows])
        self._prefill(self._continue([n for n in active if self._is_done(self.rows[n])]))

    def _plan_draw(self, numbers: list[int]) -> Callable[[Any], tuple[Any, Any]]:
        """How tokens of these rows are drawn: each at its own temperature."""
        heat = [request.temperature if (request := self.rows[n].request) else 0.0 for n in numbers]
        hot = [at for at, one in enumerate(heat) if one > 0]
        device = self.decoder.device
        chosen = torch.tensor(hot, dtype=torch.long, device=device)
        scale = torch.tensor([heat[at] for at in hot], device=device)[:, None]

        def draw(logits: Any) -> tuple[Any, Any]:
            best = logits.argmax(dim=-1)
            if hot:
                scores = logits[chosen].float() / scale
                least = scores.amax(dim=-1, keepdim=True) + math.log(MIN_SHARE)
                noise = -torch.log(torch.empty_like(scores).exponential_())
                scores = scores.masked_fill(scores < least, float("-inf")) + noise
                best[chosen] = scores.argmax(dim=-1)
            return best, best

        return draw

    def _record(self, row: _Row, token: int) -> None:
        row.ids.append(token)
        self.generated += 1

    def _is_done(self, row: _Row) -> bool:
        if row.request is None or not row.ids:
            return row.request is None
        return row.ids[-1] in self.end_ids or len(row.ids) >= row.request.max_tokens

    def _drop_idle_rows(self) -> None:
        """Shrink the batch when the last jobs run."""
        kept = [number for number, row in enumerate(self.rows) if row.job]
        if kept and len(kept) < 0.7 * len(self.rows):
            self.decoder.select_rows(kept)
            self.rows = [self.rows[number] for number in kept]

    def _tokenize(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids
