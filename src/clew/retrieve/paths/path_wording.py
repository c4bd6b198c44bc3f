"""Says in short sentences what a path of relations asks, as the model that compares it reads it."""

from collections.abc import Sequence

_MAX_ENDS, _MAX_CHARS = 2, 40  # of the ends that are said


def say_path(
    facts: Sequence[tuple[str, str, str]], backward: Sequence[bool], ends: Sequence[str]
) -> str:
    """Say the facts of a path, head, relation and tail, with its end left open, and its ends.

    `backward` tells which steps go from tail to head.
    """
    *before, (head, relation, tail) = facts
    said = "".join(f"{one} {between} {other}. " for one, between, other in before)
    last = f"? {relation} {tail}" if backward[-1] else f"{head} {relation} ?"
    answer = ", ".join(ends[:_MAX_ENDS])[:_MAX_CHARS]
    return f"{said}{last} = {answer}"
