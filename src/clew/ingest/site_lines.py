"""Leaves out what the pages of one site repeat: menus, links to each other, cookie notices.

Only documents that were read from one folder, or as rows of one file, are compared, and only where
most of them have navigation: a run of short lines that all of them have, or of titles of the
others. Contracts and forms repeat lines too, but each of theirs says something of its document.
A line that most pages have says nothing of any of them, unless it has another value elsewhere
("Status: open"); a sentence of the edges is kept on the first page that has it.
"""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby, pairwise
from pathlib import PurePosixPath

from clew.ingest.parse_process import ReadItem
from clew.ingest.readers.pages import fold_line
from clew.text.code_outline import CODE_FORMAT
from clew.text.origins import compose
from clew.text.tables import TABLES
from clew.text.unicode import digest
from clew.types import Document

_LEAST_PAGES = 4
_MOST = 0.8  # share of the pages that have what belongs to the site
_SITE = 0.5  # least share of pages with navigation, and with lines of their own
_LEAST_RUN = 3  # links or labels in a row that are navigation
_LABEL_WORDS, _OWN_WORDS = 5, 6  # most words of a label, least of a line that says something
_IMAGES = 3  # pages with one image line
_MAX_PAGES, _MAX_CHARACTERS = 1_000, 8_000_000  # that are compared at once
_MARK = re.compile(r"^(?:#{1,6}|[-*+•‣◦·–—]|\d{1,3}[.)])[ \t]+")
_LINK = re.compile(r"!?\[([^\]\n]*)\](?:\([^)\n]*\))?")
_PARTS = re.compile(r"\s+[|·•›»>/]\s+")
_NUMBER = re.compile(r"\d+")
_BLANKS = re.compile(r"\n{3,}")
_NOTHING = 7  # deeper than any heading: text follows
_ENDS = (".", "!", "?", "。", "！", "？")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a page; blank ones, code and rows of tables have no key."""

    text: str
    key: str = ""
    parts: tuple[str, ...] = ()
    """The entries of a menu in one line; otherwise the line."""

    @property
    def is_item(self) -> bool:
        """Whether it is marked as an item of a list."""
        return not self.level and _MARK.match(self.text) is not None

    @property
    def level(self) -> int:
        """Return the level of a heading, 0 for other lines."""
        return len(self.text) - len(self.text.lstrip("#")) if self.key else 0

    @property
    def is_sentence(self) -> bool:
        return self.key.endswith(_ENDS) and len(self.key.split()) >= _OWN_WORDS

    @property
    def is_label(self) -> bool:
        """Whether it may be an entry of a menu; "Status: open" says something."""
        short = all(len(part.split()) <= _LABEL_WORDS for part in self.parts)
        return short and not self.level and not self.key.endswith(_ENDS[:1]) and ":" not in self.key


@dataclass(frozen=True)
class Site:
    """What the pages of a folder repeat, by the folded text."""

    pages: int = 0
    lines: Mapping[str, str] = field(default_factory=dict)
    """Lines of most pages, and the first page that has each."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles of the pages, and the first page of each."""
    leads: Sequence[str] = field(default_factory=list)
    """Lines that links to other pages follow, and labels before one ("Read more")."""
    images: Sequence[str] = field(default_factory=list)

    def to_json(self) -> str:
        """Return what `from_json` reads."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Site":
        """Read what was stored."""
        return cls(**json.loads(text))

    def repeats(self, line: _Line) -> bool:
        """Whether most pages have a line, or each of its entries."""
        return bool(line.key) and all(part in self.lines for part in line.parts)

    def links(self, line: _Line, page: str) -> bool:
        """Whether a line is the title of another page, or a path of entries and titles."""
        if len(line.parts) > 1:
            return all(part in self.lines or part in self.titles for part in line.parts)
        other = line.key in self.titles and (line.is_item or self.titles[line.key] != page)
        return not line.level and other


async def leave_out_site_lines(
    items: AsyncIterator[ReadItem], known: dict[str, Site]
) -> AsyncIterator[ReadItem]:
    """Yield the items without the lines of their site, in order.

    `known` are the sites of earlier reads by folder, for pages that come alone; what is learnt is
    added to it.
    """
    learnt: set[str] = set()
    held: list[ReadItem] = []
    size = 0
    async for item in items:
        held.append(item)
        size += len(item.text) if isinstance(item, Document) else 0
        if len(held) >= _MAX_PAGES or size > _MAX_CHARACTERS:
            for one in _clean_all(held, known, learnt):
                yield one
            held, size = [], 0
    for one in _clean_all(held, known, learnt):
        yield one


def _find_folder(document: Document) -> str:
    """Return the folder of a document's file, or the file it is a row of."""
    file, mark, _ = document.names[0].partition("#")
    return file if mark else str(PurePosixPath(file).parent)


