"""Combine sub-answers by code: which is earlier, larger, or the same; models are poor at this."""

from collections.abc import Mapping, Sequence

from clew.agents.planning.chinese import is_chinese
from clew.agents.planning.likeness import answers_equal
from clew.agents.planning.plan import Join
from clew.agents.planning.quantities import parse_quantity
from clew.agents.planning.values import DateParts, is_before, parse_date, years_between
from clew.text import split_words


def combine_answers(join: Join, answers: Mapping[int, str]) -> str:
    """Return the winning option, or yes/no for "same" and "both"; "" when undecided."""
    values = [[answers.get(place, "") for place in places] for places in join.question_numbers]
    if any(not value for row in values for value in row):
        return ""
    if join.how == "both":
        return _all_yes([row[0] for row in values], join.what)
    if join.how == "same":
        same = answers_equal(values[0][0], values[1][0])
        if is_chinese("".join(join.options)):
            return "是" if same else "否"
        return "yes" if same else "no"
    if join.how in ("longer life", "shorter life"):
        spans = [_life_years(row) for row in values]
        return _pick_winner(join, spans, most=join.how == "longer life")
    if join.how in ("earlier", "later"):
        return _pick_by_date(join, [parse_date(row[0]) for row in values])
    amounts = [parse_quantity(row[0]) for row in values]
    if any(amount is None for amount in amounts):
        return ""
    kinds = {amount.dimension for amount in amounts if amount}
    if len(kinds) > 1:
        return ""
    return _pick_winner(join, [a.amount for a in amounts if a], most=join.how == "larger")


def _all_yes(values: Sequence[str], what: str) -> str:
    """Return yes if each answer says yes or names the thing; "" if an answer says neither."""
    replies = [split_words(value) or [""] for value in values]
    if any(answer[0] == "no" for answer in replies):
        return "no"
    wanted = split_words(what)[-1:]
    named = [[answer[-1].removesuffix("s")] == wanted for answer in replies]
    return "yes" if all(n or a[0] == "yes" for n, a in zip(named, replies, strict=True)) else ""


def _life_years(row: Sequence[str]) -> float | None:
    born, died = parse_date(row[0]), parse_date(row[1])
    if born is None or died is None:
        return None
    # Finer than whole years: a month and a day count where they are known.
    fraction = (died[1] - born[1]) / 12 + (died[2] - born[2]) / 365 if born[1] and died[1] else 0.0
    return died[0] - born[0] + fraction if years_between(born, died) >= 0 else None


def _pick_winner(join: Join, amounts: Sequence[float | None], *, most: bool) -> str:
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(join.options) or len(set(known)) < len(known):
        return ""
    best = max(known) if most else min(known)
    return join.options[known.index(best)]


def _pick_by_date(join: Join, dates: Sequence[DateParts | None]) -> str:
    one, other = dates[0], dates[1]
    if one is None or other is None:
        return ""
    first = is_before(one, other)
    if first is None:
        return ""
    return join.options[0 if first == (join.how == "earlier") else 1]
