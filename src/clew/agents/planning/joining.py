"""Combine sub-answers by code: which is earlier, larger, or the same; models are poor at this."""

from collections.abc import Mapping, Sequence

from clew.agents.planning.chinese import is_chinese
from clew.agents.planning.likeness import alike
from clew.agents.planning.plan import Join
from clew.agents.planning.quantities import quantity
from clew.agents.planning.values import Order, before, when, years_between
from clew.text import words


def joined(join: Join, answers: Mapping[int, str]) -> str:
    """Return the winning option, or yes/no for "same" and "both"; "" when undecided."""
    values = [[answers.get(place, "") for place in places] for places in join.places]
    if any(not value for row in values for value in row):
        return ""
    if join.how == "both":
        return _all_so([row[0] for row in values], join.what)
    if join.how == "same":
        same = alike(values[0][0], values[1][0])
        if is_chinese("".join(join.options)):
            return "是" if same else "否"
        return "yes" if same else "no"
    if join.how in ("longer life", "shorter life"):
        spans = [_life(row) for row in values]
        return _winner(join, spans, most=join.how == "longer life")
    if join.how in ("earlier", "later"):
        return _by_date(join, [when(row[0]) for row in values])
    amounts = [quantity(row[0]) for row in values]
    if any(amount is None for amount in amounts):
        return ""
    kinds = {amount.dimension for amount in amounts if amount}
    if len(kinds) > 1:
        return ""
    return _winner(join, [a.amount for a in amounts if a], most=join.how == "larger")


def _all_so(values: Sequence[str], what: str) -> str:
    """Return yes if each answer says yes or names the thing; "" if an answer says neither."""
    replies = [words(value) or [""] for value in values]
    if any(answer[0] == "no" for answer in replies):
        return "no"
    wanted = words(what)[-1:]
    named = [[answer[-1].removesuffix("s")] == wanted for answer in replies]
    return "yes" if all(n or a[0] == "yes" for n, a in zip(named, replies, strict=True)) else ""


def _life(row: Sequence[str]) -> float | None:
    born, died = when(row[0]), when(row[1])
    if born is None or died is None:
        return None
    # Finer than whole years: a month and a day count where they are known.
    fraction = (died[1] - born[1]) / 12 + (died[2] - born[2]) / 365 if born[1] and died[1] else 0.0
    return died[0] - born[0] + fraction if years_between(born, died) >= 0 else None


def _winner(join: Join, amounts: Sequence[float | None], *, most: bool) -> str:
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(join.options) or len(set(known)) < len(known):
        return ""
    best = max(known) if most else min(known)
    return join.options[known.index(best)]


def _by_date(join: Join, dates: Sequence[Order | None]) -> str:
    one, other = dates[0], dates[1]
    if one is None or other is None:
        return ""
    first = before(one, other)
    if first is None:
        return ""
    return join.options[0 if first == (join.how == "earlier") else 1]
