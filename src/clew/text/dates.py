"""Parse dates from text, for comparison and arithmetic."""

import re
from datetime import date

DateParts = tuple[int, int, int]
MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|"
        "september sept sep|october oct|november nov|december dec".split("|"),
        start=1,
    )
    for name in names.split()
}
MONTH_PATTERN = "|".join(sorted(MONTHS, key=len, reverse=True))
"""English months in lower case, the longest first."""
FOREIGN_MONTHS = {
    name: number
    for number, names in enumerate(
        "januar jänner janvier enero января يناير|februar février febrero февраля فبراير|"
        "märz mars marzo марта مارس|avril abril апреля أبريل|mai mayo мая مايو|"
        "juni juin junio июня يونيو|juli juillet julio июля يوليو|août agosto августа أغسطس|"
        "septembre septiembre сентября سبتمبر|oktober octobre octubre октября أكتوبر|"
        "novembre noviembre ноября نوفمبر|dezember décembre diciembre декабря ديسمبر".split("|"),
        start=1,
    )
    for name in names.split()
}
"""Months of other languages, as they stand between a day and a year."""
FOREIGN_DATE = (
    rf"\d{{1,2}}\.?(?:er)?\s+(?:de\s+)?(?:{'|'.join((*FOREIGN_MONTHS, *MONTHS))})"
    r"(?:\s+(?:de(?:l)?\s+)?\d{4})?(?!\w)"
)
_ERA = r"(?P<era>\s*(?:BCE?|B\.C\.(?:E\.)?)(?!\w))?"
_DATES = (
    re.compile(r"(?P<sign>-?)(?P<y>\d{1,4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?!\d)"),
    re.compile(
        rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+(?P<mon>{MONTH_PATTERN})\.?,?\s+(?P<y>\d{{1,4}}){_ERA}",
        re.I,
    ),
    re.compile(
        rf"(?P<mon>{MONTH_PATTERN})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y>\d{{1,4}}){_ERA}",
        re.I,
    ),
    re.compile(
        rf"(?P<d>\d{{1,2}})\.?(?:er)?\s+(?:de\s+)?(?P<mon>{'|'.join((*FOREIGN_MONTHS, *MONTHS))})"
        r"\s+(?:de(?:l)?\s+)?(?P<y>\d{4})(?!\d)",
        re.I,
    ),
    re.compile(rf"(?P<mon>{MONTH_PATTERN})\.?,?\s+(?P<y>\d{{3,4}}){_ERA}", re.I),
    re.compile(r"(?P<era>公元前)?(?P<y>\d{1,4})年(?:(?P<m>\d{1,2})月(?:(?P<d>\d{1,2})日)?)?"),
    re.compile(rf"(?<![\d.,])(?P<y>\d{{3,4}})(?!\d|[.,]\d){_ERA}"),
    re.compile(r"(?<![\d.,])(?P<y>\d{1,4})(?P<era>\s*(?:BCE?|B\.C\.(?:E\.)?)(?!\w))"),
    re.compile(r"(?<![\d.,])(?P<y>\d{1,4})\s*(?:AD|CE|A\.D\.)(?!\w)"),
    re.compile(r"(?P<century>\d{1,2})(?:st|nd|rd|th)\s+century(?P<era>\s*BCE?)?", re.I),
)
_ONLY_DATE = re.compile(
    rf"(?:\s|[\d.,年月日-]|st\b|nd\b|rd\b|th\b|of\b|BCE?\b|AD\b|CE\b|公元前|(?:{MONTH_PATTERN})\b)+",
    re.I,
)
# Alone in a cell: 2015-03-01 with a time or not, 2015-03, 1 March 2015, March 1, 2015, 1.3.2015.
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_NUMERIC = re.compile(r"(\d{4})[-/](\d{1,2})(?:[-/](\d{1,2}))?")
_WHOLE_DATE = re.compile(
    rf"\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}(?:[T ].*)?|\d{{4}}-\d{{2}}|{_DOTTED.pattern}"
    rf"|(?:{MONTH_PATTERN})\.? \d{{1,2}},? \d{{4}}|\d{{1,2}} (?:{MONTH_PATTERN}) \d{{4}}",
    re.I,
)


def parse_date(text: str) -> DateParts | None:
    """Parse the first date as (year, month, day), 0 for unknown parts; years BC are negative."""
    best: tuple[int, DateParts] | None = None
    for pattern in _DATES:
        found = pattern.search(text)
        if found is None:
            continue
        parts = _to_date_parts(found.groupdict())
        if parts is not None and (best is None or found.start() < best[0]):
            best = found.start(), parts
    return best[1] if best else None


def is_date(text: str) -> bool:
    """Whether a text is a date and nothing else: 1961, May 1961, 3 May 1961, 44 BC."""
    return parse_date(text) is not None and _ONLY_DATE.fullmatch(text) is not None


def parse_whole_date(cell: object) -> date | None:
    """Return what is a date and nothing else, and says which number is the month; a month is its
    first day. The time of day is left out.
    """
    text = str(cell).strip()
    if not _WHOLE_DATE.fullmatch(text):
        return None
    if dotted := _DOTTED.fullmatch(text):
        day, month, year = map(int, dotted.groups())
    elif found := _NUMERIC.match(text):
        year, month, day = (int(part or 1) for part in found.groups())
    else:
        year, month, day = parse_date(text) or (0, 0, 0)
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _to_date_parts(parts: dict[str, str | None]) -> DateParts | None:
    if parts.get("century"):
        year = (int(parts["century"] or 0) - 1) * 100 + 1
    else:
        year = int(parts["y"] or 0)
    named = (parts.get("mon") or "").lower()
    month = MONTHS.get(named) or FOREIGN_MONTHS.get(named) or int(parts.get("m") or 0)
    day = int(parts.get("d") or 0)
    if month > 12 or day > 31:
        return None
    if (parts.get("era") or "").strip() or parts.get("sign"):
        year = -year
    return year, month, day


def days_between(one: DateParts, other: DateParts) -> int | None:
    """Days from one full date to another; None when a date is not full or before year 1."""
    if min(*one, *other) < 1:
        return None
    try:
        return (date(*other) - date(*one)).days
    except ValueError:
        return None


def years_between(one: DateParts, other: DateParts) -> int:
    """Whole years from one date to another, as ages are counted; there is no year 0."""
    years = other[0] - one[0]
    if one[0] < 0 < other[0]:
        years -= 1
    if one[1] and other[1] and (other[1], other[2] or 31) < (one[1], one[2]):
        years -= 1
    return years


def is_before(one: DateParts, other: DateParts) -> bool | None:
    """Whether one date is earlier; None when that is undecidable (1961 and May 1961)."""
    for a, b in zip(one, other, strict=True):
        if a == 0 or b == 0:
            return None
        if a != b:
            return a < b
    return None
