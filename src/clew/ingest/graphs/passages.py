"""Converts staged rows to documents: rows as readable lines, lines to chunks, chunks to parts.

Rows of one head are grouped whatever their order in the file, so that a chunk is a passage about
something. Where a part ends depends on the heads alone: a changed row changes one part.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from clew.ingest.graphs.rows import id_as_label
from clew.ingest.graphs.staging import ANONYMOUS_ID_PREFIX, GraphStage
from clew.store.protocol import Addition
from clew.text.names import read_relation
from clew.text.unicode import digest, hash64
from clew.types import HEAD, TAIL, Chunk, Document, Extraction, RawEntity, RawFact

PASSAGES_VERSION = "graph 1"  # increase it when the same rows should give different passages
_MIN_LINES_BEFORE_NEW_HEAD = 4  # after as many lines a new head starts a new chunk
_MAX_CHUNK_LINES = 16  # per chunk …
_MAX_CHUNK_CHARACTERS = 1_500  # … or as many lines as reach this size
_HEADS_PER_PART = 64  # on average
_MAX_PART_LINES = 2_000  # per part, at most
_ABOUT_ONLY_HEAD, _ABOUT_SHARED = 1.0, 0.6  # `about` score of a chunk's head


@dataclass(frozen=True, slots=True)
class PassageLine:
    """One row as text with its fact or node; spans are relative to the line's start."""

    head: str
    text: str
    names: tuple[tuple[str, int, int, str], ...]
    """Name, start, end, and the node's id if it differs from the name."""
    fact: RawFact | None = None
    node: RawEntity | None = None


@dataclass(frozen=True)
class PassageBuilder:
    """Converts a stage to additions `source#1`, `source#2` …; `label` names ids without a name."""

    source: str
    label: Callable[[str], str] = id_as_label

    def __call__(self, stage: GraphStage) -> Iterator[Addition]:
        """Yield every part, in order."""
        part: list[list[PassageLine]] = []
        line_count = number = 0
        for lines, fresh in self._group_chunks(stage):
            if part and (line_count >= _MAX_PART_LINES or (fresh and _starts_part(lines[0].head))):
                number += 1
                yield _make_addition(part, f"{self.source}#{number}")
                part, line_count = [], 0
            part.append(lines)
            line_count += len(lines)
        if part:
            yield _make_addition(part, f"{self.source}#{number + 1}")

    def _group_chunks(self, stage: GraphStage) -> Iterator[tuple[list[PassageLine], bool]]:
        """Yield the lines of each chunk, and whether it begins with a new head."""
        lines: list[PassageLine] = []
        size, last, fresh = 0, "", True
        for line in self._read_lines(stage):
            new_head = bool(last) and line.head != last
            full = len(lines) >= _MAX_CHUNK_LINES or size + len(line.text) > _MAX_CHUNK_CHARACTERS
            if lines and (
                full
                or (
                    new_head
                    and (len(lines) >= _MIN_LINES_BEFORE_NEW_HEAD or _starts_part(line.head))
                )
            ):
                yield lines, fresh
                lines, size, fresh = [], 0, new_head
            lines.append(line)
            size += len(line.text)
            last = line.head
        if lines:
            yield lines, fresh

    def _read_lines(self, stage: GraphStage) -> Iterator[PassageLine]:
        """Yield each node's own line, then the links it is the head of."""
        nodes = groupby(stage.iter_nodes(), itemgetter(0))
        node = next(nodes, None)
        for head, links in groupby(stage.iter_links(), itemgetter(0)):
            while node is not None and node[0] < head:
                yield from self._node_lines(*node)
                node = next(nodes, None)
            if node is not None and node[0] == head:
                yield from self._node_lines(*node)
                node = next(nodes, None)
            for link in links:
                yield self._link_line(link)
        while node is not None:
            yield from self._node_lines(*node)
            node = next(nodes, None)

    def _node_lines(self, key: str, cells: Iterator[tuple[Any, ...]]) -> Iterator[PassageLine]:
        entity = self._make_entity(key, list(cells))
        if entity is None:
            return
        details = [entity.type, entity.description]
        details += [f"{name}: {value}" for name, value in entity.attributes.items()]
        shown = "; ".join(one for one in details if one)
        text = f"{entity.name}: {shown}" if shown else entity.name
        yield PassageLine(key, text, ((entity.name, 0, len(entity.name), ""),), node=entity)

    def _make_entity(self, key: str, rows: list[tuple[Any, ...]]) -> RawEntity | None:
        """Merge the rows of a node into one entity; None for a mere label of a relation."""
        fields: dict[str, list[str]] = {}
        for _, name, _, value, _ in rows:  # by rank, then value
            fields.setdefault(name, []).append(value)
        if "node" not in fields:
            return None
        name = rows[0][-1] or self.label(key)
        alias = _id_alias(key, name)
        aliases = {*fields.get("alias", ()), *fields.get("name", ()), alias} - {name, ""}
        kinds = fields.get("type", [])
        attributes = {n[1:]: v[0] for n, v in fields.items() if n[0] == "+"}
        if alias:
            attributes.setdefault("id", alias)
        if len(kinds) > 1:
            attributes.setdefault("types", ", ".join(kinds))
        return RawEntity(
            name,
            kinds[0] if kinds else "",
            "\n".join(fields.get("description", ())),
            aliases=tuple(sorted(aliases)),
            attributes=attributes,
        )

    def _link_line(self, link: tuple[Any, ...]) -> PassageLine:
        head, head_name, relation, relation_name, tail, tail_name = link[:6]
        weight, description, keywords, text, members = link[6:]
        relation_label = relation_name or self.label(relation)
        head_label, tail_label = head_name or self.label(head), tail_name or self.label(tail)
        words = tuple(json.loads(keywords)) if keywords else ()
        if members:
            roles = tuple((self.label(name), role) for name, role in json.loads(members))
        else:
            roles = ((head_label, HEAD), (tail_label, TAIL))
        spans: tuple[tuple[str, int, int, str], ...]
        if text:
            spans = _find_spans(text, [name for name, _ in roles])
        else:
            middle = read_relation(relation_label)
            text = f"{head_label} {middle} {tail_label}"
            spans = (
                (head_label, 0, len(head_label), _id_alias(head, head_label)),
                (tail_label, len(text) - len(tail_label), len(text), _id_alias(tail, tail_label)),
            )
        fact = RawFact(text, roles, relation_label, words, description, weight)
        line = f"{text} ({description})" if description else text
        return PassageLine(head, line, spans, fact)


