"""In-process chat models, without server or network: GGUF files, and transformers folders.

One generation runs at a time, in a thread.
"""

import asyncio
import importlib
import importlib.util
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from clew.errors import ConfigError, ModelError
from clew.llm.chat import EndpointError, FinishReason, Reply, Request, TextCallback
from clew.llm.openai_api import estimate_prompt_tokens, parse_finish_reason, repair_surrogates
from clew.llm.trained_model import find_model_folder
from clew.types import Usage
from clew.version import pip_install_command


@dataclass(eq=False)
class LlamaChat:
    """Runs the GGUF file `path` with llama-cpp-python, loaded at the first call.

    JSON is enforced by a grammar, so its answers always match the schema.
    """

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

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Generate in a thread; a cancelled call stops at the next token."""
        shape = request.response_format
        if shape is not None and shape.mode not in ("schema", "json"):
            raise EndpointError("an in-process model does not support tools.", status=501)
        loop = asyncio.get_running_loop()
        stopped = threading.Event()

        def forward(piece: str) -> None:
            if on_text is not None:
                loop.call_soon_threadsafe(on_text, piece)

        try:
            return await asyncio.to_thread(self._generate, request, forward, stopped)
        finally:
            stopped.set()

    def _generate(self, request: Request, on_text: TextCallback, stopped: threading.Event) -> Reply:
        with self._lock:
            if stopped.is_set():
                raise ModelError(f"{self.name} was cancelled before it started.")
            texts: list[str] = []
            finish: FinishReason = "stop"
            for piece, reason in self._iter_pieces(request):
                if piece:
                    texts.append(piece)
                    on_text(piece)
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
                raise ConfigError(f"no model file {self.path!r}: set `model` to a GGUF file.")
            self._model = library.Llama(
                self.path, n_ctx=self.context, n_threads=self.threads, verbose=False
            )
        return self._model


class PrefixCache:
    """Keys and values of the last text, reused for the shared prefix of the next one.

    Each turn of an episode starts with the turns before it.
    """

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._cache: Any = None

    def take(self, model: Any, ids: list[int]) -> Any:
        """Return a cache with the prefix `ids` shares with the last text, or an empty one."""
        from transformers import DynamicCache

        # The last token is always processed again: its logits predict the next token.
        pairs = zip(self._ids, ids[:-1], strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        cache, self._cache = self._cache, None  # a failed generation must leave no partial cache
        if cache is None or not shared or any(cache.is_sliding):
            return DynamicCache(config=model.config)
        cache.crop(shared - len(self._ids))
        return cache

    def store(self, cache: Any, ids: list[int]) -> None:
        """Store the cache of a whole text; its last token was generated but not processed."""
        self._cache, self._ids = cache, ids[: cache.get_seq_length()]


_STOP_WINDOW_TOKENS = 32
"""Last tokens searched for a stop sequence; one character may take several."""


@dataclass(eq=False)
class TransformersChat:
    """Runs the model or LoRA adapter in the folder `path`, as `clew train` writes it."""

    path: str
    default_max_tokens: int = 512
    """Token limit of a reply if the request sets none."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._prefix = PrefixCache()
        self._model_and_tokenizer: tuple[Any, Any] | None = None

    @property
    def name(self) -> str:
        """The run's folder (the last part alone is always `model`) and the time its weights were
        written, as the name is part of the cache key.
        """
        folder = Path(self.path)
        files = [*folder.glob("*.safetensors"), *folder.glob("model/*.safetensors")]
        modified = max((file.stat().st_mtime_ns for file in files), default=0)
        return f"{'/'.join(folder.parts[-2:])}@{modified:x}"

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Generate in a thread."""
        if request.response_format is not None:
            raise EndpointError(
                "an in-process transformers model does not support response formats.", status=501
            )
        reply = await asyncio.to_thread(self._generate, request)
        if on_text is not None:
            on_text(reply.text)
        return reply

    def _generate(self, request: Request) -> Reply:
        with self._lock:
            import torch

            model, tokenizer = self._get_model()
            turns = [{"role": turn.role, "content": turn.content} for turn in request.messages]
            chat = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            batch = tokenizer(chat, return_tensors="pt", add_special_tokens=False).to(model.device)
            max_tokens = request.max_tokens or self.default_max_tokens
            if request.seed is not None:
                torch.manual_seed(request.seed)
            prompt_length = int(batch["input_ids"].shape[1])
            with torch.inference_mode():
                cache = self._prefix.take(model, batch["input_ids"][0].tolist())
                output = model.generate(
                    **batch,
                    past_key_values=cache,
                    generation_config=_generation_config(request, max_tokens, tokenizer),
                    stopping_criteria=_stopping_criteria(request, tokenizer, prompt_length),
                )
            self._prefix.store(cache, output[0].tolist())
            ids = output[0, prompt_length:].tolist()
            text = tokenizer.decode(ids, skip_special_tokens=True)
            for stop in request.stop:
                text = text.partition(stop)[0]
        usage = Usage(1, prompt_length, len(ids))
        return Reply(text, usage, "length" if len(ids) >= max_tokens else "stop", self.name)

    def _get_model(self) -> tuple[Any, Any]:
        if self._model_and_tokenizer is None:
            absent = [n for n in ("torch", "transformers") if importlib.util.find_spec(n) is None]
            if absent:
                raise ConfigError(
                    f"a trained model needs {' and '.join(absent)}: {pip_install_command('train')}."
                )
            self._model_and_tokenizer = _load_model(Path(self.path))
        return self._model_and_tokenizer


def _generation_config(request: Request, max_tokens: int, tokenizer: Any) -> Any:
    """Sample as in training, from the model's own probabilities alone."""
    from transformers import GenerationConfig

    eos, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    ends = {"eos_token_id": eos, "pad_token_id": eos if pad is None else pad}
    if not request.temperature:
        return GenerationConfig(
            max_new_tokens=max_tokens, do_sample=False, repetition_penalty=1.0, **ends
        )
    return GenerationConfig(
        max_new_tokens=max_tokens,
        do_sample=True,
        temperature=request.temperature,
        top_k=0,
        top_p=1.0,
        repetition_penalty=1.0,
        **ends,
    )


