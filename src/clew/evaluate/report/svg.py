"""SVG plots: quality against cost with intervals, bars by question type, and training curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isclose, log10

COLOURS = (
    *("#2563eb", "#ea580c", "#16a34a", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#db2777"),
    *("#4b5563", "#65a30d", "#7c3aed", "#0d9488"),
)
_FILE_STYLE = (  # pages have their own style sheet
    "<style>text{font:12px sans-serif}.name{font-size:14px}.grid{stroke:#ddd}</style>"
    '<rect width="640" height="320" fill="white"/>'
)
_DOT_RADIUS = 7.0  # of a dot with its margin
_LETTER_WIDTH = 7.2  # upper estimate of the width of a bold letter
_LINE_HEIGHT = 14.0
_MAX_LABEL_SHIFTS = 12  # lines by which a label may be shifted up or down
_RIGHT_MARGIN = 16.0  # right of the plot area


def series_colour(at: int) -> str:
    """Return the colour of a series, the same in every plot."""
    return COLOURS[at % len(COLOURS)]


@dataclass(frozen=True)
class ParetoPoint:
    """A recipe in a plot of quality against cost."""

    name: str
    x: float
    y: float
    low: float
    high: float
    colour: str


@dataclass(frozen=True)
class _PlotArea:
    """The plot area and its axis ranges; on a logarithmic axis `x` holds powers of ten."""

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    log_x: bool = True

    def scale_x(self, value: float) -> float:
        share = ((log10(value) if self.log_x else value) - self.x[0]) / (self.x[1] - self.x[0])
        return self.left + share * self.width

    def scale_y(self, value: float) -> float:
        share = (value - self.y[0]) / (self.y[1] - self.y[0])
        return self.top + (1 - share) * self.height


def pareto_front(points: Sequence[ParetoPoint]) -> list[ParetoPoint]:
    """Return the Pareto-optimal points, cheapest first."""
    found: list[ParetoPoint] = []
    for point in sorted(points, key=lambda p: (p.x, -p.y)):
        if not found or point.y > found[-1].y:
            found.append(point)
    return found


def draw_pareto_plot(points: Sequence[ParetoPoint], x_title: str, y_title: str) -> str:
    """Plot quality against cost (logarithmic) with the Pareto front."""
    points = [point for point in points if point.x > 0]
    if not points:
        return ""
    lows, highs = [p.low for p in points], [p.high for p in points]
    pad = max(0.02, 0.08 * (max(highs) - min(lows)))
    x_low, x_high = log10(min(p.x for p in points)), log10(max(p.x for p in points))
    span = max(0.6, x_high - x_low)
    frame = _PlotArea(
        *(58, 14, 560, 320),
        (x_low - 0.12 * span, x_low + 1.28 * span),
        (min(lows) - pad, max(highs) + pad),
    )
    steps = pareto_front(points)
    line = " ".join(
        f"{'M' if at == 0 else 'H'}{frame.scale_x(p.x):.1f}"
        + (f",{frame.scale_y(p.y):.1f}" if at == 0 else f" V{frame.scale_y(p.y):.1f}")
        for at, p in enumerate(steps)
    )
    marks = [_draw_axes(frame, x_title, y_title), f'<path class="front" d="{line}"/>']
    occupied = [_Box.around(frame.scale_x(p.x), frame.scale_y(p.y)) for p in points]
    for point in sorted(points, key=lambda p: -p.y):
        marks.append(_draw_point(frame, point, occupied))
    return _wrap_svg(640, 384, marks, f"{y_title} against {x_title}")


@dataclass(frozen=True)
class _Box:
    """An occupied rectangle of the plot."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, x: float, y: float) -> "_Box":
        """Return the box of a dot."""
        return cls(x - _DOT_RADIUS, y - _DOT_RADIUS, x + _DOT_RADIUS, y + _DOT_RADIUS)

    def overlaps(self, other: "_Box") -> bool:
        """Whether two boxes overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def _place_label(
    frame: _PlotArea, point: ParetoPoint, occupied: Sequence[_Box]
) -> tuple[_Box, bool]:
    """Find a free box for a label near its dot; return it and whether it is left of the dot."""
    x, y = frame.scale_x(point.x), frame.scale_y(point.y)
    width = _LETTER_WIDTH * len(point.name)
    low, high = frame.top, frame.top + frame.height
    candidates = []
    for step in range(_MAX_LABEL_SHIFTS):
        for up in (0.0,) if not step else (_LINE_HEIGHT * step, -_LINE_HEIGHT * step):
            top = y + up - _LINE_HEIGHT / 2
            candidates.append((_Box(x + 10, top, x + 10 + width, top + _LINE_HEIGHT), False))
            candidates.append((_Box(x - 10 - width, top, x - 10, top + _LINE_HEIGHT), True))
    for box, left in candidates:
        inside = box.left >= frame.left and box.right <= frame.left + frame.width + _RIGHT_MARGIN
        if inside and low <= box.top and box.bottom <= high:
            if not any(box.overlaps(other) for other in occupied):
                return box, left
    return candidates[0]


def _draw_point(frame: _PlotArea, point: ParetoPoint, occupied: list[_Box]) -> str:
    x, y = frame.scale_x(point.x), frame.scale_y(point.y)
    box, left = _place_label(frame, point, occupied)
    occupied.append(box)
    at, end = (box.right, "end") if left else (box.left, "start")
    middle = (box.top + box.bottom) / 2
    lead = ""
    if abs(middle - y) > _LINE_HEIGHT:  # far from its dot, so draw a connecting line
        lead = (
            f'<line class="whisker" x1="{x:.1f}" y1="{y:.1f}" x2="{at:.1f}" y2="{middle:.1f}" '
            f'stroke="{point.colour}"/>'
        )
    whisker = (
        f'<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" y1="{frame.scale_y(point.low):.1f}" '
        f'y2="{frame.scale_y(point.high):.1f}" stroke="{point.colour}"/>'
    )
    title = f"{point.name}: {point.y:.3f} ({point.low:.3f} to {point.high:.3f}), {point.x:.4g}"
    return (
        f"<g><title>{escape(title)}</title>{whisker}{lead}"
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="{point.colour}"/>'
        f'<text class="name" x="{at:.1f}" y="{middle + 4:.1f}" text-anchor="{end}">'
        f"{escape(point.name)}</text></g>"
    )


def _draw_axes(frame: _PlotArea, x_title: str, y_title: str) -> str:
    bottom = frame.top + frame.height
    parts = [_draw_y_axis(frame, y_title)]
    for value in _log_ticks(*frame.x) if frame.log_x else _whole_ticks(*frame.x):
        x = frame.scale_x(value)
        parts.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{frame.top}" y2="{bottom}"/>'
            f'<text class="tick" x="{x:.1f}" y="{bottom + 17:.1f}" text-anchor="middle">'
            f"{value:g}</text>"
        )
    parts.append(
        f'<text class="axis" x="{frame.left + frame.width / 2}" y="{bottom + 38}" '
        f'text-anchor="middle">{escape(x_title)}</text>'
    )
    return "".join(parts)


def _draw_y_axis(frame: _PlotArea, title: str) -> str:
    right = frame.left + frame.width
    parts = []
    for value in compute_ticks(*frame.y):
        y = frame.scale_y(value)
        parts.append(
            f'<line class="grid" x1="{frame.left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{frame.left - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{value:g}</text>"
        )
    if title:
        middle = frame.top + frame.height / 2
        parts.append(
            f'<text class="axis" transform="translate(14 {middle}) rotate(-90)" '
            f'text-anchor="middle">{escape(title)}</text>'
        )
    return "".join(parts)


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(floor(low), ceil(high) + 1)
    values = [times * 10.0**power for power in powers for times in (1, 2, 5)]
    return [value for value in values if low <= log10(value) <= high]


def _whole_ticks(low: float, high: float) -> list[float]:
    return [value for value in compute_ticks(low, high) if value == int(value)]


def draw_line_plot(title: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Draw one line per run over steps, as a complete SVG file with its own style."""
    points = [point for line in lines.values() for point in line]
    x, y = (_axis_range([point[axis] for point in points]) for axis in (0, 1))
    frame = _PlotArea(58, 30, 440, 240, x, y, log_x=False)
    parts = [_FILE_STYLE, f'<text class="name" x="58" y="18">{escape(title)}</text>']
    parts.append(_draw_axes(frame, "steps", ""))
    for at, (name, line) in enumerate(lines.items()):
        colour = series_colour(at)
        pixels = [(f"{frame.scale_x(x):.1f}", f"{frame.scale_y(y):.1f}") for x, y in line]
        dots = "".join(f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>' for x, y in pixels)
        path = " ".join(f"{x},{y}" for x, y in pixels)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}'
            f'<text x="508" y="{44 + 16 * at}" fill="{colour}">{escape(name)}</text>'
        )
    return _wrap_svg(640, 320, parts, title) + "\n"


