"""Finds elements of a page that nobody sees, and tells where elements end that are not closed.

What is hidden at first and opened by a control on the page, such as the panel of a tab, is seen.
"""

import re

_ATTRIBUTE = re.compile(
    r"([^\s=/>\"']++)\s*+(?:=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>\"']*+)))?+", re.DOTALL
)
_NOT_DISPLAYED = re.compile(r"\b(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
_CONTROLS = re.compile(
    r"\b(?:href|data-(?:bs-)?target)\s{0,9}=\s{0,9}[\"']?#([^\"'\s>]{1,200})"
    r"|\baria-controls\s{0,9}=\s{0,9}[\"']?([^\"'\s>]{1,200})",
    re.IGNORECASE,
)
_NEVER = frozenset(
    "html body main br hr img input link meta area base col embed source track wbr".split()
)
# Elements that need no closing tag, with the opening tags that end them …
_ENDED_BY_OPENING = {
    "p": frozenset(
        "address article aside blockquote div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 "
        "header hr main nav ol p pre section table ul".split()
    ),
    **dict.fromkeys(("dt", "dd"), frozenset({"dt", "dd"})),
    **dict.fromkeys(("td", "th"), frozenset({"td", "th", "tr"})),
    **{tag: frozenset({tag}) for tag in ("li", "tr", "option")},
}
# … and the closing tags around them that do.
_ENDED_AROUND = {
    **dict.fromkeys(("p",), frozenset("div section article main aside li td body".split())),
    **dict.fromkeys(("li",), frozenset({"ul", "ol"})),
    **dict.fromkeys(("dt", "dd"), frozenset({"dl"})),
    **dict.fromkeys(("td", "th", "tr"), frozenset({"table", "tbody", "thead"})),
}


def read_attributes(tag: str, source: str) -> dict[str, str]:
    """Return the attributes of an opening tag by their names in small letters."""
    found: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(source, len(tag) + 1):
        found.setdefault(name.lower(), "".join(values))
    return found


def is_ended_by(inside: str, tag: str, *, closing: bool = False) -> bool:
    """Whether an element without a closing tag ends where another one opens or closes."""
    return tag in (_ENDED_AROUND if closing else _ENDED_BY_OPENING).get(inside, ())


class HiddenParts:
    """Tells the elements that are never shown while the opening tags of a page go by."""

    def __init__(self) -> None:
        self._controlled: set[str] = set()

    def hides(self, tag: str, source: str) -> bool:
        """Whether an element is hidden by an attribute or its style, and no control opens it."""
        if "#" in source or "aria-" in source:
            self._controlled.update(a or b for a, b in _CONTROLS.findall(source))
        if tag in _NEVER or not ("hidden" in source or "display" in source):
            return False
        attributes = read_attributes(tag, source)
        hidden = attributes.get("hidden", "shown").lower() not in ("shown", "until-found", "false")
        if not (hidden or _NOT_DISPLAYED.search(attributes.get("style", ""))):
            return False
        panel = attributes.get("role", "") == "tabpanel" or "aria-labelledby" in attributes
        return not panel and attributes.get("id", "") not in self._controlled
