"""The tokenizer of a GGUF file, written as transformers reads it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from tokenizers import Tokenizer

from clew.errors import ConfigError
from clew.train.decode.gguf import write_tokenizer

LETTERS = ["a", "b", "1", "9", "Ġ"]


@dataclass
class Field:
    value: Any

    def contents(self) -> Any:
        return self.value


@dataclass
class File:
    """What a reader of a GGUF file gives."""

    tokens: list[str]
    kinds: list[int]
    merges: list[str]

    @property
    def fields(self) -> dict[str, Field]:
        return {
            "tokenizer.ggml.tokens": Field(self.tokens),
            "tokenizer.ggml.token_type": Field(self.kinds),
            "tokenizer.ggml.merges": Field(self.merges),
            "tokenizer.ggml.eos_token_id": Field(len(self.tokens) - 1),
            "tokenizer.chat_template": Field("{{ messages }}"),
        }


def test_gguf_tokenizer_merges_letters_but_no_digits(tmp_path: Path) -> None:
    tokens = [*LETTERS, "ab", "19", "Ġab", "<|end|>"]
    file = File(tokens, [1] * (len(tokens) - 1) + [3], ["a b", "1 9", "Ġ ab"])
    write_tokenizer(file, tmp_path)
    made = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    encoded = made.encode("ab ab 19<|end|>")
    assert encoded.tokens == ["ab", "Ġab", "Ġ", "1", "9", "<|end|>"]
    assert encoded.ids[-1] == len(tokens) - 1
    assert made.decode(encoded.ids) == "ab ab 19"
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert settings["eos_token"] == "<|end|>"
    assert settings["chat_template"] == "{{ messages }}"


def test_gguf_control_tokens_among_the_words_are_told(tmp_path: Path) -> None:
    file = File(["<|end|>", *LETTERS], [3] + [1] * len(LETTERS), [])
    with pytest.raises(ConfigError, match="stands among its words"):
        write_tokenizer(file, tmp_path)
