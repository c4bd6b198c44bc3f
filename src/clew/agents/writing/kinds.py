"""Check that a short answer has the type the question asks for."""

import re

_ASKS_DATE = re.compile(
    r"^when\b|\bwhat (?:year|date)\b|\bwhich year\b|\bdate of\b|何时|哪一?年", re.I
)
_ASKS_NUMBER = re.compile(r"^how (?:many|much|old|long|tall|far)\b|多少|几[个岁年]", re.I)
_ASKS_PERSON = re.compile(r"^who(?:se|m)?\b|谁", re.I)
_NUMBER = re.compile(
    r"\d|[零一二三四五六七八九十百千万亿]|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|"
    r"eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand|million|none|once|twice)\b",
    re.I,
)


def fits_answer_type(question: str, short: str) -> bool:
    """Whether a date or number is given where one is asked for, and no number for a person."""
    asked = question.strip()
    if _ASKS_DATE.search(asked) or _ASKS_NUMBER.search(asked):
        return _NUMBER.search(short) is not None
    if _ASKS_PERSON.search(asked):
        return not short[:1].isdigit()
    return True
