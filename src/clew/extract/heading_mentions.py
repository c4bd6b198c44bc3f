"""Where a text mentions its headings: "see Handling bugs" names a section, and no Handling.

Only headings written like sentences are meant, whose first word alone has a capital for that
reason; "Mail Transfer Agents" may be a name.
"""

import re
from dataclasses import dataclass, field

from clew.text.names import Tokens, tokenize

_HEADING = re.compile(
    r"^\f? {0,3}#{1,6}[ \t]+(?:(?:\w+[ \t]+)?\d{1,3}(?:\.\d{1,3})*[.:]?[ \t]+)?(\S.*)$",
    re.MULTILINE,
)
_MOST_WORDS = 12  # of a heading that are compared


@dataclass(frozen=True, slots=True)
class SentenceHeadings:
    """The words of the headings that are written like sentences, by their first one."""

    by_first: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)

    def find(self, t: Tokens) -> set[int]:
        """Return the tokens with a capital where the words of a heading begin."""
        found = set()
        for at, key in enumerate(t.keys if self.by_first else ()):
            if t.upper[at] and key in self.by_first:
                own = self.by_first[key]
                if any(tuple(t.keys[at : at + len(words)]) == words for words in own):
                    found.add(at)
        return found


def learn_headings(text: str) -> SentenceHeadings:
    """Learn the headings of two words and more whose second word is written small."""
    by_first: dict[str, list[tuple[str, ...]]] = {}
    for found in _HEADING.finditer(text) if "#" in text else ():
        t = tokenize(found[1])
        if len(t) > 1 and t.upper[0] and not t.upper[1] and not t.digit[1]:
            by_first.setdefault(t.keys[0], []).append(tuple(t.keys[:_MOST_WORDS]))
    return SentenceHeadings(by_first)
