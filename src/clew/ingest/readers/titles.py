"""Which heading of a Markdown text is its title, and when its file's name is."""

import re
from itertools import islice
from pathlib import PurePosixPath

from clew.ingest.headings import headings
from clew.ingest.readers.markup import tokens as markup
from clew.names import tokens

_WITHIN = 20_000  # characters from the beginning in which a title is looked for
_NOTE = 400  # characters that a remark before the title may have
# Badges and other images, links and addresses: they decorate a text and say nothing of it.
_LINK = re.compile(r"!?\[[^\[\]]*+\](?:\([^()]*+\)|\[[^\[\]]*+\])?+|\|[^|\n]*+\||https?://\S++")
_DIRECTIVE = re.compile(r"^\.\.(?:[ \t].*)?$(?:\n[ \t]+.*)*+", re.MULTILINE)
_WORD = re.compile(r"\w")
_TAGS = frozenset(f"h{level}" for level in range(1, 7))
# Files that are called so by custom are about their folder.
_BY_CUSTOM = re.compile(r"readme(?:[._-]\w{2,5})?|index", re.IGNORECASE)


def heading_title(text: str) -> str | None:
    """The heading that is the title: the one all begins with, or the only one of level 1, soon.

    None says that there are headings and none is the title; "" that there are no headings.
    """
    text = text[:_WITHIN]
    found = list(headings(text))
    before = text[: found[0].start] if found else text
    if tagged := _tagged(before):
        return tagged
    if not found:
        return ""
    if not says_something(before):
        return found[0].title
    highest = [heading for heading in found if heading.level == 1]
    soon = len(highest) == 1 and highest[0].start <= _NOTE
    return highest[0].title if soon else None


def _tagged(text: str) -> str:
    """The title that HTML tags make of what stands first: `<h1 align="center">Name</h1>`."""
    said: list[str] | None = None
    for kind, value in markup(text):
        if kind == "text" and said is not None:
            said.append(value)
        elif kind == "text" and says_something(value):
            return ""
        elif kind == "open" and value in _TAGS and said is None:
            said = []
        elif kind == "close" and value in _TAGS and said is not None:
            return "".join(said).strip()
    return ""


def says_something(text: str) -> bool:
    """Whether there are words besides tags, badges, links and directives."""
    text = "".join(value for kind, value in markup(text) if kind == "text")
    for _ in range(2):  # a badge is an image in a link
        text = _LINK.sub(" ", text)
    return _WORD.search(_DIRECTIVE.sub("", text)) is not None


def file_title(name: str, text: str) -> str:
    """The file's name without its ending, if the text speaks of it more than once.

    A text does not speak of `notes` or `2024-05-01`, and then its first sentence knows better.
    """
    path = PurePosixPath(name)
    stem = path.parent.name if _BY_CUSTOM.fullmatch(path.stem) else path.stem
    wanted = tokens(stem).keys
    said = tokens(text[:_WITHIN]).keys
    if not any(len(key) > 1 and not key.isdigit() for key in wanted):
        return ""
    times = (at for at in range(len(said)) if said[at : at + len(wanted)] == wanted)
    return stem if len(list(islice(times, 2))) > 1 else ""
