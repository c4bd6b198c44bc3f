"""Tells tables of contents and indexes of a page by their structure, in any language.

Such a list has items that are links to sections of the page or of its siblings, and hardly a word
of its own. A list that a sentence announces is content: "The following modes exist:". Where a
section has nothing but such a list, its heading goes with it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
# What the standard calls the relations of a page to its neighbours.
_RELATIONS = frozenset("next prev previous up contents toc index start first last top home".split())
_LEAST_ENTRIES = 3
_MAX_LABEL = 20  # letters before a row of letters
_LISTED_SHARE = 0.8  # of the letters that are labels of such links
_ONLY_LISTED = 0.8  # of a section's letters that are in such lists …
_MAX_BESIDE = 80  # … and the most letters beside them


class LinkList(NamedTuple):
    """A block of a page with the letters in it, by its first and last token."""

    first: int
    last: int
    letters: int


class PageHeading(NamedTuple):
    """A heading by its first and last token."""

    first: int
    last: int
    level: int


def leads_to_sibling(attributes: Mapping[str, str]) -> bool:
    """Whether a link leads to the page itself or to a file beside it."""
    target = attributes.get("href", "")
    return bool(target) and not _ABSOLUTE.match(target)


def leads_to_section(attributes: Mapping[str, str], is_book: bool) -> bool:
    """Whether a link leads to a section of the page or of a sibling; in a book, to any file."""
    target = attributes.get("href", "").rstrip("#")
    return leads_to_sibling(attributes) and (is_book or "#" in target)


def leads_around(attributes: Mapping[str, str]) -> bool:
    """Whether a link says itself that it leads to the page before, after or above."""
    return not _RELATIONS.isdisjoint(attributes.get("rel", "").lower().split())


def is_link_list(entries: int, letters_of_links: int, letters: int) -> bool:
    """Whether a block is nothing but entries that are links: its letters are theirs."""
    return entries >= _LEAST_ENTRIES and letters_of_links >= _LISTED_SHARE * letters


def is_letter_bar(links: int, letters_of_links: int, letters: int) -> bool:
    """Whether a block is a row of links by a letter or a number each: "Jump to: A B C"."""
    beside = letters - letters_of_links
    return links >= _LEAST_ENTRIES and letters_of_links <= 2 * links and beside <= _MAX_LABEL


def find_listing_headings(
    headings: Sequence[PageHeading], lists: Sequence[LinkList], texts: Sequence[tuple[int, int]]
) -> Iterator[PageHeading]:
    """Yield the headings of sections that have nothing but lists of links.

    `texts` has the token and the letters of each text outside of headings, in order.
    """
    places = [at for at, _ in texts]
    sums = [0, *accumulate(letters for _, letters in texts)]
    ends = _find_ends(headings, places[-1] + 1 if places else 0)
    starts = [one.first for one in lists]
    for heading, end in zip(headings, ends, strict=True):
        letters = sums[bisect_left(places, end)] - sums[bisect_left(places, heading.last)]
        held = lists[bisect_left(starts, heading.last) : bisect_left(starts, end)]
        listed = sum(one.letters for one in held)
        if listed and letters - listed <= min(_MAX_BESIDE, (1 - _ONLY_LISTED) * letters):
            yield heading


def _find_ends(headings: Sequence[PageHeading], end: int) -> list[int]:
    """Return where each section ends: at the next heading that is not below its own."""
    found = [end] * len(headings)
    opened: list[int] = []
    for at, heading in enumerate(headings):
        while opened and headings[opened[-1]].level >= heading.level:
            found[opened.pop()] = heading.first
        opened.append(at)
    return found
