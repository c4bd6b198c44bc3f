"""Whether a row of a table or an entry of a list is of the thing that a question names beside it.

"E05 on the Vantor 60" is not answered by the row E05 in the manual of the Vantor 40. A number or a
name beside a word that both share has to stand beside it in the row, in the headings above it, in
the title of its document or in what the document says before. The nearest of these that has the
shared word decides: with another number or name in that place, the row is of another thing.
"""

from clew.agents.answering.cells import find_rows
from clew.agents.answering.lookalikes import identifies, is_word_said, list_pairs, list_words
from clew.agents.core.types import Answer
from clew.text.structure import Block, find_blocks
from clew.types import Citation, Passage

_ENTRIES = ("row", "item", "definition")
_OPENING = ("heading", "paragraph")  # what may say of what the entries below are


def is_of_other_thing(question: str, answer: Answer) -> bool:
    """Whether every entry that has the short answer stands under another thing of the kind."""
    homes = {one.id: one for one in answer.evidence.chunks}
    found = [
        _names_other(question, home, block)
        for cited in answer.citations
        if answer.candidate in cited.quote and (home := homes.get(cited.chunk))
        for block in _find_entries(home, cited, answer.candidate)
    ]
    return bool(found) and all(found)


def _find_entries(home: Passage, cited: Citation, short: str) -> list[Block]:
    """Return the entries in or around a citation that have the short answer."""
    first, last = cited.start - home.start, cited.end - home.start
    return [
        one
        for one in find_blocks(home.text)
        if one.kind in _ENTRIES
        and one.start < last
        and first < one.end
        and short in home.text[one.start : one.end]
    ]


def _names_other(question: str, home: Passage, block: Block) -> bool:
    """Whether a question names another thing than the places that say what an entry is of."""
    places = _list_places(home, block)
    own = [word for place in places[:-1] for word in list_words(place)]
    for turned in (False, True):  # the word that tells them apart stands first, or second
        asked = list_pairs(question, turned=turned)
        for word, near in asked:
            # "The Quartz segment" stands in the row "Quartz"; a number says nothing alone.
            named = not word.isdigit() and not identifies(near) and is_word_said(word, own)
            if identifies(word) and not named and _is_swapped((word, near), asked, places, turned):
                return True
    return False


def _list_places(home: Passage, block: Block) -> list[str]:
    """Return the row or entry, the headings above it, the title, and what is said before it."""
    entry = home.text[block.start : block.end]
    path = home.heading
    for row in find_rows([home]):
        if row.start == block.start:
            entry = "\n".join(f"{column} {value}" for column, value in row.cells)
            path = f"{row.section}\n{home.heading}"
    before = (
        home.text[one.start : one.end]
        for one in find_blocks(home.text)
        if one.kind in _OPENING and one.start < block.start
    )
    return [entry, path, home.title, "\n".join(before)]


def _is_swapped(
    pair: tuple[str, str], asked: list[tuple[str, str]], places: list[str], turned: bool
) -> bool:
    """Whether the nearest place that has a shared word has another number or name beside it."""
    word, near = pair
    for place in places:
        beside = [one for one, other in list_pairs(place, turned=turned) if _is_one(near, other)]
        if any(_is_one(word, one) for one in beside):
            return False
        known = [one for one, other in asked if _is_one(near, other)]
        others = [one for one in beside if identifies(one) and one.isdigit() == word.isdigit()]
        if others and not any(is_word_said(one, known) for one in others):
            return True
    return False


def _is_one(word: str, other: str) -> bool:
    return is_word_said(word, [other])
