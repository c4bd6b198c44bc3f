"""Find where a text itself asks what is asked, and read what stands under that line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.agents.citing.entailment import is_negated
from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.reading.spans import asked_words
from clew.agents.reading.stems import cut_ending
from clew.agents.rules.table import RuleTable, table_for
from clew.text.asked_blocks import AskedBlock, find_asked_blocks
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words
from clew.types import Citation, Passage

_REPLY = r"\W*(?:(?:a|answer)\s*[:.)]\W*)?(?:(?P<yes>{})|(?P<no>{}))(?=\W|$)"
_MAX_CHARS = 4_000  # characters of a block that is quoted
_SAME_WORDS = {"what": "which"}  # question words that ask alike


@dataclass(frozen=True, slots=True)
class Under:
    """A line that asks or announces what is asked, and what stands under it."""

    passage: Passage
    block: AskedBlock

    @property
    def text(self) -> str:
        """What stands under the line."""
        return self.passage.text[self.block.body : self.block.end]

    def cite(self, until: int | None = None) -> Citation:
        """Cite the block, or its part up to `until`, with its line where that is no heading.

        A heading is told anyway.
        """
        start = self.block.body if self.block.is_heading else self.block.start
        end = min(self.block.end if until is None else until, start + _MAX_CHARS)
        return make_citation(self.passage, SupportSpan(start, end, 1.0))

    def find_reply(self, table: RuleTable) -> tuple[bool, Citation] | None:
        """Return the yes or no that the block begins with, cited from the line that asks."""
        pattern = _REPLY.format(re.escape(table.yes), re.escape(table.no))
        found = re.match(pattern, self.text, re.IGNORECASE)
        if found is None:
            return None
        # "No. Only the lid may be washed": the bare word is quoted with what explains it.
        ends = [end for _, end in sentence_spans(self.text) if end > found.end() + 1]
        end = self.block.body + next(iter(ends), len(self.text))
        cited = make_citation(self.passage, SupportSpan(self.block.start, end, 1.0))
        return found["yes"] is not None, cited


def find_under_question(
    question: str, passages: Sequence[Passage], *, announced: bool = False
) -> Under | None:
    """Return where a text asks the same, or, if `announced`, has a heading of just these words."""
    for passage in passages:
        for block in find_asked_blocks(passage.text):
            if (block.asks or announced) and asks_same(question, block, passage):
                return Under(passage, block)
    return None


def asks_same(question: str, block: AskedBlock, passage: Passage) -> bool:
    """Whether a line has the words of a question and no others, but for those of its page."""
    asked, said = _stems(question), _stems(block.title)
    if not asked & said or is_negated(question) != is_negated(block.title):
        return False
    if block.asks and _question_word(question) != _question_word(block.title):
        return False
    home = {cut_ending(word) for word in split_words(f"{passage.title} {passage.heading}")}
    return asked <= said | home and said <= asked | home


def _stems(text: str) -> set[str]:
    return {cut_ending(word) for word in asked_words(text)}


def _question_word(text: str) -> str:
    """Return what a question asks with; nothing where it asks for yes or no."""
    found = table_for(text).question_words.search(text)
    word = found[0].lower() if found else ""
    return _SAME_WORDS.get(word, word)
