"""Whether a cited place says something else than a sentence claims, though with the same words.

A model may turn a relation around ("A sued B" for "B sued A"), give another bound ("at least 5" for
"at most 5"), say of all what is said of some, give a value of something else, or add a piece ("a
pool and a sauna"). All words are then in the quote. Compared are who does what to whom, bounds and
shares, what belongs together, and the pieces of a list.
"""

import re
from collections.abc import Iterator, Sequence

from clew.agents.reading.belonging import compare_claim
from clew.agents.reading.bounds import find_other_bound
from clew.agents.reading.directed import turns_relation
from clew.agents.reading.spans import asked_words
from clew.agents.reading.stems import cut_ending
from clew.agents.rules.table import RuleTable, table_for
from clew.text.language import is_chinese
from clew.text.sentences import sentence_spans
from clew.text.unicode import UNSPACED_CHAR, split_words

_JOINT = re.compile(r",\s*(?:and|or)\s+|\s+(?:and|or)\s+|,\s+|[、，]|以及|和|与|及")
_LAST_JOINT = re.compile(r"\s(?:and|or)\s|、|以及|和|与|及")
_MARK = re.compile(r"[，。；：、！？,;:.!?]")
_AGENT = re.compile(r"(?:被|由|遭|受)\Z")
_ADVERBIAL = re.compile(r"[在于从自到向]\Z")
_TIME = re.compile(r"\d|[年月日时前后中]\Z")
_OPENS_WITH_NAME = re.compile(r"\S+\s+[A-Z]")
_MOST_WORDS = 4  # of a piece of a list
_MOST_CHARS = 8
_LEAST_COMMON = 2  # characters of what two texts without spaces share


def explain_false(claim: str, quotes: Sequence[str], around: str = "") -> str:
    """Return why quotes do not say what a sentence claims; "" where nothing speaks against it.

    `around` is what the quotes stand under, or refer to. English and Chinese are compared.
    """
    table, whole = table_for(claim), " ".join(quotes)
    if claim.strip(" .。") in whole:
        return ""
    if bound := find_other_bound(claim, whole, table):
        return f"the passage says “{' '.join(bound.split())}”"
    unspaced = is_chinese(claim)
    if turns_unspaced(claim, whole) if unspaced else turns_relation(claim, whole, table):
        return "the passage says it the other way round"
    if _says_of_all(claim, whole, table):
        return "the passage does not say it of all"
    if not unspaced and _is_apart(claim, quotes, around):
        return "the passage says it of something else"
    return ""


def _says_of_all(claim: str, text: str, table: RuleTable) -> bool:
    """Whether a sentence claims of all what a text says of a part."""
    every, part = table.quantifiers["all"], table.quantifiers["part"]
    return bool(every.search(claim) and part.search(text)) and not every.search(text)


def _is_apart(claim: str, quotes: Sequence[str], around: str) -> bool:
    """Whether the names and numbers of a claim belong to different things in the one sentence that
    has them; what several sentences say together is not compared.
    """
    sentences = [one[start:end] for one in quotes for start, end in sentence_spans(one)]
    if not _OPENS_WITH_NAME.match(claim):
        claim = claim[:1].lower() + claim[1:]
    claimed = set(asked_words(claim))
    most = max(sentences, key=lambda one: len(claimed & set(asked_words(one))), default="")
    return compare_claim(claim, most, " ".join((around, *quotes))) in ("apart", "another")


def find_added(claim: str, text: str) -> list[str]:
    """Return the words of the pieces of a list in a claim of which a text says nothing.

    "A pool, a sauna and a garage" adds the garage to a text that has no word of it.
    """
    if not _LAST_JOINT.search(claim):
        return []
    said = set(map(cut_ending, split_words(text)))
    return [
        word
        for piece in _list_pieces(claim)
        if not said & {cut_ending(word) for word in piece}
        for word in piece
    ]


def _list_pieces(claim: str) -> Iterator[list[str]]:
    """Yield the words that say something in each short piece behind the first."""
    for piece in _JOINT.split(claim.strip(" .。"))[1:]:
        words = asked_words(piece)
        unspaced = UNSPACED_CHAR.search(piece) is not None
        short = len(piece) <= _MOST_CHARS if unspaced else len(piece.split()) <= _MOST_WORDS
        if words and short:
            yield words


# -- who does it, in a script without spaces


def turns_unspaced(claim: str, text: str) -> bool:
    """Whether two things that a claim and a text name have changed places around one verb.

    What both have in common is the names and the verb: "A击败B" and "B击败A". Behind 被 stands who
    does it. Times and places may stand anywhere.
    """
    for part in _MARK.split(text):
        for own in _MARK.split(claim):
            shared = _find_shared(own, part)
            if any(
                _has_role(own, part, shared, verb, one, other)
                for verb in shared
                for one in shared
                for other in shared
                if len({verb, one, other}) > 2
            ):
                return True
    return False


def _has_role(
    claim: str, text: str, shared: Sequence[str], verb: str, one: str, other: str
) -> bool:
    """Whether one thing does it in a claim, and the other one in a text."""
    return _find_doer(claim, verb, one, other) == one and (
        _find_doer(text, verb, one, other) == other
    )


def _find_doer(text: str, verb: str, one: str, other: str) -> str:
    """Return which of two things does what a verb says in a text; "" where that is not told."""
    first, second = sorted((one, other), key=text.find)
    before, behind = text[: text.find(first)], text[: text.find(second)]
    if _ADVERBIAL.search(before) or _ADVERBIAL.search(behind):
        return ""
    if _AGENT.search(behind):
        return second
    return first if text.find(first) < text.find(verb) < text.find(second) else ""


def _find_shared(one: str, other: str) -> list[str]:
    """Return the pieces that two texts share and that no longer one has; they may overlap."""
    found: list[str] = []
    reached = 0
    for start in range(len(one)):
        end = max(start, reached)
        while end < len(one) and one[start : end + 1] in other:
            end += 1
        if end > reached and end - start >= _LEAST_COMMON:
            found.append(one[start:end])
            reached = end
    return [piece for piece in dict.fromkeys(found) if not _TIME.search(piece)]
