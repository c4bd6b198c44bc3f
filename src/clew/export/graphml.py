"""Export GraphML for Gephi, yEd, Cytoscape, networkx and igraph.

An n-ary fact is a node of its own with an edge to each member. Text that XML cannot hold (control
characters) is written with U+FFFD and exactly in `clew_exact`, which our import prefers.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

from clew.export.graph import ExportedFact, ExportGraph
from clew.types import Entity

_ILLEGAL_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ENTITY_KEYS = (
    "name",
    "type",
    "description",
    "aliases",
    "clew_attributes",
    "clew_exact",
    "clew_members",
)
_NODE_KEYS = (*_ENTITY_KEYS, "relation", "text", "weight", "keywords")
_EDGE_KEYS = ("relation", "text", "weight", "description", "keywords", "clew_exact", "clew_role")
# Attribute names that readers interpret, without case, space and underscore.
_RESERVED_NAMES = frozenset(
    "name label title preflabel displayname type kind category labels class description comment "
    "summary aliases alias altlabel synonyms relation text weight keywords id".split()
)


async def write_graphml(graph: ExportGraph, file: Path) -> int:
    """Write nodes and edges; return 0, since every fact can be written."""
    extra = await _assign_attribute_keys(graph)
    with file.open("w", encoding="utf-8", newline="\n") as out:
        out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        out.write('<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        _write_key_declarations(out, extra)
        out.write('<graph edgedefault="directed">\n')
        async for at, entity in graph.entities():
            out.write(_render_element("node", {"id": f"n{at}"}, _entity_data(entity, extra)))
        number = 0
        async for fact in graph.facts():
            number += 1
            for element in _render_fact(fact, number):
                out.write(element)
        out.write("</graph>\n</graphml>\n")
    return 0


async def _assign_attribute_keys(graph: ExportGraph) -> dict[str, str]:
    """Map attribute names that get their own GraphML key to that key."""
    names = {name async for _, entity in graph.entities() for name in entity.attributes}
    plain = sorted(
        n for n in names if n.strip() == n and not _is_reserved(n) and not _has_illegal_chars(n)
    )
    return {name: f"a{number}" for number, name in enumerate(plain)}


def _is_reserved(name: str) -> bool:
    return name.replace("_", "").replace(
        " ", ""
    ).casefold() in _RESERVED_NAMES or name.casefold().startswith("clew")


def _write_key_declarations(out: TextIO, extra: Mapping[str, str]) -> None:
    for whose, names in (("node", _NODE_KEYS), ("edge", _EDGE_KEYS)):
        for name in names:
            kind = "double" if name == "weight" else "string"
            out.write(
                f'<key id="{whose}_{name}" for="{whose}" attr.name="{name}" attr.type="{kind}"/>\n'
            )
    for name, key in extra.items():
        out.write(f'<key id="{key}" for="node" attr.name={quoteattr(name)} attr.type="string"/>\n')


def _entity_data(entity: Entity, extra: Mapping[str, str]) -> dict[str, str]:
    other = {n: v for n, v in entity.attributes.items() if n not in extra}
    data = {
        "node_name": entity.name,
        "node_type": entity.type,
        "node_description": entity.description,
        "node_aliases": _to_json(entity.aliases),
        "node_clew_attributes": _to_json(other),
    }
    exact = {name[5:]: text for name, text in data.items() if _has_illegal_chars(text)}
    data |= {extra[n]: v for n, v in entity.attributes.items() if n in extra}
    exact |= {
        f"+{n}": v for n, v in entity.attributes.items() if n in extra and _has_illegal_chars(v)
    }
    return data | {"node_clew_exact": json.dumps(exact) if exact else ""}


def _render_fact(stated: ExportedFact, number: int) -> Iterator[str]:
    fact = stated.fact
    data = {
        "relation": fact.relation,
        "text": fact.text,
        "weight": repr(fact.weight),
        "description": fact.description,
        "keywords": _to_json(fact.keywords),
    }
    inexact = {name: text for name, text in data.items() if _has_illegal_chars(text)}
    exact = json.dumps(inexact) if inexact else ""
    if stated.triple:
        ends = {"source": f"n{stated.positions[0]}", "target": f"n{stated.positions[1]}"}
        yield _render_element("edge", ends, _prefix_keys("edge", {**data, "clew_exact": exact}))
        return
    members = json.dumps([list(one) for one in stated.members])
    fields = {**data, "clew_exact": exact, "clew_members": members}
    yield _render_element("node", {"id": f"f{number}"}, _prefix_keys("node", fields))
    for at, (_, role) in zip(stated.positions, stated.members, strict=True):
        ends = {"source": f"f{number}", "target": f"n{at}"}
        yield _render_element("edge", ends, {"edge_clew_role": role})


def _prefix_keys(whose: str, fields: Mapping[str, str]) -> dict[str, str]:
    return {f"{whose}_{name}": text for name, text in fields.items()}


def _to_json(value: tuple[str, ...] | Mapping[str, str]) -> str:
    return json.dumps(value, ensure_ascii=False) if value else ""


def _has_illegal_chars(text: str) -> bool:
    return _ILLEGAL_XML.search(text) is not None


def _render_element(tag: str, attributes: Mapping[str, str], fields: Mapping[str, str]) -> str:
    named = "".join(f' {name}="{value}"' for name, value in attributes.items())
    cells = "".join(
        f'<data key="{key}">{escape(_ILLEGAL_XML.sub(chr(0xFFFD), text))}</data>'
        for key, text in fields.items()
        if text
    )
    return f"<{tag}{named}>{cells}</{tag}>\n"
