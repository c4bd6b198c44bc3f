"""Fine-tuning an encoder: a tiny random one learns which words mean the same."""

import sys
from typing import Any

import numpy as np
import pytest

from clew.adapters import ContrastiveExample
from clew.errors import ConfigError
from clew.train.encoder import EncoderFitOptions, fine_tune

SIZE, LAYERS = 32, 2
PAIRS = [(f"ask{n}", f"say{n}") for n in range(8)]
WORDS = [word for pair in PAIRS for word in pair] + ["who", "it"]


def silent(stage: str, done: int, total: int) -> None:
    """Nobody listens."""


def tokens() -> bytes:
    tokenizers = pytest.importorskip("tokenizers")
    known = {"?": 0} | {word: at + 1 for at, word in enumerate(WORDS)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="?"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return str(made.to_str()).encode()


def weights() -> dict[str, np.ndarray]:
    chance = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}

    def some(name: str, *shape: int) -> None:
        found[name] = chance.normal(0, 0.2, shape).astype(np.float32)

    def norm(name: str) -> None:
        found[f"{name}.weight"] = np.ones(SIZE, np.float32)
        found[f"{name}.bias"] = np.zeros(SIZE, np.float32)

    some("embeddings.word_embeddings.weight", len(WORDS) + 1, SIZE)
    some("embeddings.position_embeddings.weight", 16, SIZE)
    some("embeddings.token_type_embeddings.weight", 2, SIZE)
    norm("layers.-1.embeddings_norm_layernorm")
    for at in range(LAYERS):
        for part in ("attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.o_proj"):
            some(f"layers.{at}.{part}.MatMul.weight", SIZE, SIZE)
            some(f"layers.{at}.{part}.Add.bias", SIZE)
        norm(f"layers.{at}.attention_output_norm_layernorm")
        for part, shape in (("mlp.fc1", (SIZE, 64)), ("mlp.fc2", (64, SIZE))):
            some(f"layers.{at}.{part}.MatMul.weight", *shape)
            some(f"layers.{at}.{part}.Add.bias", shape[1])
        norm(f"layers.{at}.mlp_output_norm_layernorm")
    return found


def first(held: dict[str, np.ndarray]) -> float:
    from clew.train.encoder import MiniLM

    model = MiniLM.from_weights(held, tokens())
    asked, said = model([f"who {a} it" for a, _ in PAIRS]), model([b for _, b in PAIRS])
    near: Any = (asked @ said.T).argmax(1)
    return float(np.mean(near.numpy() == np.arange(len(PAIRS))))


def test_questions_come_nearer_to_what_is_right_for_them() -> None:
    pytest.importorskip("torch")
    start = weights()
    choices = [ContrastiveExample(f"who {a} it", ((b,),)) for a, b in PAIRS] * 4
    how = EncoderFitOptions(epochs=30, batch=8, learning_rate=0.01)
    learnt = fine_tune(start, tokens(), choices, silent, how)
    assert first(start) < 0.5 and first(learnt) == 1.0
    assert set(learnt) == set(start)
    again = fine_tune(start, tokens(), choices, silent, how)
    assert all(np.array_equal(learnt[name], again[name]) for name in learnt)
    assert all(np.array_equal(one, weights()[name]) for name, one in start.items())


def test_paths_are_sums_of_their_relations() -> None:
    torch = pytest.importorskip("torch")
    from clew.train.encoder import sum_text_vectors

    vectors = torch.eye(3)
    found = sum_text_vectors(vectors, ["a", "b", "c"], [("a",), ("a", "b"), ("c", "c")]).numpy()
    assert np.allclose(found, [[1, 0, 0], [0.5**0.5, 0.5**0.5, 0], [0, 0, 1]])


def test_batches_hold_every_question_once_and_have_a_bound() -> None:
    from clew.train.encoder import make_batches

    long = [
        ContrastiveExample(str(n), ((f"{n} " * 200,),), ((f"other {n} " * 100,),))
        for n in range(40)
    ]
    short = [
        ContrastiveExample(f"s{n}", (("directed by",),), (("written by",),)) for n in range(40)
    ]
    how = EncoderFitOptions(batch=16, max_characters=4000)
    found = make_batches([*long, *short], how, np.random.default_rng(0))
    assert sorted(one.question for part in found for one in part) == sorted(
        one.question for one in [*long, *short]
    )
    assert max(map(len, found)) <= 16 and min(map(len, found)) >= 1
    for part in found:
        texts = {
            text for one in part for meaning in (*one.positives, *one.negatives) for text in meaning
        }
        assert sum(min(len(text), 512) for text in texts) <= 4000 or len(part) == 1


def test_without_torch_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ConfigError, match=r"pip install .*\[train\]"):
        fine_tune({}, b"", [], silent)


def test_weights_of_another_layout_are_one_sentence() -> None:
    pytest.importorskip("torch")
    with pytest.raises(ConfigError, match="only the encoder of the extra `local`"):
        fine_tune({"onnx::MatMul_7": np.zeros((2, 2), np.float32)}, b"", [], silent)