def _axis_range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    if not isclose(low, high):
        return low, high
    return (0.0, 1.0) if 0 <= low <= 1 else (low - 0.5, high + 0.5)


def draw_bar_chart(
    groups: Sequence[tuple[str, Sequence[tuple[str, float, str]]]], y_title: str, top: float = 1.0
) -> str:
    """Draw grouped bars: for each question type one bar per recipe."""
    if not groups:
        return ""
    most = max(len(group) for _, group in groups)
    bar = max(5.0, min(22.0, 620 / max(1, sum(len(group) + 1 for _, group in groups))))
    width = max(400.0, 74 + len(groups) * (most + 1.2) * bar)
    frame = _PlotArea(58, 14, width - 74, 220, (0, 1), (0, top))
    parts = [_draw_y_axis(frame, y_title)]
    slot = frame.width / len(groups)
    for number, (kind, group) in enumerate(groups):
        left = frame.left + number * slot + (slot - len(group) * bar) / 2
        for at, (name, value, fill) in enumerate(group):
            y = frame.scale_y(min(value, top))
            parts.append(
                f'<rect x="{left + at * bar:.1f}" y="{y:.1f}" width="{bar - 1.5:.1f}" '
                f'height="{frame.top + frame.height - y:.1f}" fill="{fill}" rx="1.5">'
                f"<title>{escape(f'{name}, {kind}: {value:.3f}')}</title></rect>"
            )
        middle = frame.left + (number + 0.5) * slot
        parts.append(
            f'<text class="tick" x="{middle:.1f}" y="{frame.top + frame.height + 18}" '
            f'text-anchor="middle">{escape(kind)}</text>'
        )
    return _wrap_svg(width, 262, parts, f"{y_title} by type")


def compute_ticks(low: float, high: float) -> list[float]:
    """Return round tick values between two axis limits."""
    span = high - low
    step = 10.0 ** floor(log10(span / 4)) if span > 0 else 1.0
    while span / step > 7:
        step *= 2 if round(step / 10 ** floor(log10(step))) != 2 else 2.5
    first = ceil(low / step)
    return [round(step * n, 10) for n in range(first, floor(high / step) + 1)]


def _wrap_svg(width: float, height: float, parts: Sequence[str], label: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" '
        f'aria-label="{escape(label, quote=True)}" xmlns="http://www.w3.org/2000/svg">'
        + "".join(parts)
        + "</svg>"
    )