def _id_alias(key: str, name: str) -> str:
    """Return the id as an alias, without the brackets of an IRI; "" if it is the name itself."""
    if key == name or key.startswith(ANONYMOUS_ID_PREFIX):
        return ""
    plain = key[1:-1] if key[:1] == "<" and key[-1:] == ">" else key
    return plain if plain != name else ""


def _find_spans(text: str, names: list[str]) -> tuple[tuple[str, int, int, str], ...]:
    """Return the spans of names in a given text; names that do not occur have none."""
    found = [(name, text.find(name)) for name in names]
    return tuple((name, at, at + len(name), "") for name, at in found if at >= 0)


def _starts_part(head: str) -> bool:
    """Return whether a new part begins with this head."""
    return hash64(head) % _HEADS_PER_PART == 0


@dataclass
class _MentionSpans:
    spans: list[tuple[int, int]] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    about: float = 0.0


def _make_addition(part: list[list[PassageLine]], name: str) -> Addition:
    """Make one document of these chunks, with the extraction of each."""
    texts = ["\n".join(line.text for line in lines) for lines in part]
    text = "\n\n".join(texts)
    key = digest("", text)
    chunks, extractions, at = [], [], 0
    for chunk_text, lines in zip(texts, part, strict=True):
        end = at + len(chunk_text)
        heads = {line.head for line in lines}
        heading = lines[0].names[0][0] if len(heads) == 1 and lines[0].names else ""
        chunk = Chunk(digest(key, str(at), str(end)), key, at, end, chunk_text, "", heading)
        chunks.append(chunk)
        extractions.append(
            _make_extraction(lines, at, _ABOUT_ONLY_HEAD if len(heads) == 1 else _ABOUT_SHARED)
        )
        at = end + 2
    stamp = digest(key, PASSAGES_VERSION)
    return Addition(Document(key, text, "", (name,)), tuple(chunks), tuple(extractions), stamp)


def _make_extraction(lines: list[PassageLine], at: int, about: float) -> Extraction:
    mentioned: dict[str, _MentionSpans] = {}
    nodes, facts = [], []
    for line in lines:
        for nth, (name, start, end, key) in enumerate(line.names):
            seen = mentioned.setdefault(name, _MentionSpans())
            seen.spans.append((at + start, at + end))
            if key:
                seen.ids.add(key)
            if nth == 0:
                seen.about = about
        if line.node is not None:
            nodes.append(line.node)
        if line.fact is not None:
            span = (at, at + len(line.text))
            facts.append(replace(line.fact, span=span))
        at += len(line.text) + 1
    found = [
        RawEntity(name, spans=tuple(seen.spans), about=seen.about, aliases=tuple(sorted(seen.ids)))
        for name, seen in mentioned.items()
    ]
    return Extraction((*found, *nodes), tuple(facts), exact=True)
