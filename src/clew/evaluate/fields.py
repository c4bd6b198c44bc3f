"""Validated fields of hand-written JSON rows: a text or a list of texts, objects, flags."""

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def read_text_list(row: Row, name: str) -> tuple[str, ...]:
    """Read a text, or a list of texts and numbers, as texts; raise ValueError otherwise."""
    value = row.get(name)
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,) if value else ()
    if isinstance(value, list | tuple):
        odd = [_describe_type(one) for one in value if not _is_text_or_number(one)]
        if odd:
            raise ValueError(f"{name!r} has {odd[0]} in its list, not only texts")
        return tuple(map(str, value))
    raise ValueError(f"{name!r} is {_describe_type(value)}, not a text or a list of texts")


def read_answer_list(row: Row, name: str) -> tuple[str, ...]:
    """Like `read_text_list`, but also accept a single number and keep an empty text."""
    value = row.get(name)
    return (str(value),) if _is_text_or_number(value) else read_text_list(row, name)


def group_aliases(row: Row, name: str, answers: Sequence[str]) -> list[tuple[str, ...]]:
    """Group answers with their aliases: a list per answer, or one list for a single answer.

    With several answers and one flat list the owner is unknown: each name is its own group.
    """
    value = row.get(name)
    if isinstance(value, list | tuple) and any(isinstance(one, list | tuple) for one in value):
        lists = [read_text_list({name: one}, name) for one in value]
        if len(lists) != len(answers):
            raise ValueError(f"{name!r} has {len(lists)} lists for {len(answers)} answers")
    else:
        names = read_text_list(row, name)
        if len(answers) != 1:
            return [(one,) for one in [*answers, *names] if one.strip()]
        lists = [names]
    found = [
        tuple(filter(str.strip, [answer, *more]))
        for answer, more in zip(answers, lists, strict=True)
    ]
    return [tuple(dict.fromkeys(group)) for group in found if group]


def read_mapping(row: Row, name: str) -> dict[str, Any]:
    """Read an object; a missing one is empty."""
    value = row.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{name!r} is {_describe_type(value)}, not an object")
    return {str(key): one for key, one in (value or {}).items()}


def read_flag(row: Row, name: str, default: bool) -> bool:
    """Read a JSON boolean; texts such as "false" are ambiguous and raise ValueError."""
    value = row.get(name)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{name!r} is {_describe_type(value)}, not true or false")
    return default if value is None else value


def _is_text_or_number(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _describe_type(value: object) -> str:
    kinds = {str: "a text", list: "a list", dict: "an object", bool: "true or false"}
    return "null" if value is None else kinds.get(type(value), f"the number {value}")
