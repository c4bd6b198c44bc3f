"""Arithmetic for agents: an expression of numbers and dates is parsed and computed, never run."""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from statistics import fmean
from typing import Any

from clew.errors import InputError

_MAX_CHARS = 500
_SIGNS = str.maketrans("−–×÷·", "--*/*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_MAX_POWER = 1000
_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def compute(expression: str) -> str:
    """Compute an expression; InputError says what cannot be computed.

    It may have numbers, + - * / // % **, comparisons, lists, `min`, `max`, `sum`, `mean`, `len`,
    `round`, `abs`, `sqrt`, `date("1999-12-31")`, `days(d, e)` and `years(d, e)` between two dates.
    """
    if len(expression) > _MAX_CHARS:
        raise InputError(f"the expression has more than {_MAX_CHARS} characters")
    plain = _THOUSANDS.sub("", expression.strip().translate(_SIGNS))
    try:
        value = _evaluate(ast.parse(plain, mode="eval").body)
        return _format(value)
    except InputError:
        raise
    except SyntaxError as error:
        raise InputError(f"{expression!r} is no expression: {error.msg}") from error
    except ZeroDivisionError as error:
        raise InputError(f"{expression!r} divides by zero") from error
    except (TypeError, ValueError, OverflowError, RecursionError, IndexError) as error:
        raise InputError(f"{expression!r} cannot be computed: {error}") from error


def _evaluate(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str()):
            return node.value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_evaluate(item) for item in items]
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_evaluate(left), _evaluate(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_numeric(_evaluate(left)), _numeric(_evaluate(right)))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluate(operand))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluate(left), _evaluate(right))
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_evaluate(one) for one in given))
    raise InputError(f"{ast.unparse(node)!r} cannot be computed; there are numbers, operators, "
                     f"lists and {', '.join(_FUNCTIONS)}")  # fmt: skip


def _numeric(value: Any) -> Any:
    """Refuse texts and lists in arithmetic: to repeat one a billion times is no calculation."""
    if isinstance(value, str | list):
        raise InputError(f"{value!r} is no number")
    return value


def _power(base: Any, exponent: Any) -> Any:
    if abs(_numeric(exponent)) > _MAX_POWER or abs(_numeric(base)) > 10**9:
        raise InputError("the power is too large")
    return base**exponent


def _list(*given: Any) -> list[Any]:
    return given[0] if len(given) == 1 and isinstance(given[0], list) else list(given)


def _date(text: Any, month: int = 1, day: int = 1) -> date:
    """Return a date from `1999-12-31`, `1999-12`, `1999` or three numbers."""
    if isinstance(text, str):
        parts = [int(part) for part in text.split("-")]
        return date(*(parts + [1, 1])[:3])
    return date(text, month, day)


def _years(one: date, other: date) -> int:
    """Return the whole years between two dates, as an age is counted."""
    first, last = sorted((one, other))
    return last.year - first.year - ((last.month, last.day) < (first.month, first.day))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": lambda *given: min(_list(*given)),
    "max": lambda *given: max(_list(*given)),
    "sum": lambda *given: sum(_list(*given)),
    "mean": lambda *given: fmean(_list(*given)),
    "len": lambda *given: len(_list(*given)),
    "round": round,
    "abs": abs,
    "sqrt": math.sqrt,
    "date": _date,
    "days": lambda one, other: abs((other - one).days),
    "years": _years,
}


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return f"{value.days} days"
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(value)