def _clean_all(
    items: Sequence[ReadItem], known: dict[str, Site], learnt: set[str]
) -> Iterator[ReadItem]:
    folders: dict[str, list[Document]] = {}
    for item in items:
        if isinstance(item, Document) and _is_page(item):
            folders.setdefault(_find_folder(item), []).append(item)
    for folder, pages in folders.items():
        # One page that is read again is no new site; a whole folder is.
        if folder not in learnt and len(pages) >= known.get(folder, Site()).pages:
            known[folder] = learn_site(pages)
            learnt.add(folder)
    for item in items:
        if isinstance(item, Document) and _is_page(item):
            site = known.get(_find_folder(item), Site())
            yield _clean_page(item, site) if site.lines else item
        else:
            yield item


def _is_page(document: Document) -> bool:
    """Whether a document is prose whose lines may be left out: no places in it are stored."""
    if not document.names or document.page_starts or TABLES in document.metadata:
        return False
    return document.metadata.get("format") != CODE_FORMAT


def _split_lines(text: str) -> list[_Line]:
    found, fenced = [], False
    for line in text.split("\n"):
        bare = line.strip()
        fence = bare.startswith(("```", "~~~"))
        if not bare or fenced or fence or bare.startswith("|"):
            found.append(_Line(line))
        else:
            key = _fold(bare)
            parts = [part for part in map(_trim, _PARTS.split(key)) if part]
            found.append(_Line(bare, key, tuple(parts) if len(parts) >= _LEAST_RUN else (key,)))
        fenced ^= fence
    return found


def _fold(line: str) -> str:
    """Return a line without its marks and the targets of its links."""
    return _trim(fold_line(_LINK.sub(r"\1", _MARK.sub("", line))))


def _trim(text: str) -> str:
    return text.strip(" *_[]")


def learn_site(documents: Iterable[Document]) -> Site:
    """Return what most of these pages repeat; nothing where they are not the pages of a site."""
    pages: dict[str, Document] = {}
    for one in documents:
        pages.setdefault(one.id, one)  # copies count once
    if len(pages) < _LEAST_PAGES:
        return Site()
    texts = {one.names[0]: _split_lines(one.text) for one in pages.values()}
    on: Counter[str] = Counter()
    first: dict[str, str] = {}
    for name, lines in texts.items():
        keys = {key for line in lines for key in (line.key, *line.parts) if key}
        on.update(keys)
        first = dict.fromkeys(keys, name) | first
    slots = _collect_values(on)
    least = _MOST * len(texts)
    lines_of_most = {
        key: first[key]
        for key, count in sorted(on.items())
        if count >= least and all(len(slots[slot]) == 1 for slot in _slots_of(key))
    }
    titles = _find_titles(list(pages.values()), texts)
    # Menus have the title of every page.
    lines_of_most = {key: name for key, name in lines_of_most.items() if key not in titles}
    site = Site(len(texts), lines_of_most, titles)
    if not _is_site(texts, on, site):
        return Site()
    images = {line.key for lines in texts.values() for line in lines if line.text.startswith("![")}
    return replace(
        site,
        leads=sorted(_find_leads(texts, site)),
        images=sorted(key for key in images if key and on[key] >= _IMAGES),
    )


def _slots_of(key: str) -> list[str]:
    """Return what a line is but for a value: "status:" of "status: open", "0 bed" of "3 bed"."""
    label, colon, value = key.partition(": ")
    numbers = _NUMBER.sub("0", key)
    return [label + colon] * bool(value) + [numbers] * (numbers != key)


def _collect_values(keys: Iterable[str]) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for key in keys:
        for slot in _slots_of(key):
            values.setdefault(slot, set()).add(key)
    return values


def _find_titles(pages: Sequence[Document], texts: Mapping[str, Sequence[_Line]]) -> dict[str, str]:
    """Return the folded titles and their pages: the first own line where all have one title."""
    given = Counter(_fold(one.title) for one in pages)
    alone: Counter[str] = Counter()
    for lines in texts.values():
        alone.update({line.key for line in lines if not line.is_item})
    found: dict[str, str] = {}
    for one in pages:
        title, name = _fold(one.title), one.names[0]
        if not title or given[title] >= _SITE * len(pages):
            own = (line for line in texts[name] if line.key and not line.is_item)
            first = next((line for line in own if alone[line.key] < _MOST * len(pages)), None)
            title = first.key if first and not first.is_sentence else ""
        if title:
            found.setdefault(title, name)
    return dict(sorted(found.items()))


