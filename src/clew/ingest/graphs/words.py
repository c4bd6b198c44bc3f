"""How a format's node ids become names."""

from clew.names import local_name


def resource_name(identifier: str) -> str:
    """`<iri>` by what the IRI ends in; literals and blank nodes as they are."""
    if identifier.startswith("<") and identifier.endswith(">"):
        return local_name(identifier[1:-1])
    return identifier


def same(identifier: str) -> str:
    """For formats whose identifiers are the names themselves."""
    return identifier
