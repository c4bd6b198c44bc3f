"""N-ary facts in the form of our own exports."""

import json
from collections.abc import Mapping
from typing import Any

from clew.ingest.graphs.fields import link_of
from clew.ingest.graphs.rows import Bad, Row

MEMBERS = "clew_members"
"""Field with the (name, role) pairs."""


def nary_of(fields: Mapping[str, Any], line: int) -> Row:
    """Make an n-ary fact; `clew_members` are pairs, or JSON of pairs."""
    left = dict(fields)
    members = left.pop(MEMBERS)
    try:
        pairs = json.loads(members) if isinstance(members, str) else members
        participants = tuple((str(name).strip(), str(role).strip()) for name, role in pairs)
    except (ValueError, TypeError):
        return Bad(line, "has members that are no pairs of name and role")
    if not participants or not all(name for name, _ in participants):
        return Bad(line, "has no members")
    relation = left.pop("relation", "") or ""
    made = link_of(participants[0][0], "", left, relation or "-")
    return type(made)(
        made.head,
        str(relation),
        "",
        made.weight,
        made.description,
        made.keywords,
        made.text or " ".join(name for name, _ in participants),
        participants,
    )
