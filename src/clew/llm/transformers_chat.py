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
from clew.types import Usage


@dataclass(eq=False)
class TransformersChat:
    """Runs the model in the folder `path`, loaded at the first call."""

    path: str
    most: int = 512
    """Tokens of a reply when the request does not say."""

    def __post_init__(self) -> None:
        self._turn = threading.Lock()
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
            draw = (
                {"do_sample": True, "temperature": request.temperature}
                if request.temperature
                else {"do_sample": False}
            )
            if request.seed is not None:
                torch.manual_seed(request.seed)
            stops = {"stop_strings": list(request.stop)} if request.stop else {}
            with torch.inference_mode():
                made = model.generate(
                    **given, max_new_tokens=most, tokenizer=tokenizer, **draw, **stops
                )
            ids = made[0, given["input_ids"].shape[1] :].tolist()
            text = tokenizer.decode(ids, skip_special_tokens=True)
            for stop in request.stop:
                text = text.partition(stop)[0]
        usage = Usage(1, int(given["input_ids"].shape[1]), len(ids))
        return Reply(text, usage, "length" if len(ids) >= most else "stop", self.name)

    def _model(self) -> tuple[Any, Any]:
        if self._loaded is None:
            absent = [n for n in ("torch", "transformers") if importlib.util.find_spec(n) is None]
            if absent:
                raise ConfigError(
                    f"a trained model needs {' and '.join(absent)}: pip install 'clew[train]'."
                )
            self._loaded = _load(Path(self.path))
        return self._loaded


def _load(folder: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if (folder / "model" / "tokenizer_config.json").is_file():
        folder = folder / "model"  # the run's own folder was named
    adapter = folder / "adapter_config.json"
    if not adapter.is_file() and not (folder / "config.json").is_file():
        raise ConfigError(f"{folder} holds no model; name the --out folder of `clew train`.")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if not adapter.is_file():
        return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device), tokenizer
    from peft import PeftModel

    base = json.loads(adapter.read_text("utf-8"))["base_model_name_or_path"]
    model = AutoModelForCausalLM.from_pretrained(base, dtype=dtype).to(device)
    return PeftModel.from_pretrained(model, str(folder)).eval(), tokenizer
