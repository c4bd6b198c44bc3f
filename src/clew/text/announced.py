"""What a sentence announces: the list or the paragraphs after it.

A colon announces what follows, in any language. So does a number of things at the end of a
paragraph, "two main algorithms", where as many paragraphs or items follow as it says.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from clew.text.sentences import sentence_spans
from clew.text.structure import Block
from clew.text.unicode import UNSPACED_CHAR
from clew.text.word_forms import phrase_class

ANNOUNCES = (":", "：")
"""What a sentence ends with that announces what follows."""
_LANGUAGES = ("en", "de", "fr", "es", "ru", "ar", "ja", "zh")
_MOST = 12  # things that are counted
_DIGITS = re.compile(r"(?<![\w.,:/-])\d{1,2}(?![\w.,:/%-]\w|\s*%)")
_WORDS = re.compile(r"[^\W\d_]+")
_NOTE = re.compile(r"\s*\[\^?\w{1,4}\]")  # a footnote is none of the things
_TASK = re.compile(r"To\s+(?!the\b|an?\b|this\b|that\b|my\b|our\b)[a-z]+\s[^.!?\n]{0,80},\s")
_SEVERAL = 2  # tasks of one paragraph
_LISTED = ("item", "definition")


@cache
def _count_forms() -> dict[str, int]:
    """Return the words for the numbers from two on, of all languages."""
    found: dict[str, int] = {}
    for language in _LANGUAGES:
        for number, forms in enumerate(phrase_class(language, "counts"), start=2):
            found.update(dict.fromkeys(forms.split(), number))
    return found


def find_counts(sentence: str) -> set[int]:
    """Return the small numbers of things in a sentence, in words or in digits."""
    forms = _count_forms()
    found = {forms[word] for word in _WORDS.findall(sentence.casefold()) if word in forms}
    if UNSPACED_CHAR.search(sentence):
        found |= {n for form, n in forms.items() if UNSPACED_CHAR.match(form) and form in sentence}
    found |= {int(number) for number in _DIGITS.findall(sentence)}
    return {number for number in found if 1 < number <= _MOST}


def find_announced_blocks(text: str, blocks: Sequence[Block], at: int) -> int:
    """Return the block after those that the paragraph `at` announces by their number.

    That is the one after it where it announces nothing so. Blocks within blocks do not count.
    """
    spans = sentence_spans(text[blocks[at].start : blocks[at].end])
    if blocks[at].kind != "paragraph" or not spans:
        return at + 1
    begin, end = spans[-1]
    counts = find_counts(text[blocks[at].start + begin : blocks[at].start + end])
    if not counts:
        return at + 1
    following = [n for n in _until_heading(blocks, at) if blocks[n].depth == blocks[at].depth]
    listed = _take_kind(blocks, following)
    parts = listed or [n for n in following if not _NOTE.match(text, blocks[n].start)]
    plain = listed or all(blocks[n].kind == "paragraph" for n in parts)
    return parts[-1] + 1 if plain and len(parts) in counts else at + 1


def _until_heading(blocks: Sequence[Block], at: int) -> Iterator[int]:
    for after in range(at + 1, len(blocks)):
        if blocks[after].kind == "heading":
            return
        yield after


def _take_kind(blocks: Sequence[Block], following: Sequence[int]) -> list[int]:
    """Return the items or definitions that follow at once."""
    if not following or blocks[following[0]].kind not in _LISTED:
        return []
    kind, found = blocks[following[0]].kind, list[int]()
    for at in following:
        if blocks[at].kind != kind:
            break
        found.append(at)
    return found


def find_tasks(text: str, block: Block) -> list[tuple[int, int]]:
    """Return what a paragraph says of each task, where it tells several: "To open the lid, …"."""
    spans = sentence_spans(text[block.start : block.end]) if block.kind == "paragraph" else []
    sentences = [(a + block.start, b + block.start) for a, b in spans]
    begins = [at for at, (a, _) in enumerate(sentences) if _TASK.match(text, a)]
    if len(begins) < _SEVERAL:
        return []
    starts = sorted({0, *begins})
    ends = [*starts[1:], len(sentences)]
    return [
        (sentences[first][0], sentences[last - 1][1])
        for first, last in zip(starts, ends, strict=True)
    ]
