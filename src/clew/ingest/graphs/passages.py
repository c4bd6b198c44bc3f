"""From staged rows to documents: rows as readable lines, a few lines a chunk, many chunks a part.

Rows of one head stand together whatever their order in the file was, so that a chunk is a passage
about something. Where a part ends depends on the heads alone: a changed row changes one part.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from clew.ingest.graphs.words import same
from clew.names import relation_words
from clew.store.graph_stage import ANONYMOUS, Stage
from clew.store.protocol import Addition
from clew.text import digest, hash64
from clew.types import HEAD, TAIL, Chunk, Document, Extraction, FoundEntity, FoundFact

STAMP = "graph 1"  # raise it when the same rows should become other passages
_ENOUGH = 4  # lines after which another head begins another chunk
_MOST = 16  # lines in a chunk …
_CHARACTERS = 1_500  # … or as many as hold this much text
_HEADS = 64  # heads in a part, on average
_LINES = 2_000  # in a part, at most
_ALONE, _SHARED = 1.0, 0.6  # how far a chunk is about its head: when it is the only one, and else


@dataclass(frozen=True, slots=True)
class Line:
    """One row in words, with what it says; spans count from the line's beginning."""

    head: str
    text: str
    names: tuple[tuple[str, int, int, str], ...]
    """Name, where it stands, and the id of what it names where that is another."""
    fact: FoundFact | None = None
    node: FoundEntity | None = None


@dataclass(frozen=True)
class Passages:
    """Turns a stage into additions under `source#1`, `source#2` …; `label` names bare ids."""

    source: str
    label: Callable[[str], str] = same

    def __call__(self, stage: Stage) -> Iterator[Addition]:
        """Every part, in order."""
        part: list[list[Line]] = []
        held = number = 0
        for lines, fresh in self._chunks(stage):
            if part and (held >= _LINES or (fresh and _opens(lines[0].head))):
                number += 1
                yield _addition(part, f"{self.source}#{number}")
                part, held = [], 0
            part.append(lines)
            held += len(lines)
        if part:
            yield _addition(part, f"{self.source}#{number + 1}")

    def _chunks(self, stage: Stage) -> Iterator[tuple[list[Line], bool]]:
        """Lines that belong together, and whether they begin with another head than before."""
        lines: list[Line] = []
        size, last, fresh = 0, "", True
        for line in self._lines(stage):
            turns = bool(last) and line.head != last
            full = len(lines) >= _MOST or size + len(line.text) > _CHARACTERS
            if lines and (full or (turns and (len(lines) >= _ENOUGH or _opens(line.head)))):
                yield lines, fresh
                lines, size, fresh = [], 0, turns
            lines.append(line)
            size += len(line.text)
            last = line.head
        if lines:
            yield lines, fresh

    def _lines(self, stage: Stage) -> Iterator[Line]:
        """What is said of each node, then the links it is the head of."""
        nodes = groupby(stage.nodes(), itemgetter(0))
        node = next(nodes, None)
        for head, links in groupby(stage.links(), itemgetter(0)):
            while node is not None and node[0] < head:
                yield from self._about(*node)
                node = next(nodes, None)
            if node is not None and node[0] == head:
                yield from self._about(*node)
                node = next(nodes, None)
            for link in links:
                yield self._linked(link)
        while node is not None:
            yield from self._about(*node)
            node = next(nodes, None)

    def _about(self, key: str, said: Iterator[tuple[Any, ...]]) -> Iterator[Line]:
        entity = self._entity(key, list(said))
        if entity is None:
            return
        details = [entity.type, entity.description]
        details += [f"{name}: {value}" for name, value in entity.attributes.items()]
        shown = "; ".join(one for one in details if one)
        text = f"{entity.name}: {shown}" if shown else entity.name
        yield Line(key, text, ((entity.name, 0, len(entity.name), ""),), node=entity)

    def _entity(self, key: str, said: list[tuple[Any, ...]]) -> FoundEntity | None:
        """All that is said of a node as one entity; nothing for a mere label of a relation."""
        fields: dict[str, list[str]] = {}
        for _, name, _, value, _ in said:  # by rank, then value
            fields.setdefault(name, []).append(value)
        if "node" not in fields:
            return None
        name = said[0][-1] or self.label(key)
        own = _other(key, name)
        aliases = {*fields.get("alias", ()), *fields.get("name", ()), own} - {name, ""}
        kinds = fields.get("type", [])
        attributes = {n[1:]: v[0] for n, v in fields.items() if n[0] == "+"}
        if own:
            attributes.setdefault("id", own)
        if len(kinds) > 1:
            attributes.setdefault("types", ", ".join(kinds))
        return FoundEntity(
            name,
            kinds[0] if kinds else "",
            "\n".join(fields.get("description", ())),
            aliases=tuple(sorted(aliases)),
            attributes=attributes,
        )

    def _linked(self, link: tuple[Any, ...]) -> Line:
        head, head_name, relation, relation_name, tail, tail_name = link[:6]
        weight, description, keywords, text, members = link[6:]
        said = relation_name or self.label(relation)
        one, other = head_name or self.label(head), tail_name or self.label(tail)
        words = tuple(json.loads(keywords)) if keywords else ()
        if members:
            who = tuple((self.label(name), role) for name, role in json.loads(members))
        else:
            who = ((one, HEAD), (other, TAIL))
        spans: tuple[tuple[str, int, int, str], ...]
        if text:
            spans = _found(text, [name for name, _ in who])
        else:
            middle = relation_words(said)
            text = f"{one} {middle} {other}"
            spans = (
                (one, 0, len(one), _other(head, one)),
                (other, len(text) - len(other), len(text), _other(tail, other)),
            )
        fact = FoundFact(text, who, said, words, description, weight)
        line = f"{text} ({description})" if description else text
        return Line(head, line, spans, fact)


