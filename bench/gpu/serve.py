"""On the GPU machine: an OpenAI-compatible chat endpoint over the fast decoder.

    PYTHONPATH=src:DIR python3 -m bench.gpu.serve DIR/hf [--port 8089] [--rows 320] [--room 8192]

Continuous batching: requests join the running batch every few tokens and leave it when done;
decoding is greedy. Nothing makes a reply fit a schema or be a call, so `tools` and `json_schema`
are refused with status 400: a client then says in words what it wants. `json_object` is accepted.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from clew.train.decode.fast_decoder import FastDecoder
from clew.train.learn.policy import load_model

TOKENS_PER_ROUND = 16  # tokens generated between changes of the batch
DEFAULT_MAX_TOKENS = 512  # tokens of a reply when the request sets no limit
PROGRESS_SECONDS = 30


@dataclass
class ChatJob:
    """One request with its generated tokens."""

    prompt: list[int]
    max_tokens: int
    stops: list[str]
    future: asyncio.Future[dict[str, Any]]
    ids: list[int] = field(default_factory=list)
    finish: str = ""


def greedy(logits: Any) -> tuple[Any, Any]:
    """Return the likeliest token of each row; log-probabilities are not used."""
    best = logits.argmax(dim=-1)
    return best, best


class DecoderBatch:
    """The running batch: one decoder row per job."""

    def __init__(self, model: Any, tokenizer: Any, rows: int, room: int, graphs: bool) -> None:
        """Allocate the cache for all rows."""
        self.decoder = FastDecoder(model, graphs=graphs)
        self.tokenizer, self.rows, self.room = tokenizer, rows, room
        self.decoder.allocate_cache(rows, room + TOKENS_PER_ROUND)
        self.end_ids = {tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|im_end|>")}
        self.jobs: list[ChatJob] = []

    def admit(self, jobs: list[ChatJob]) -> None:
        """Prefill the prompts and generate the first token of each."""
        first = len(self.jobs)
        self.decoder.lengths += [0] * len(jobs)
        new = list(range(first, first + len(jobs)))
        drawn = greedy(self.decoder.extend(new, [job.prompt for job in jobs]))[0].tolist()
        self.jobs += jobs
        for job, token in zip(jobs, drawn, strict=True):
            self._record_token(job, token)
        self._finish_jobs()

    def generate(self) -> None:
        """Generate a few tokens in every row."""
        drawn, _ = self.decoder.generate(
            [job.ids[-1] for job in self.jobs], TOKENS_PER_ROUND, greedy
        )
        for step in drawn:
            for job, token in zip(self.jobs, step, strict=True):
                if not job.finish:
                    self._record_token(job, token)
        self.decoder.truncate([len(job.prompt) + len(job.ids) - 1 for job in self.jobs])
        self._finish_jobs()

    def _record_token(self, job: ChatJob, token: int) -> None:
        if token in self.end_ids:
            job.finish = "stop"
            return
        job.ids.append(token)
        if len(job.ids) >= job.max_tokens or len(job.prompt) + len(job.ids) >= self.room:
            job.finish = "length"

    def _finish_jobs(self) -> None:
        """Answer finished jobs and compact the remaining rows."""
        stopped = [job for job in self.jobs if not job.finish and job.stops]
        for job, text in zip(stopped, self._decode_texts(stopped), strict=True):
            if any(stop in text for stop in job.stops):
                job.finish = "stop"
        done = [job for job in self.jobs if job.finish]
        for job, text in zip(done, self._decode_texts(done), strict=True):
            for stop in job.stops:
                text = text.split(stop)[0]
            job.future.get_loop().call_soon_threadsafe(_set_reply, job, text)
        kept = [at for at, job in enumerate(self.jobs) if not job.finish]
        if len(kept) < len(self.jobs):
            self.decoder.select_rows(kept)
            self.jobs = [self.jobs[at] for at in kept]

    def _decode_texts(self, jobs: list[ChatJob]) -> list[str]:
        if not jobs:
            return []
        texts: list[str] = self.tokenizer.batch_decode(
            [job.ids for job in jobs], skip_special_tokens=True
        )
        return texts


def _set_reply(job: ChatJob, text: str) -> None:
    """Set the job's result as an OpenAI chat completion."""
    if job.future.done():  # the client has disconnected
        return
    used = {"prompt_tokens": len(job.prompt), "completion_tokens": len(job.ids)}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": job.finish,
    }
    job.future.set_result(
        {
            "id": f"chat-{id(job)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": "served",
            "choices": [choice],
            "usage": used | {"total_tokens": sum(used.values())},
        }
    )