def _is_site(texts: Mapping[str, Sequence[_Line]], on: Counter[str], site: Site) -> bool:
    """Whether pages have navigation, and texts of their own beside it."""
    own = navigated = 0
    for name, lines in texts.items():
        own += any(on[line.key] == 1 and len(line.key.split()) >= _OWN_WORDS for line in lines)
        said = [line for line in lines if line.key]
        entries = [len(one.parts) if _is_entry(one, site, name) else 0 for one in said]
        navigated += any(sum(run) >= _LEAST_RUN for _, run in groupby(entries, bool))
    return min(own, navigated) >= _SITE * len(texts)


def _is_entry(line: _Line, site: Site, page: str) -> bool:
    return (line.is_label and site.repeats(line)) or site.links(line, page)


def _find_leads(texts: Mapping[str, Sequence[_Line]], site: Site) -> Iterator[str]:
    """Yield the lines of most pages that a link follows on half of them, and labels before one."""
    followed: Counter[str] = Counter()
    for name, lines in texts.items():
        said = [line for line in lines if line.key]
        leads = {one.key for one, link in pairwise(said) if site.links(link, name)}
        leads |= {label for one in said if (label := _find_linked(one, site, name))}
        followed.update(leads)
    for key, count in followed.items():
        if count >= _SITE * len(texts) and (key in site.lines or key.endswith(":")):
            yield key


def _find_linked(line: _Line, site: Site, page: str) -> str:
    """Return the label of "Read more: How the bridge was built", "" of another line."""
    label, colon, title = line.key.partition(": ")
    return f"{label}:" if colon and site.titles.get(title, page) != page else ""


def _clean_page(document: Document, site: Site) -> Document:
    """Return a page without the lines of its site; one that has nothing else stays as it is."""
    page, lines = document.names[0], _split_lines(document.text)
    dropped = _find_entries(lines, site, page)
    _drop_edges(lines, dropped, site, page)
    _drop_empty_headings(lines, dropped, site)
    kept = [line for line, is_dropped in zip(lines, dropped, strict=True) if not is_dropped]
    if not any(dropped) or not any(len(one.text.split()) >= _OWN_WORDS for one in kept):
        return document
    text = _BLANKS.sub("\n\n", "\n".join(line.text for line in kept)).strip("\n") + "\n"
    title = document.title
    if _fold(title) in site.lines:
        heading = next(line for line in kept if line.key)
        title = "" if heading.is_sentence else heading.text.lstrip("# ").strip()
    origin = compose(document.origin, document.text, text)
    return replace(document, id=digest(title, text), text=text, title=title, origin=origin)


def _find_entries(lines: Sequence[_Line], site: Site, page: str) -> list[bool]:
    """Mark labels of the site and links; titles only before the text and behind what leads to them.

    A list of titles elsewhere may be what the page is about.
    """
    dropped = [False] * len(lines)
    listing = True
    for at, line in enumerate(lines):
        if not line.key:
            continue
        if line.level:
            listing = line.key in site.leads
        elif site.repeats(line) and not line.is_sentence:
            dropped[at] = True
            listing |= line.key in site.leads
        elif site.links(line, page) and (listing or len(line.parts) > 1):
            dropped[at] = True
        elif line.key in site.images or _find_linked(line, site, page) in site.leads:
            dropped[at] = True
        else:
            listing = False
    return dropped


def _drop_edges(lines: Sequence[_Line], dropped: list[bool], site: Site, page: str) -> None:
    """Mark the sentences of the site before and behind the text, but on the first page."""
    for order in (range(len(lines)), range(len(lines) - 1, -1, -1)):
        for at in order:
            line = lines[at]
            if line.key and not line.level and not dropped[at]:
                if not site.repeats(line):
                    break
                dropped[at] = site.lines[line.parts[0]] != page
            elif not line.key and line.text.strip():
                break


def _drop_empty_headings(lines: Sequence[_Line], dropped: list[bool], site: Site) -> None:
    """Mark headings of the site below which nothing is left."""
    below = 0  # level of the heading that follows, if nothing stands between
    for at in range(len(lines) - 1, -1, -1):
        line = lines[at]
        if dropped[at] or not line.text.strip():
            continue
        dropped[at] = 0 < line.level and below <= line.level and site.repeats(line)
        if not dropped[at]:
            below = line.level or _NOTHING
