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

HEADS = frozenset({"head", "subject", "source", "from", "h"})
TAILS = frozenset({"tail", "object", "target", "to", "t"})
RELATIONS = frozenset({"relation", "predicate", "relationship", "r"})
FACTS = re.compile(r"triple|relation|fact|edge|segment|statement")


def document_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the document of a prompt: its fenced part, or the end of the last message."""
    last = str(messages[-1].get("content") or "") if messages else ""
    fenced = [text for _, text in FENCED.findall(last)]
    return "\n".join(fenced) if fenced else last[-2000:]


def facts_in(text: str) -> tuple[list[str], list[Triple]]:
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


def plain_reply(messages: Sequence[Mapping[str, Any]]) -> str:
    """Reply with the names and triples of the prompt's document, as JSON."""
    names, triples = facts_in(document_of(messages))
    return json.dumps({"entities": names, "triples": triples}, ensure_ascii=False)


def shaped_reply(messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> str:
    """Reply with JSON that fits `schema`, its lists filled with names and triples."""
    names, triples = facts_in(document_of(messages))
    return json.dumps(_Filler(schema, names, triples).fill(schema, "", None), ensure_ascii=False)


About = str | Triple | None
Fill = Callable[[About], Any]
"""Makes a value about a name, a triple, or the whole text."""


class _Filler:
    """Fills a JSON schema with names and triples where the property names suggest them."""

    def __init__(self, schema: Mapping[str, Any], names: list[str], triples: list[Triple]) -> None:
        self.defs = schema.get("$defs", {})
        self.names = names
        self.triples = triples

    def fill(self, schema: Mapping[str, Any], key: str, about: About) -> Any:
        """Make a value for `schema`, the property `key`, about `about`."""
        return self.filler(schema, key)(about)

    def filler(self, schema: Mapping[str, Any], key: str) -> Fill:
        """Compile a schema into a function that makes values, so that it is walked once."""
        if "$ref" in schema:
            schema = self.defs[schema["$ref"].rsplit("/", 1)[-1]]
        for option in schema.get("anyOf", ())[:1]:
            return self.filler(option, key)
        if "enum" in schema:
            return _always(schema["enum"][0])
        match schema.get("type"):
            case "object":
                parts = schema.get("properties", {})
                return _object([(name, self.filler(part, name)) for name, part in parts.items()])
            case "array":
                return lambda about: self.fill_list(schema, key, about)
            case "string":
                return self.texts(key)
            case "number" | "integer":
                return _always(1)
            case "boolean":
                return _always(True)
        return _always(None)

    def fill_list(self, schema: Mapping[str, Any], key: str, about: About) -> Any:
        """Fill a list by its property name: a triple's parts, all triples, or all names."""
        places = schema.get("prefixItems", ())
        if isinstance(about, tuple) and (places or not FACTS.search(key)):
            return list(about) if places else [about[0], about[2]]
        if isinstance(about, str):
            return []
        items = schema.get("items", {})
        subjects: Sequence[str | Triple] = self.triples if FACTS.search(key) else self.names
        if items.get("type") == "array" and not items.get("prefixItems"):
            return [list(subject) for subject in subjects]
        return list(map(self.filler(items, ""), subjects))

    def texts(self, key: str) -> Fill:
        """Return the function that fills one string property."""
        part = 0 if key in HEADS else 2 if key in TAILS else 1 if key in RELATIONS else None

        def text(about: About) -> str:
            if about is None:
                return " ".join(self.names[:1]) or "nothing"
            if isinstance(about, str):
                return "thing" if key == "type" else about
            return " ".join(about) if part is None else about[part]

        return text


def _always(value: Any) -> Fill:
    return lambda about: value


def _object(parts: list[tuple[str, Fill]]) -> Fill:
    return lambda about: {name: fill(about) for name, fill in parts}


_words: dict[tuple[str, int], NDArray[np.float32]] = {}


def hash_vector(text: str, dim: int) -> NDArray[np.float32]:
    """Embed as the sum of a pseudo-random direction per word: shared words, closer vectors."""
    first, *rest = WORD.findall(text.casefold()) or ["(empty)"]
    total = _direction(first, dim).copy()
    for word in rest:
        total += _direction(word, dim)
    total /= np.float32(max(float(np.sqrt(total.dot(total))), 1e-9))
    return total


def _direction(word: str, dim: int) -> NDArray[np.float32]:
    direction = _words.get((word, dim))
    if direction is None:
        noise = hashlib.shake_128(word.encode("utf-8", "replace")).digest(2 * dim)
        direction = np.frombuffer(noise, "<i2").astype(np.float32) / np.float32(32768)
        if len(_words) > 50_000:
            _words.clear()
        _words[word, dim] = direction
    return direction
