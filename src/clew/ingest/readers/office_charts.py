"""Reads the charts of Office files: a row for each category, with the values of all series."""

from dataclasses import dataclass, field

from clew.ingest.readers.archive import Archive, get_attribute, links_of, resolve_part

_MAX_ROWS = 1_000
_CATEGORIES = frozenset({"cat", "xVal"})
_VALUES = frozenset({"val", "yVal", "bubbleSize"})
_AXES = frozenset({"catAx", "dateAx", "valAx", "serAx"})


def read_charts(archive: Archive, part: str) -> dict[str, str]:
    """Return the charts that a part refers to as text, by the ids of their relationships."""
    found = {}
    for key, target in links_of(archive, part).items():
        name = resolve_part(part, target)
        if "/charts/chart" in name and name in archive.names:
            chart = ChartHandler()
            archive.parse(name, chart)
            if text := chart.text():
                found[key] = text
    return found


@dataclass(slots=True)
class _Series:
    name: str = ""
    categories: dict[int, str] = field(default_factory=dict)
    values: dict[int, str] = field(default_factory=dict)
    is_percentage: bool = False


class ChartHandler:
    """Collects the titles, the series and their points of one chart."""

    def __init__(self) -> None:
        self._series: list[_Series] = []
        self._titles: dict[str, str] = {}  # of the chart ("") and its axes
        self._axis = ""
        self._in_title = False
        self._part = ""  # of a series: its name, its categories or its values
        self._point = 0
        self._text: list[str] | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Enter a title, a series, one of its parts, or a point."""
        if tag == "ser":
            self._series.append(_Series())
        elif tag in _AXES:
            self._axis = tag
        elif tag == "title":
            self._in_title = True
        elif tag == "tx" or tag in _CATEGORIES or tag in _VALUES:
            self._part = tag
        elif tag == "pt":
            index = get_attribute(attributes, "idx")
            self._point = int(index) if index.isdigit() else 0
        elif tag in ("v", "t", "formatCode"):
            self._text = []

    def characters(self, text: str) -> None:
        """Collect what is said."""
        if self._text is not None:
            self._text.append(text)

    def end(self, tag: str) -> None:
        """Keep a title, a name, or a value."""
        if tag == "title":
            self._in_title = False
        elif tag in _AXES:
            self._axis = ""
        elif tag == self._part:
            self._part = ""
        if self._text is None or tag not in ("v", "t", "formatCode"):
            return
        said, self._text = " ".join("".join(self._text).split()).replace("|", "/"), None
        if self._in_title:
            self._titles[self._axis] = f"{self._titles.get(self._axis, '')} {said}".strip()
        elif self._series and self._part:
            self._keep(self._series[-1], tag, said)

    def _keep(self, series: _Series, tag: str, said: str) -> None:
        if tag == "formatCode":
            series.is_percentage |= self._part in _VALUES and "%" in said
        elif self._part == "tx":
            series.name = said
        elif self._part in _CATEGORIES:
            known = series.categories.get(self._point, "")
            # Of several levels the innermost comes first.
            series.categories[self._point] = f"{said}, {known}" if known else said
        elif self._point not in series.values:
            series.values[self._point] = said

    def text(self) -> str:
        """Return the title and a row for each category; "" if nothing is known."""
        points = sorted({at for series in self._series for at in series.values})[:_MAX_ROWS]
        label = self._titles.get("catAx") or self._titles.get("dateAx", "")
        rows = []
        for at in points:
            named = next((one.categories[at] for one in self._series if at in one.categories), "")
            cells = [f"{label}: {named}" if label and named else named]
            cells += [
                f"{one.name}: {_write_value(one, at)}" if one.name else _write_value(one, at)
                for one in self._series
                if at in one.values
            ]
            rows.append(f"| {' | '.join(filter(None, cells))} |")
        title = self._titles.get("", "")
        return "\n".join([f"Chart: {title}".rstrip(), "", *rows]) if rows else ""


def _write_value(series: _Series, at: int) -> str:
    """Return a value without the noise of binary fractions, as a percentage if it is shown so."""
    try:
        value = float(series.values[at])
    except ValueError:
        return series.values[at]
    return f"{100 * value:.10g} %" if series.is_percentage else f"{value:.12g}"
