"""Default replies of the stub endpoint: names, facts and hash vectors."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

CAPITAL = "[A-ZÀ-ÞΑ-ΩА-Я]"
NAME = re.compile(rf"{CAPITAL}\w+(?: (?:of |the )?{CAPITAL}\w+)*")
SENTENCE = re.compile(r"[.?!。？！]\s*")
WORD = re.compile(r"\w+")
FENCED = re.compile(r"\[\[\w+ ([0-9a-f]{8})\]\]\n(.*?)\n\[\[end \1\]\]", re.DOTALL)

Triple = tuple[str, str, str]

HEAD_KEYS = frozenset({"head", "subject", "source", "from", "h"})
TAIL_KEYS = frozenset({"tail", "object", "target", "to", "t"})
RELATION_KEYS = frozenset({"relation", "predicate", "relationship", "r"})
FACT_KEYS = re.compile(r"triple|relation|fact|edge|segment|statement")


def prompt_document(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the document of a prompt: its fenced part, or the end of the last message."""
    last = str(messages[-1].get("content") or "") if messages else ""
    fenced = [text for _, text in FENCED.findall(last)]
    return "\n".join(fenced) if fenced else last[-2000:]


def find_facts(text: str) -> tuple[list[str], list[Triple]]:
    """Find capitalised names, and a triple for each neighbouring pair within a sentence."""
    names: dict[str, None] = {}
    triples: list[Triple] = []
    for sentence in SENTENCE.split(text):
        found = list(NAME.finditer(sentence))
        names.update((match[0], None) for match in found)
        for left, right in zip(found, found[1:], strict=False):
            if left[0] != right[0]:
                between = sentence[left.end() : right.start()].strip(" ,;:") or "is related to"
                triples.append((left[0], between, right[0]))
    return list(names), triples


def write_plain_reply(messages: Sequence[Mapping[str, Any]]) -> str:
    """Reply with the names and triples of the prompt's document, as JSON."""
    names, triples = find_facts(prompt_document(messages))
    return json.dumps({"entities": names, "triples": triples}, ensure_ascii=False)


def write_schema_reply(messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> str:
    """Reply with JSON that fits `schema`, its lists filled with names and triples."""
    names, triples = find_facts(prompt_document(messages))
    return json.dumps(
        _SchemaFiller(schema, names, triples).fill(schema, "", None), ensure_ascii=False
    )


Subject = str | Triple | None
FillFunction = Callable[[Subject], Any]
"""Makes a value about a name, a triple, or the whole text."""


class _SchemaFiller:
    """Fills a JSON schema with names and triples where the property names suggest them."""

    def __init__(self, schema: Mapping[str, Any], names: list[str], triples: list[Triple]) -> None:
        self.defs = schema.get("$defs", {})
        self.names = names
        self.triples = triples

    def fill(self, schema: Mapping[str, Any], key: str, about: Subject) -> Any:
        """Make a value for `schema`, the property `key`, about `about`."""
        return self.filler(schema, key)(about)

    def filler(self, schema: Mapping[str, Any], key: str) -> FillFunction:
        """Compile a schema into a function that makes values, so that it is walked once."""
        if "$ref" in schema:
            schema = self.defs[schema["$ref"].rsplit("/", 1)[-1]]
        for option in schema.get("anyOf", ())[:1]:
            return self.filler(option, key)
        if "enum" in schema:
            return _constant_filler(schema["enum"][0])
        match schema.get("type"):
            case "object":
                parts = schema.get("properties", {})
                return _object_filler(
                    [(name, self.filler(part, name)) for name, part in parts.items()]
                )
            case "array":
                return lambda about: self.fill_list(schema, key, about)
            case "string":
                return self.text_filler(key)
            case "number" | "integer":
                return _constant_filler(1)
            case "boolean":
                return _constant_filler(True)
        return _constant_filler(None)

    def fill_list(self, schema: Mapping[str, Any], key: str, about: Subject) -> Any:
        """Fill a list by its property name: a triple's parts, all triples, or all names."""
        places = schema.get("prefixItems", ())
        if isinstance(about, tuple) and (places or not FACT_KEYS.search(key)):
            return list(about) if places else [about[0], about[2]]
        if isinstance(about, str):
            return []
        items = schema.get("items", {})
        subjects: Sequence[str | Triple] = self.triples if FACT_KEYS.search(key) else self.names
        if items.get("type") == "array" and not items.get("prefixItems"):
            return [list(subject) for subject in subjects]
        return list(map(self.filler(items, ""), subjects))

    def text_filler(self, key: str) -> FillFunction:
        """Return the function that fills one string property."""
        part = (
            0
            if key in HEAD_KEYS
            else 2
            if key in TAIL_KEYS
            else 1
            if key in RELATION_KEYS
            else None
        )

        def text(about: Subject) -> str:
            if about is None:
                return " ".join(self.names[:1]) or "nothing"
            if isinstance(about, str):
                return "thing" if key == "type" else about
            return " ".join(about) if part is None else about[part]

        return text


def _constant_filler(value: Any) -> FillFunction:
    return lambda about: value


def _object_filler(parts: list[tuple[str, FillFunction]]) -> FillFunction:
    return lambda about: {name: fill(about) for name, fill in parts}


_direction_cache: dict[tuple[str, int], NDArray[np.float32]] = {}


def hash_vector(text: str, dim: int) -> NDArray[np.float32]:
    """Embed as the sum of a pseudo-random direction per word: shared words, closer vectors."""
    first, *rest = WORD.findall(text.casefold()) or ["(empty)"]
    total = _word_direction(first, dim).copy()
    for word in rest:
        total += _word_direction(word, dim)
    total /= np.float32(max(float(np.sqrt(total.dot(total))), 1e-9))
    return total


def _word_direction(word: str, dim: int) -> NDArray[np.float32]:
    direction = _direction_cache.get((word, dim))
    if direction is None:
        noise = hashlib.shake_128(word.encode("utf-8", "replace")).digest(2 * dim)
        direction = np.frombuffer(noise, "<i2").astype(np.float32) / np.float32(32768)
        if len(_direction_cache) > 50_000:
            _direction_cache.clear()
        _direction_cache[word, dim] = direction
    return direction
