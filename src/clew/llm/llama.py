"""In-process chat with a GGUF model through llama-cpp-python: no server, no network.

JSON is enforced by a grammar, so its answers always match the schema. One generation runs at a
time, in a thread.
"""

import asyncio
import importlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.errors import ConfigError, ModelError
from clew.llm.chat import EndpointError, FinishReason, Reply, Request, TextCallback
from clew.llm.openai_body import estimate_prompt_tokens, parse_finish_reason, repair_surrogates
from clew.types import Usage
from clew.version import pip_install_command


@dataclass(eq=False)
class LlamaChat:
    """Runs the model in the file `path`, loaded at the first call."""

    path: str
    context: int = 8192
    threads: int | None = None

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Any = None

    @property
    def name(self) -> str:
        """The file name; the folder does not change the replies."""
        return f"{Path(self.path).name} in this process"

    async def __call__(self, request: Request, /, hear: TextCallback | None = None) -> Reply:
        """Generate in a thread; a cancelled call stops at the next token."""
        if request.response_format is not None and request.response_format.mode == "tool":
            raise EndpointError("an in-process model knows no tools.", status=501)
        loop = asyncio.get_running_loop()
        stopped = threading.Event()

        def tell(piece: str) -> None:
            if hear is not None:
                loop.call_soon_threadsafe(hear, piece)

        try:
            return await asyncio.to_thread(self._generate, request, tell, stopped)
        finally:
            stopped.set()

    def _generate(self, request: Request, tell: TextCallback, stopped: threading.Event) -> Reply:
        with self._lock:
            if stopped.is_set():
                raise ModelError(f"{self.name} was stopped before it began.")
            texts: list[str] = []
            finish: FinishReason = "stop"
            for piece, reason in self._iter_pieces(request):
                if piece:
                    texts.append(piece)
                    tell(piece)
                finish = parse_finish_reason(reason) if reason else finish
                if stopped.is_set():
                    break
            usage = Usage(1, estimate_prompt_tokens(request.messages), len(texts))
        return Reply("".join(texts), usage, finish, Path(self.path).name)

    def _iter_pieces(self, request: Request) -> Iterator[tuple[str, str | None]]:
        shape = request.response_format
        turns = [{"role": turn.role, "content": turn.content} for turn in request.messages]
        options: dict[str, Any] = {}
        if shape is not None:
            options["response_format"] = {"type": "json_object", "schema": dict(shape.schema)}
        try:
            chunks = self._load().create_chat_completion(
                messages=turns,
                temperature=request.temperature,
                max_tokens=request.max_tokens,
                stop=list(request.stop),
                seed=request.seed,
                stream=True,
                **options,
            )
            for chunk in chunks:
                choice = chunk["choices"][0]
                yield (
                    repair_surrogates(choice["delta"].get("content") or ""),
                    choice.get("finish_reason"),
                )
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"{self.name} failed: {error}.") from error

    def _load(self) -> Any:
        if self._model is None:
            try:
                library = importlib.import_module("llama_cpp")
            except ImportError as error:
                raise ConfigError(
                    f"client 'llama' needs llama-cpp-python: {pip_install_command('llama')}."
                ) from error
            if not Path(self.path).is_file():
                raise ConfigError(f"there is no model file {self.path!r}: set `model` to a GGUF.")
            self._model = library.Llama(
                self.path, n_ctx=self.context, n_threads=self.threads, verbose=False
            )
        return self._model
