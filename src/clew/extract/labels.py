"""Words before a colon at a line's start: "Summary:", "Keywords:" name a field and nothing else."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import zip_longest

# The marks of a list, a quote or emphasis, then up to three words and a colon.
_LABEL = re.compile(
    r"^[ \t>*_+•-]{0,12}+(\w[\w.&’'+/-]*+(?:[ \t]\w[\w.&’'+/-]*+){0,2}+)[*_]{0,3}:(?=[\s*_]|\Z)",
    re.MULTILINE,
)
_CLOSERS = " \t\n\"'”’»)*_>-"
_STOPS = (".", "!", "?", "…", "。", "！", "？")


@dataclass(frozen=True, slots=True)
class Labels:
    """Where in a document labels begin, and those of one word that are no names, with their ends.

    Whoever takes turns to speak is named before a colon too: a word that comes again and again,
    each time with whole sentences after it, may be a name.
    """

    starts: frozenset[int] = frozenset()
    words: dict[int, int] = field(default_factory=dict)


def labels_in(text: str) -> Labels:
    """The labels of a text of several lines; in a single line a colon means something else."""
    found = list(_LABEL.finditer(text)) if "\n" in text.strip() else []
    by_word: dict[str, list[tuple[int, int]]] = defaultdict(list)
    speaking: dict[str, bool] = defaultdict(lambda: True)
    for match, after in zip_longest(found, found[1:]):
        if not any(map(str.isspace, match[1])):
            by_word[match[1]].append(match.span(1))
            said = text[match.end() : after.start() if after else len(text)]
            speaking[match[1]] &= _ends_a_sentence(said.lstrip().split("\n\n", 1)[0])
    words = {
        start: end
        for word, places in by_word.items()
        if len(places) == 1 or not speaking[word]
        for start, end in places
    }
    return Labels(frozenset(match.start(1) for match in found), words)


def _ends_a_sentence(said: str) -> bool:
    return said.rstrip(_CLOSERS).endswith(_STOPS)
