"""The numbers of list items as they are shown: figures, letters, Roman numerals."""

from typing import Literal

NumberStyle = Literal["decimal", "lower letter", "upper letter", "lower roman", "upper roman"]
_ROMAN = {
    **{1000: "m", 900: "cm", 500: "d", 400: "cd", 100: "c", 90: "xc"},
    **{50: "l", 40: "xl", 10: "x", 9: "ix", 5: "v", 4: "iv", 1: "i"},
}
_LETTERS = 26
_MAX_ROMAN = 3999


def format_number(number: int, style: NumberStyle = "decimal") -> str:
    """Return a number in a style; one that the style does not have in figures."""
    if "letter" in style and number > 0:
        letter = chr(ord("a") + (number - 1) % _LETTERS) * (1 + (number - 1) // _LETTERS)
    elif "roman" in style and 0 < number <= _MAX_ROMAN:
        letter, left = "", number
        for value, sign in _ROMAN.items():
            letter += sign * (left // value)
            left %= value
    else:
        return str(number)
    return letter.upper() if style.startswith("upper") else letter