def _stopping_criteria(request: Request, tokenizer: Any, prompt_length: int) -> Any:
    """Stop at the request's stop sequences, as a step does in training."""
    import torch
    from transformers import StoppingCriteriaList

    def has_stop(ids: Any, scores: Any, **more: Any) -> Any:
        tail = tokenizer.decode(ids[0, max(prompt_length, ids.shape[1] - _STOP_WINDOW_TOKENS) :])
        return torch.tensor([any(stop in tail for stop in request.stop)], device=ids.device)

    return StoppingCriteriaList([has_stop] if request.stop else [])


def _load_model(path: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoTokenizer

    folder = find_model_folder(path)
    if folder is None:
        raise ConfigError(f"{path} contains no model; name the --out folder of `clew train`.")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} contains no tokenizer: {_first_line(error)}") from error
    adapter = folder / "adapter_config.json"
    if not adapter.is_file():
        return _load_causal_model(str(folder), dtype).to(device), tokenizer
    if importlib.util.find_spec("peft") is None:
        raise ConfigError(f"a trained adapter needs peft: {pip_install_command('train')}.")
    from peft import PeftModel

    base = json.loads(adapter.read_text("utf-8"))["base_model_name_or_path"]
    model = _load_causal_model(str(base), dtype, f", the base of the adapter in {folder},").to(
        device
    )
    model = PeftModel.from_pretrained(model, str(folder)).eval()
    # Merged it is faster; in 16 bits merging would round small updates away.
    return (model.merge_and_unload() if dtype == torch.float32 else model), tokenizer


def _load_causal_model(name: str, dtype: Any, which: str = "") -> Any:
    from transformers import AutoModelForCausalLM, GenerationConfig

    try:
        model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the model {name}{which} cannot be loaded: {_first_line(error)}"
        ) from error
    # Defaults of the model, such as a repetition penalty that training did not use, are dropped.
    model.generation_config = GenerationConfig()
    return model.eval()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
