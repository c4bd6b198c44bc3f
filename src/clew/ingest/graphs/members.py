"""N-ary facts in the form of our own exports."""

import json
from collections.abc import Mapping
from typing import Any

from clew.ingest.graphs.fields import make_link
from clew.ingest.graphs.rows import Row, UnreadableRow

MEMBERS_FIELD = "clew_members"
"""Field with the (name, role) pairs."""


def make_nary_fact(fields: Mapping[str, Any], line: int) -> Row:
    """Make an n-ary fact; `clew_members` are pairs, or JSON of pairs."""
    left = dict(fields)
    members = left.pop(MEMBERS_FIELD)
    try:
        pairs = json.loads(members) if isinstance(members, str) else members
        participants = tuple((str(name).strip(), str(role).strip()) for name, role in pairs)
    except (ValueError, TypeError):
        return UnreadableRow(line, "has members that are no pairs of name and role")
    if not participants or not all(name for name, _ in participants):
        return UnreadableRow(line, "has no members")
    relation = left.pop("relation", "") or ""
    made = make_link(participants[0][0], "", left, relation or "-")
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
