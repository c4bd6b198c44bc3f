"""Labels for node ids without a name."""

from clew.names import local_name


def resource_name(identifier: str) -> str:
    """Return the local name of an `<iri>`; literals and blank nodes unchanged."""
    if identifier.startswith("<") and identifier.endswith(">"):
        return local_name(identifier[1:-1])
    return identifier


def id_as_label(identifier: str) -> str:
    """Return the id itself, for formats whose ids are names."""
    return identifier
