"""The local embedder on a GPU: in batches, with the vectors of a CPU; a stub stands for the GPU."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clew.config import EmbedSettings
from clew.errors import ConfigError
from clew.llm.embed_local import LocalEmbedder
from clew.llm.factory import create_embedder

onnxruntime = pytest.importorskip("onnxruntime")
CUDA = "CUDAExecutionProvider"
TEXTS = [
    "Ada Lind built the Marrow Bridge.",
    "Who?",
    "The weir at Kell was made of oak. " * 30,
    "",
    *(f"Lock {number} lies beside Oslen Mill." for number in range(90)),
]


class StubSession:
    """Runs on the CPU what was asked of a GPU, and counts the runs."""

    runs = 0
    asked: list[Any] = []

    def __init__(self, file: str, options: Any, providers: list[Any], **given: Any) -> None:
        type(self).asked = providers
        self._names = [one if isinstance(one, str) else one[0] for one in providers]
        self._session = ORIGINAL(file, options, providers=["CPUExecutionProvider"], **given)
        self.get_inputs, self.get_outputs = self._session.get_inputs, self._session.get_outputs

    def get_providers(self) -> list[str]:
        return self._names

    def run(self, wanted: None, feed: dict[str, Any]) -> Any:
        type(self).runs += 1
        return self._session.run(wanted, feed)


ORIGINAL = onnxruntime.InferenceSession


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> type[StubSession]:
    monkeypatch.setattr(onnxruntime, "InferenceSession", StubSession)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA])
    StubSession.runs, StubSession.asked = 0, []
    return StubSession


def _choose(cache: Path, held: str = "", **given: Any) -> LocalEmbedder:
    embed = create_embedder(EmbedSettings(**given), cache, held)
    assert isinstance(embed, LocalEmbedder)
    return embed


async def test_batches_give_the_vectors_of_a_cpu(
    weights_cache: Path, gpu: type[StubSession]
) -> None:
    on_cpu = LocalEmbedder(weights_cache, precision="fp32")
    on_gpu = _choose(weights_cache)
    assert on_gpu.name == on_cpu.name  # the vectors are the same
    expected, runs = await on_cpu(TEXTS, role="query"), gpu.runs
    found = await on_gpu(TEXTS, role="query")
    assert gpu.asked[0] == (CUDA, {"use_tf32": "0"})
    assert gpu.runs - runs <= 4 < len(TEXTS)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    quoted = [(TEXTS[0], [(0, 8), (19, 32)]), ("name: Ada; town: Kell", []), (TEXTS[2], [(4, 900)])]
    np.testing.assert_allclose(
        await on_gpu.embed_quotes(quoted), await on_cpu.embed_quotes(quoted), atol=2e-6
    )


@pytest.mark.parametrize(
    ("device", "held", "precision", "asks"),
    [
        ("auto", "", "fp32", True),
        ("auto", "all-MiniLM-L6-v2/fp32", "fp32", True),
        ("auto", "all-MiniLM-L6-v2/int8", "int8", True),  # stays as it was embedded
        ("cuda", "all-MiniLM-L6-v2/int8", "fp32", True),
        ("cpu", "", "int8", False),
        ("cpu", "all-MiniLM-L6-v2/fp32", "fp32", False),
    ],
)
def test_the_device_and_what_is_stored_choose_the_precision(
    tmp_path: Path, gpu: type[StubSession], device: str, held: str, precision: str, asks: bool
) -> None:
    embed = _choose(tmp_path, held, device=device)
    assert (embed.precision, embed.gpu) == (precision, asks)


def test_without_a_gpu_nothing_changes_unless_one_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    assert _choose(tmp_path).precision == "int8"
    with pytest.raises(ConfigError, match="onnxruntime-gpu"):
        _choose(tmp_path, device="cuda")
