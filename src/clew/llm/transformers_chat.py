"""A model folder of transformers (or a LoRA adapter) in this process: what `clew train` wrote.

For trying a trained agent out; to serve many, merge it and put vLLM or llama.cpp behind it.
One generation runs at a time, in a thread.
"""

import asyncio
import importlib.util
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.errors import ConfigError
from clew.llm.chat import EndpointError, Hear, Reply, Request
from clew.llm.prefix import Prefix
from clew.llm.trained import model_folder
from clew.types import Usage
from clew.version import pip_install

_TAIL = 32
"""Tokens looked at for a stop sequence; a letter may take several."""


@dataclass(eq=False)
class TransformersChat:
    """Runs the model in the folder `path`, loaded at the first call."""

    path: str
    most: int = 512
    """Tokens of a reply when the request does not say."""

    def __post_init__(self) -> None:
        self._turn = threading.Lock()
        self._prefix = Prefix()
        self._loaded: tuple[Any, Any] | None = None

    @property
    def name(self) -> str:
        """The run's folder, for `model` is the same in all, and when its weights were written:
        replies are remembered by this name.
        """
        folder = Path(self.path)
        found = [*folder.glob("*.safetensors"), *folder.glob("model/*.safetensors")]
        written = max((file.stat().st_mtime_ns for file in found), default=0)
        return f"{'/'.join(folder.parts[-2:])}@{written:x}"

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Generate in a thread."""
        if request.shape is not None:
            raise EndpointError("an in-process transformers model knows no shapes.", status=501)
        reply = await asyncio.to_thread(self._generate, request)
        if hear is not None:
            hear(reply.text)
        return reply

    def _generate(self, request: Request) -> Reply:
        with self._turn:
            import torch

            model, tokenizer = self._model()
            turns = [{"role": turn.role, "content": turn.content} for turn in request.messages]
            shown = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            given = tokenizer(shown, return_tensors="pt", add_special_tokens=False).to(model.device)
            most = request.max_tokens or self.most
            if request.seed is not None:
                torch.manual_seed(request.seed)
            read = int(given["input_ids"].shape[1])
            with torch.inference_mode():
                cache = self._prefix.lend(model, given["input_ids"][0].tolist())
                made = model.generate(
                    **given,
                    past_key_values=cache,
                    generation_config=_drawing(request, most, tokenizer),
                    stopping_criteria=_stops(request, tokenizer, read),
                )
            self._prefix.keep(cache, made[0].tolist())
            ids = made[0, read:].tolist()
            text = tokenizer.decode(ids, skip_special_tokens=True)
            for stop in request.stop:
                text = text.partition(stop)[0]
        usage = Usage(1, read, len(ids))
        return Reply(text, usage, "length" if len(ids) >= most else "stop", self.name)

    def _model(self) -> tuple[Any, Any]:
        if self._loaded is None:
            absent = [n for n in ("torch", "transformers") if importlib.util.find_spec(n) is None]
            if absent:
                raise ConfigError(
                    f"a trained model needs {' and '.join(absent)}: {pip_install('train')}."
                )
            self._loaded = _load(Path(self.path))
        return self._loaded


def _drawing(request: Request, most: int, tokenizer: Any) -> Any:
    """How tokens are drawn: as in training, from the model's own probabilities alone."""
    from transformers import GenerationConfig

    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    ends = {"eos_token_id": end, "pad_token_id": end if pad is None else pad}
    if not request.temperature:
        return GenerationConfig(
            max_new_tokens=most, do_sample=False, repetition_penalty=1.0, **ends
        )
    return GenerationConfig(
        max_new_tokens=most,
        do_sample=True,
        temperature=request.temperature,
        top_k=0,
        top_p=1.0,
        repetition_penalty=1.0,
        **ends,
    )


def _stops(request: Request, tokenizer: Any, read: int) -> Any:
    """Ends a reply where its text says so, as a step of training ends."""
    import torch
    from transformers import StoppingCriteriaList

    def said(ids: Any, scores: Any, **more: Any) -> Any:
        tail = tokenizer.decode(ids[0, max(read, ids.shape[1] - _TAIL) :])
        return torch.tensor([any(stop in tail for stop in request.stop)], device=ids.device)

    return StoppingCriteriaList([said] if request.stop else [])


def _load(named: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoTokenizer

    folder = model_folder(named)
    if folder is None:
        raise ConfigError(f"{named} holds no model; name the --out folder of `clew train`.")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} holds no tokenizer: {_first(error)}") from error
    adapter = folder / "adapter_config.json"
    if not adapter.is_file():
        return _causal(str(folder), dtype).to(device), tokenizer
    if importlib.util.find_spec("peft") is None:
        raise ConfigError(f"a trained adapter needs peft: {pip_install('train')}.")
    from peft import PeftModel

    base = json.loads(adapter.read_text("utf-8"))["base_model_name_or_path"]
    model = _causal(str(base), dtype, f", the base of the adapter in {folder},").to(device)
    model = PeftModel.from_pretrained(model, str(folder)).eval()
    # Added up it is quicker; in 16 bits small steps of training would be rounded away.
    return (model.merge_and_unload() if dtype == torch.float32 else model), tokenizer


def _causal(name: str, dtype: Any, which: str = "") -> Any:
    from transformers import AutoModelForCausalLM, GenerationConfig

    try:
        model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the model {name}{which} cannot be loaded: {_first(error)}") from error
    # What a call leaves open, transformers fills from here: a penalty that training had not.
    model.generation_config = GenerationConfig()
    return model.eval()


def _first(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
