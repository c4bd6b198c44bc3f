"""Units of measure and currencies, in one table for all that reads numbers (`units.toml`)."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from clew.text.names import fold_token

_LEAST_PLURAL = 3  # letters of a word that has a plural with "s"
_MONEY, _WRITTEN = "money", "written"
_CODE = 3  # letters of a currency: EUR


class Units(NamedTuple):
    """All units by their forms in lower case."""

    sizes: Mapping[str, tuple[str, float]]
    """What each measures, and its size in the base unit; without plurals."""
    currencies: Mapping[str, str]
    """How each currency is told; plurals too."""
    currency_codes: tuple[str, ...]
    """EUR, USD: what stands before an amount."""
    symbols: frozenset[str]
    """What is a unit behind a number only if it is written just so: V, Nm."""
    words: frozenset[str]
    """What is a unit behind a number in any case, plurals too."""
    scales: frozenset[str]
    """Words that make a number larger: a unit may follow them."""


@cache
def load_units() -> Units:
    """Load the table of units."""
    data = tomllib.loads((files("clew.text") / "units.toml").read_text(encoding="utf-8"))
    sizes = {
        form: (family, float(size))
        for family, forms in data.items()
        if family not in (_MONEY, _WRITTEN)
        for names, size in forms.items()
        for form in _split_forms(names)
    }
    single = {form: sign for names, sign in data[_MONEY].items() for form in _split_forms(names)}
    currencies = single | {many: sign for form, sign in single.items() if (many := _add_s(form))}
    codes = tuple(f.upper() for f in single if f.isascii() and f.isalpha() and len(f) == _CODE)
    plurals = {plural for form in sizes if (plural := _add_s(form))}
    written = {kind: frozenset(text.split()) for kind, text in data[_WRITTEN].items()}
    words = {*sizes, *plurals, *currencies, *written["scales"], *written["counted"]}
    words = set(map(fold_token, words - {"in", "b", "d"}))
    return Units(sizes, currencies, codes, written["symbols"], frozenset(words), written["scales"])


def _split_forms(names: str) -> list[str]:
    return [form.replace("_", " ") for form in names.split()]


def _add_s(form: str) -> str:
    """Return the plural of a word with "s", or "" for a sign or an abbreviation."""
    is_word = form.isascii() and form.isalpha() and len(form) >= _LEAST_PLURAL
    return f"{form}s" if is_word and form[-1] not in "sz" else ""
