"""Facts that are no plain head and tail, as our own exports write them."""

import json
from collections.abc import Mapping
from typing import Any

from clew.ingest.graphs.fields import link_of
from clew.ingest.graphs.rows import Bad, Row

MEMBERS = "clew_members"
"""The field that holds (name, role) pairs."""


def nary_of(fields: Mapping[str, Any], line: int) -> Row:
    """A fact of many members; `clew_members` are pairs, or JSON that holds them."""
    left = dict(fields)
    members = left.pop(MEMBERS)
    try:
        pairs = json.loads(members) if isinstance(members, str) else members
        who = tuple((str(name).strip(), str(role).strip()) for name, role in pairs)
    except (ValueError, TypeError):
        return Bad(line, "has members that are no pairs of name and role")
    if not who or not all(name for name, _ in who):
        return Bad(line, "has no members")
    relation = left.pop("relation", "") or ""
    made = link_of(who[0][0], "", left, relation or "-")
    return type(made)(
        made.head,
        str(relation),
        "",
        made.weight,
        made.description,
        made.keywords,
        made.text or " ".join(name for name, _ in who),
        who,
    )