def _other(key: str, name: str) -> str:
    """The id as an alias: without the brackets of an IRI; none when it is the name itself."""
    if key == name or key.startswith(ANONYMOUS):
        return ""
    plain = key[1:-1] if key[:1] == "<" and key[-1:] == ">" else key
    return plain if plain != name else ""


def _found(text: str, names: list[str]) -> tuple[tuple[str, int, int, str], ...]:
    """Where names stand in a text that was given; those that do not stand there have no span."""
    found = [(name, text.find(name)) for name in names]
    return tuple((name, at, at + len(name), "") for name, at in found if at >= 0)


def _opens(head: str) -> bool:
    """Whether a part begins with this head."""
    return hash64(head) % _HEADS == 0


@dataclass
class _Mentioned:
    spans: list[tuple[int, int]] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    about: float = 0.0


def _addition(part: list[list[Line]], name: str) -> Addition:
    """One document of these chunks, with what each says."""
    texts = ["\n".join(line.text for line in lines) for lines in part]
    text = "\n\n".join(texts)
    key = digest("", text)
    chunks, said, at = [], [], 0
    for own, lines in zip(texts, part, strict=True):
        end = at + len(own)
        heads = {line.head for line in lines}
        heading = lines[0].names[0][0] if len(heads) == 1 and lines[0].names else ""
        chunk = Chunk(digest(key, str(at), str(end)), key, at, end, own, "", heading)
        chunks.append(chunk)
        said.append(_extraction(lines, at, _ALONE if len(heads) == 1 else _SHARED))
        at = end + 2
    stamp = digest(key, STAMP)
    return Addition(Document(key, text, "", (name,)), tuple(chunks), tuple(said), stamp)


def _extraction(lines: list[Line], at: int, about: float) -> Extraction:
    mentioned: dict[str, _Mentioned] = {}
    nodes, facts = [], []
    for line in lines:
        for nth, (name, start, end, key) in enumerate(line.names):
            held = mentioned.setdefault(name, _Mentioned())
            held.spans.append((at + start, at + end))
            if key:
                held.ids.add(key)
            if nth == 0:
                held.about = about
        if line.node is not None:
            nodes.append(line.node)
        if line.fact is not None:
            span = (at, at + len(line.text))
            facts.append(_at(line.fact, span))
        at += len(line.text) + 1
    found = [
        FoundEntity(
            name, spans=tuple(held.spans), about=held.about, aliases=tuple(sorted(held.ids))
        )
        for name, held in mentioned.items()
    ]
    return Extraction((*found, *nodes), tuple(facts), exact=True)


def _at(fact: FoundFact, span: tuple[int, int]) -> FoundFact:
    return FoundFact(
        fact.text, fact.members, fact.relation, fact.keywords, fact.description, fact.weight, span
    )
