"""Reads documentation as blocks of text: HTML, manual pages, info, dictionaries, plain text."""

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

_SKIPPED = {"script", "style", "nav", "head", "footer", "form", "button", "svg", "noscript"}
_BREAKS = {"p", "li", "dd", "dt", "pre", "tr", "div", "blockquote", "table", "ul", "ol", "section"}
_HEADINGS = {"h1", "h2", "h3", "h4"}
_SPACES = re.compile(r"\s+")
_ROFF_FONT = re.compile(r"\\f(?:\[[A-Za-z]*\]|\([A-Z]{2}|.)|\\s[+-]?\d|\\[&|^/,)%:]")
_ROFF_CHARACTERS = {
    r"\-": "-",
    r"\(bu": "*",
    r"\(aq": "'",
    r"\(dq": '"',
    r"\(lq": '"',
    r"\(rq": '"',
    r"\(em": "—",
    r"\(en": "–",
    r"\e": "\\",
    r"\~": " ",
    r"\ ": " ",
    r"\'": "'",
    r"\`": "`",
    r"\.": ".",
}
_INFO_NODE = re.compile(r"^File: [^,]+,\s+Node: ([^,]+),", re.M)
_MARKUP = re.compile(r"\[(?:!\[[^\]]*\]\([^)]*\))\]\([^)]*\)|!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph with the title of its document and its section."""

    title: str
    section: str
    text: str


def read_document(path: Path) -> Iterator[Block]:
    """Blocks of a file, chosen by its name; nothing of files that are not documentation."""
    name = path.name.removesuffix(".gz")
    suffix = Path(name).suffix
    if "/man/man" in str(path):
        yield from _read_manual(_load(path), name)
    elif suffix in (".html", ".htm", ".xhtml", ".page"):
        yield from _read_html(_load(path))
    elif ".info" in name:
        yield from _read_info(_load(path), name.split(".")[0])
    elif name.endswith(".dict.dz"):
        yield from _read_dictionary(_load(path))
    elif suffix in (".txt", ".md", ".rst", ".pod"):
        yield from read_plain(_load(path), Path(name).stem)


def _load(path: Path) -> str:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return data.decode("utf-8", "replace")


class _HtmlBlocks(HTMLParser):
    """Collects paragraphs under their headings."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = self.section = ""
        self.blocks: list[Block] = []
        self._text: list[str] = []
        self._skipped = 0
        self._inside = ""
        self._kept_lines = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title" or tag in _HEADINGS:
            self._flush()
            self._inside = tag
        elif tag in _SKIPPED:
            self._skipped += tag != "head"
        elif tag in _BREAKS:
            self._flush()
        elif tag in ("td", "th", "br"):
            self._text.append(" ")
        if tag == "pre":
            self._kept_lines = True

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            words = _SPACES.sub(" ", "".join(self._text)).strip(" ¶#")
            self._text = []
            if tag == "title" and not self.title:
                self.title = words
            elif tag != "title":
                self.section = words
            self._inside = ""
        elif tag in _SKIPPED:
            self._skipped = max(0, self._skipped - (tag != "head"))
        elif tag in _BREAKS:
            self._flush()
        if tag == "pre":
            self._kept_lines = False

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self._text.append(data)

    def _flush(self) -> None:
        whole = "".join(self._text)
        text = whole.strip("\n") if self._kept_lines else _SPACES.sub(" ", whole).strip()
        self._text = []
        if text.strip() and not self._inside:
            self.blocks.append(Block(self.title, self.section, text.replace("¶", "")))


def _read_html(text: str) -> Iterator[Block]:
    parser = _HtmlBlocks()
    parser.feed(text)
    parser.close()
    yield from parser.blocks


def _read_manual(text: str, name: str) -> Iterator[Block]:
    title, section, lines = f"{name.rsplit('.', 1)[0]} (manual page)", "", []
    for line in text.splitlines():
        if line.startswith((".SH", ".Sh", ".SS", ".Ss")):
            yield from _paragraph(title, section, lines)
            section, lines = _plain_roff(line[3:]).strip(' "'), []
        elif line.startswith((".PP", ".P", ".TP", ".IP", ".Pp", ".LP", ".It", ".sp")):
            if not line.startswith((".IP", ".It")):
                yield from _paragraph(title, section, lines)
                lines = []
            else:
                lines.append(_plain_roff(line[3:]))
        elif line.startswith((".B", ".I", ".R", ".BR", ".Fl", ".Ar", ".Cm", ".Nm", ".Xr", ".Pa")):
            lines.append(_plain_roff(line.split(" ", 1)[-1].replace('"', "")))
        elif not line.startswith((".", "'", "\\")):
            lines.append(_plain_roff(line))
    yield from _paragraph(title, section, lines)


def _paragraph(title: str, section: str, lines: list[str]) -> Iterator[Block]:
    text = _SPACES.sub(" ", " ".join(lines)).strip()
    if text:
        yield Block(title, section.capitalize(), text)


def _plain_roff(text: str) -> str:
    text = _ROFF_FONT.sub("", text)
    for code, character in _ROFF_CHARACTERS.items():
        text = text.replace(code, character)
    return text


def _read_info(text: str, name: str) -> Iterator[Block]:
    parts = _INFO_NODE.split(text)
    for node, body in zip(parts[1::2], parts[2::2], strict=True):
        for piece in re.split(r"\n\s*\n", body.split("\x1f")[0]):
            words = _SPACES.sub(" ", piece).strip()
            words = re.sub(r"^(?:Next|Prev|Up): .*?(?:Up: [^.]*?)(?= \d|$)", "", words)
            words = re.sub(r"\s[=*.-]{4,}", ":", words)
            if words and not words.startswith(("* ", "***", "===", "---")):
                yield Block(f"{name} manual", node.strip(), words)


def _read_dictionary(text: str) -> Iterator[Block]:
    """Entries of a dictionary: a headword at the margin, its definition indented."""
    word, lines = "", []
    for line in [*text.splitlines(), "end"]:
        if line and not line[0].isspace():
            if word and lines:
                body = _SPACES.sub(" ", " ".join(lines)).replace("{", "").replace("}", "")
                yield Block(word, "", f"{word}: {body.strip()}")
            word, lines = line.strip(), []
        else:
            lines.append(line.strip())


def read_plain(text: str, title: str) -> Iterator[Block]:
    """Paragraphs of a plain or Markdown text; short lines in front of them are sections."""
    section = ""
    for piece in re.split(r"\n\s*\n", _LINK.sub(r"\1", _MARKUP.sub("", text))):
        words = _SPACES.sub(" ", piece).strip()
        if words.startswith("#"):
            section = words.lstrip("# ")[:80]
        elif words:
            yield Block(title, section, words)
