"""Tells the content of a page from its navigation, in one pass over its tags.

Navigation is known by tag, by role, class or id, by links that are nearly all of a block before or
after the prose or that lead to sections, and by standing outside of `main`, or in scraps beside an
`article`. What may be a box of text stays: a lost sentence is worse than a menu
(docs/decisions/0013-html-boilerplate.md).
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from clew.ingest.readers.hidden_parts import HiddenParts, is_ended_by, read_attributes
from clew.ingest.readers.link_lists import (
    LinkList,
    PageHeading,
    find_listing_headings,
    is_letter_bar,
    is_link_list,
    leads_around,
    leads_to_section,
    leads_to_sibling,
)

Kind = Literal["", "menu", "index"]
CODE_TAGS = frozenset(
    "script style noscript template svg math iframe object head select textarea".split()
)
NAVIGATION_TAGS = frozenset("nav footer button".split())
_ROLES = frozenset("navigation search banner contentinfo complementary".split())
_CLASSES = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navheader|navfooter|menu|topbar|breadcrumbs?|footer|cookies?|consent|"
    r"newsletter|related|headerlink|toplang|bottomlang)(?:$|[\s_-])",
    re.IGNORECASE,
)
# Tables of contents and indexes, as Sphinx and DocBook mark them.
_INDEX_CLASSES = re.compile(
    r"(?:^|\s)(?:toc|localtoc|toctree-wrapper|indexdiv|genindextable|sphinxsidebar)(?:$|\s)"
)
# Never navigation by role or class: the page itself, and elements that need no closing tag.
_NEVER = frozenset(
    "html body main br hr img input link meta area base col embed source track wbr "
    "p li dt dd tr td th thead tbody tfoot option".split()
)
_CONTENT_TAGS = frozenset({"main", "article"})
_MAIN_ROLE = re.compile(r"\brole\s{0,9}=\s{0,9}[\"']?main\b", re.IGNORECASE)
# Notes by class, by role (`doc-footnote`) or by the type that books give them.
_NOTE = re.compile(
    r"\b(?:class|role|epub:type)\s{0,9}=\s{0,9}[\"']?[^\"'>]{0,200}"
    r"\b(?:foot-?notes?|end-?notes?|notes?|admonition|topic|warning|tip|sidebar|pullquote)\b",
    re.IGNORECASE,
)
_END_NOTE = re.compile(r"\b(?:foot|end)-?notes?\b", re.IGNORECASE)
# Classes and ids of what is navigation only if it reads like that: "sidebar" is also a box of text.
_SIDE_NAMES = re.compile(
    r"(?:^|[\s_-])(?:side-?bar|widgets?|banner|promo|adverts?|ads?|social|share|subscribe|sign-?up|"
    r"pager|pagination|skip|masthead|nav|navbar|navigation|menu|topbar|breadcrumbs?|footer|cookies?|"
    r"consent|gdpr|newsletter|related)(?:$|[\s_-])",
    re.IGNORECASE,
)
_COOKIES = re.compile(r"(?:^|[\s_-])(?:cookies?|consent|gdpr)(?:$|[\s_-])", re.IGNORECASE)
_MEASURED = frozenset(
    "div section aside header ul ol dl table form center main article details".split()
)
_RUN_ENDS = _MEASURED | frozenset("p li dt dd tr td th pre h1 h2 h3 h4 h5 h6 blockquote hr".split())
_ITEMS = frozenset("li dt dd tr p br".split())
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
_PROSE = 80  # letters in a row without a link: text, not the label of something
_BOX = 150  # letters in a row from which a block with such a name is a box of text
_MAX_HEADER = 200  # letters of a page's header that names no section
_MIN_MAIN_SHARE, _MIN_ARTICLE_SHARE = 0.2, 0.5  # of the page's letters
_LINKED, _ONLY_LINKS = 0.8, 0.9  # share of a block's letters in links
_MAX_BLOCKS = 200_000


class PageParts(NamedTuple):
    """What of a page is navigation, and what is read, by the numbers of its tokens."""

    menus: dict[int, Kind]
    """The opening tags of what is left out."""
    content: tuple[tuple[int, int], ...] = ()
    """The spans that are read; none: the whole page."""

    def reads(self, at: int) -> bool:
        """Whether a token is in what is read."""
        return not self.content or any(first <= at <= last for first, last in self.content)


WHOLE_PAGE = PageParts({})


@dataclass(slots=True)
class _Block:
    """An element that may be navigation, and what stands in it."""

    at: int
    tag: str
    source: str
    prose_before: int
    headings_before: int
    announced: bool
    introduced: bool
    in_content: bool
    end: int = -1
    letters: int = 0
    linked: int = 0
    links: int = 0
    entries: int = 0
    sibling_letters: int = 0
    around_links: int = 0
    longest: int = 0
    rows: int = 0
    heading: str = ""
    holds_content: bool = False
    parent: "_Block | None" = None


@dataclass(slots=True)
class _Finder:
    """Measures blocks while the tags go by."""

    is_book: bool
    menus: dict[int, Kind] = field(default_factory=dict)
    blocks: list[_Block] = field(default_factory=list)
    letters: int = 0
    prose: int = 0
    headings: int = 0
    content: list[_Block] = field(default_factory=list)
    titles: list[PageHeading] = field(default_factory=list)
    texts: list[tuple[int, int]] = field(default_factory=list)
    _stack: list[_Block] = field(default_factory=list)
    _open: Counter[str] = field(default_factory=Counter)
    _inside: str = ""  # the element left out that we are in, and how often it is nested in itself
    _depth: int = 0
    _within: list[str] = field(default_factory=list)  # content elements that are open
    _link: Literal["", "link", "sibling"] = ""
    _item: int = 0  # items so far, and the last one with a link to a section
    _entry: int = 0
    _heading: int = -1
    _run: int = 0
    _last: str = ""
    _after_heading: bool = False
    _hidden: HiddenParts = field(default_factory=HiddenParts)

    def open_tag(self, at: int, tag: str, source: str) -> None:
        """Note an element, and whether it is navigation by tag, role or class."""
        if is_ended_by(self._inside, tag):
            self._inside = ""
        if self._inside:
            self._depth += tag == self._inside
            return
        if tag in _CONTENT_TAGS or ("main" in source and _MAIN_ROLE.search(source)):
            self._within.append(tag)
        kind = self._kind(tag, source)
        if kind:
            self.menus[at] = kind
        if kind or tag in CODE_TAGS or tag in NAVIGATION_TAGS:
            self._inside, self._depth = tag, 1
            return
        if tag in _RUN_ENDS:
            self._end_run()
        self._open_measured(at, tag, source)
        self._item += tag in _ITEMS
        if tag in _HEADINGS:
            self._heading = at
            self.headings += 1
        elif tag == "a" and "href" in source:
            self._open_link(source)
        elif tag == "tr" and self._stack:
            self._stack[-1].rows += 1

    def _open_link(self, source: str) -> None:
        attributes = read_attributes("a", source)
        self._link = "sibling" if leads_to_sibling(attributes) else "link"
        is_entry = self._entry < self._item and leads_to_section(attributes, self.is_book)
        self._entry = self._item if is_entry else self._entry
        if self._stack:
            block = self._stack[-1]
            block.links += 1
            block.entries += is_entry
            block.around_links += leads_around(attributes)

    def _open_measured(self, at: int, tag: str, source: str) -> None:
        is_content = bool(self._within) and tag == self._within[-1]
        if (tag not in _MEASURED and not is_content) or len(self.blocks) >= _MAX_BLOCKS:
            return
        introduced = self._last.endswith((":", "：")) and not self._after_heading
        announced = introduced or self._after_heading
        inside = bool(self._within)
        block = _Block(at, tag, source, self.prose, self.headings, announced, introduced, inside)
        block.parent = self._stack[-1] if self._stack else None
        self._stack.append(block)
        self._open[tag] += 1
        self.blocks.append(block)
        marked = tag in _CONTENT_TAGS or ("main" in source and _MAIN_ROLE.search(source))
        if marked and not any(one.end < 0 for one in self.content):
            self.content.append(block)

    def close_tag(self, at: int, tag: str) -> None:
        """Leave an element, and what was not closed in it."""
        if self._inside:
            self._depth -= tag == self._inside
            if self._depth <= 0 or is_ended_by(self._inside, tag, closing=True):
                self._inside = ""
            return
        if tag in _RUN_ENDS:
            self._end_run()
        if self._within and tag == self._within[-1] and tag in _CONTENT_TAGS:
            self._within.pop()
        if tag == "a":
            self._link = ""
        elif tag in _HEADINGS and self._heading >= 0:
            self.titles.append(PageHeading(self._heading, at, int(tag[1])))
            self._heading, self._after_heading = -1, True
        if self._open[tag]:
            while self._stack:
                block = self._close_block(at)
                if block.tag == tag:
                    break

    def _close_block(self, at: int) -> _Block:
        block = self._stack.pop()
        self._open[block.tag] -= 1
        block.end = at
        if self._within and self._within[-1] == block.tag and block.tag not in _CONTENT_TAGS:
            if block in self.content:
                self._within.pop()
        if (outer := block.parent) is not None:
            outer.letters += block.letters
            outer.linked += block.linked
            outer.links += block.links
            outer.entries += block.entries
            outer.sibling_letters += block.sibling_letters
            outer.around_links += block.around_links
            outer.longest = max(outer.longest, block.longest)
            outer.rows += block.rows
            outer.heading = outer.heading or block.heading
            outer.holds_content |= block.holds_content or block in self.content
        return block

    def add_text(self, at: int, text: str) -> None:
        """Count the letters between two tags."""
        if self._inside or not (bare := text.strip()):
            return
        count = sum(map(str.isalnum, bare))
        self.letters += count
        if self._stack:
            block = self._stack[-1]
            block.letters += count
            block.linked += count if self._link else 0
            block.sibling_letters += count if self._link == "sibling" else 0
            if self._heading >= 0 and not block.heading:
                block.heading = bare
        if not self._link and self._heading < 0:
            self._run += count
        if self._heading < 0:
            self.texts.append((at, count))
        self._last, self._after_heading = bare, False

    def finish(self, at: int) -> None:
        """Leave all that is still open."""
        self._end_run()
        while self._stack:
            self._close_block(at)

    def _end_run(self) -> None:
        if self._stack:
            self._stack[-1].longest = max(self._stack[-1].longest, self._run)
        self.prose += self._run >= _PROSE
        self._run = 0

    def _kind(self, tag: str, source: str) -> Kind:
        if self._hidden.hides(tag, source):
            return "menu"
        aside = tag == "aside" and not (self._within or self.is_book or _NOTE.search(source))
        return "menu" if aside else _kind_by_name(tag, source)


def find_parts(tokens: Iterable[tuple[str, str, str]], is_book: bool = False) -> PageParts:
    """Return the navigation of a page and its content; what stands aside in a book is its text."""
    finder = _Finder(is_book)
    at = 0
    for at, (kind, value, source) in enumerate(tokens):
        if kind == "text":
            finder.add_text(at, value)
        elif kind == "open":
            finder.open_tag(at, value, source)
        else:
            finder.close_tag(at, value)
    finder.finish(at + 1)
    finder.menus |= _find_listings(finder)
    if is_book:
        return PageParts(finder.menus)
    beside = _has_one_article(finder)
    for block in finder.blocks:
        if _is_side(block, finder) or (beside and _is_scrap(block)):
            finder.menus[block.at] = "menu"
    return PageParts(finder.menus, _find_content(finder))


def _find_listings(finder: _Finder) -> dict[int, Kind]:
    """Return the opening tags of contents and indexes, and of the headings of nothing else."""
    found: dict[int, Kind] = {}
    lists: list[LinkList] = []
    for block in finder.blocks:
        if (lists and block.at < lists[-1].last) or not _is_listing(block):
            continue
        lists.append(LinkList(block.at, block.end, block.letters))
        found[block.at] = "menu" if block.around_links else "index"
    headings = finder.titles[1:]  # the first one is the title
    for heading in find_listing_headings(headings, lists, finder.texts):
        found[heading.first] = "index"
    return found


def _is_listing(block: _Block) -> bool:
    """Whether a block has only links to sections, or only those to the pages around."""
    if block.longest >= _PROSE or block.holds_content or block.tag in _CONTENT_TAGS:
        return False
    if 0 < block.links == block.around_links and 2 * block.linked >= block.letters:
        return True
    if block.sibling_letters and is_letter_bar(block.links, block.sibling_letters, block.letters):
        return True
    return not block.introduced and is_link_list(
        block.entries, block.sibling_letters, block.letters
    )


def _find_content(finder: _Finder) -> tuple[tuple[int, int], ...]:
    """Return the spans of `main` and of end notes, and of the title if `main` has none itself."""
    mains = [block for block in finder.content if block.tag != "article"]
    if sum(block.letters for block in mains) < max(1, _MIN_MAIN_SHARE * finder.letters):
        return ()
    spans = [(block.at, block.end) for block in mains]
    noted = [block for block in finder.blocks if not block.in_content]
    spans += [(b.at, b.end) for b in noted if _END_NOTE.search(b.source)]
    inside = [one for one in finder.titles if any(a < one.first < b for a, b in spans)]
    if not any(one.level == 1 for one in inside):
        spans += [(one.first, one.last) for one in finder.titles if one.level == 1][:1]
    return tuple(sorted(spans))


def _has_one_article(finder: _Finder) -> bool:
    held = [block for block in finder.content if block.tag == "article"]
    alone = len(held) == 1 == len(finder.content)
    return alone and held[0].letters >= _MIN_ARTICLE_SHARE * finder.letters


def _is_scrap(block: _Block) -> bool:
    """Whether a block beside the article has neither prose, nor rows, nor a title."""
    if block.in_content or block.holds_content or block.heading:
        return False
    return block.longest < _PROSE and block.rows < 2


def _is_side(block: _Block, page: _Finder) -> bool:
    """Whether a block is navigation by its name, or because it is links around the text."""
    if block.holds_content or block.letters >= page.letters or block.tag in _CONTENT_TAGS:
        return False
    leads = not block.headings_before or (page.prose > 0 and not block.prose_before)
    if block.tag == "header" and not block.in_content:
        return not block.heading and block.letters <= _MAX_HEADER
    if _is_named_side(block, leads):
        return True
    if block.links < 2 or block.longest >= _PROSE or block.in_content:
        return False
    if leads and not block.announced and not block.heading:
        later = page.headings > block.headings_before or page.prose > block.prose_before
        return later and block.linked >= _LINKED * block.letters
    ends = block.prose_before == page.prose > 0 and block.headings_before == page.headings
    apart = block.parent is None or block.parent.longest < _PROSE
    lists = block.tag in ("ul", "ol", "table") or block.announced or bool(block.heading)
    return ends and apart and not lists and block.linked >= _ONLY_LINKS * block.letters


def _is_named_side(block: _Block, leads: bool) -> bool:
    """Whether the class or id says sidebar or the like, and it reads like one."""
    if "class" not in block.source and "id" not in block.source:
        return False
    attributes = read_attributes(block.tag, block.source)
    identity = attributes.get("id", "")
    if _is_slug(identity, block.heading) or "sect" in attributes.get("class", "").lower():
        return False
    names = f"{attributes.get('class', '')} {identity}"
    if not _SIDE_NAMES.search(names):
        return False
    if _COOKIES.search(names):
        return True
    return block.longest < _BOX and (block.links > 0 or leads)


def _is_slug(identity: str, heading: str) -> bool:
    """Whether an id was made from the heading of its section."""
    words = re.findall(r"\w+", heading.lower())
    parts = re.findall(r"[^\W_]+", identity.lower())
    return bool(parts) and bool(words) and set(parts) <= set(words)


def _kind_by_name(tag: str, source: str) -> Kind:
    """Return what navigation an element is by its role or class; `source` is its opening tag."""
    if tag in _NEVER or ("class" not in source and "role" not in source):
        return ""
    attributes = read_attributes(tag, source)
    role, classes = attributes.get("role", "").strip().lower(), attributes.get("class", "")
    if role == "main":
        return ""
    if _INDEX_CLASSES.search(classes):
        return "index"
    return "menu" if role in _ROLES or _CLASSES.search(classes) else ""