class ChatServer:
    """Feeds the batch from a queue."""

    def __init__(self, batch: DecoderBatch) -> None:
        """Start with an empty queue."""
        self.batch = batch
        self.queue: asyncio.Queue[ChatJob] = asyncio.Queue()
        self.done, self.read, self.written = 0, 0, 0

    async def run(self) -> None:
        """Run forever: waiting jobs join while there are free rows."""
        while True:
            if not self.batch.jobs:
                first = await self.queue.get()
                await asyncio.sleep(0.02)  # requests arrive in bursts
                joining = [first]
            else:
                joining = []
            while len(self.batch.jobs) + len(joining) < self.batch.rows:
                if self.queue.empty():
                    break
                joining.append(self.queue.get_nowait())
            if joining:
                await asyncio.to_thread(self.batch.admit, joining)
            if self.batch.jobs:
                await asyncio.to_thread(self.batch.generate)

    async def handle_chat(self, request: web.Request) -> web.Response:
        """Handle a chat completion request."""
        body = await request.json()
        if refused := find_unsupported(body):
            return _refuse(f"{refused} is not supported")
        ids = self.batch.tokenizer.apply_chat_template(
            body["messages"], tokenize=True, add_generation_prompt=True, return_dict=False
        )
        most = int(
            body.get("max_tokens") or body.get("max_completion_tokens") or DEFAULT_MAX_TOKENS
        )
        if len(ids) + 1 >= self.batch.room:
            said = f"the prompt has {len(ids)} tokens, of a context length of {self.batch.room}"
            return _refuse(said, "context_length_exceeded")
        stops = body.get("stop") or []
        done = asyncio.get_running_loop().create_future()
        stops = [stops] if isinstance(stops, str) else list(stops)
        await self.queue.put(ChatJob(list(ids), most, stops, done))
        reply = await done
        self.done += 1
        self.read += reply["usage"]["prompt_tokens"]
        self.written += reply["usage"]["completion_tokens"]
        return web.json_response(reply)

    async def print_progress(self) -> None:
        """Print what was done so far, now and then."""
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            counts = {"done": self.done, "read": self.read, "written": self.written}
            running = {"running": len(self.batch.jobs), "waiting": self.queue.qsize()}
            print(json.dumps({"time": round(time.time()), **counts, **running}), flush=True)

    async def handle_models(self, _: web.Request) -> web.Response:
        """List the served model with its context window."""
        model = {"id": "served", "object": "model", "max_model_len": self.batch.room}
        return web.json_response({"object": "list", "data": [model]})

    def build_app(self) -> web.Application:
        """Build the web application, with the batch as a background task."""
        made = web.Application(client_max_size=64 * 2**20)
        made.router.add_post("/v1/chat/completions", self.handle_chat)
        made.router.add_get("/v1/models", self.handle_models)

        async def start(application: web.Application) -> None:
            application["batch"] = asyncio.create_task(self.run())
            application["batch"].add_done_callback(_exit_on_failure)
            application["progress"] = asyncio.create_task(self.print_progress())

        made.on_startup.append(start)
        return made


def find_unsupported(body: Mapping[str, Any]) -> str:
    """Return what a request asks for that only a constrained decoder could give, "" if nothing."""
    if body.get("tools"):
        return "`tools`"
    shape = (body.get("response_format") or {}).get("type", "text")
    return "" if shape in ("text", "json_object") else f"the response format `{shape}`"


def _refuse(said: str, code: str = "unsupported") -> web.Response:
    return web.json_response({"error": {"message": said, "code": code}}, status=400)


def _exit_on_failure(running: asyncio.Task[None]) -> None:
    """Exit the server if the batch task fails, so that no client waits forever."""
    if not running.cancelled():
        running.print_stack()
        os._exit(1)


def main() -> None:
    """Load the model and serve."""
    ask = argparse.ArgumentParser()
    ask.add_argument("model", type=Path)
    ask.add_argument("--port", type=int, default=8089)
    ask.add_argument("--rows", type=int, default=320)
    ask.add_argument("--room", type=int, default=8192, help="tokens of prompt and reply together")
    ask.add_argument("--no-graphs", action="store_true")
    given = ask.parse_args()
    model, tokenizer = load_model(given.model)
    batch = DecoderBatch(model, tokenizer, given.rows, given.room, not given.no_graphs)
    web.run_app(ChatServer(batch).build_app(), host="127.0.0.1", port=given.port, print=None)


if __name__ == "__main__":
    main()
