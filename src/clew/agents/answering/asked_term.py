"""Name the term of a definition where a question asks for it by what its body says.

"Which option enables compression?" and "what status is returned if the disk is full?" ask for the
term of one entry in a list. That the terms are options or statuses is told by the list: its
heading, the sentence that announces it, or the word beside one of its terms ("the -n option").
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, pairwise, takewhile

from clew.agents.answering.exact_terms import ExactUnit
from clew.agents.answering.units import STEM, weigh_words
from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.reading.denied import asks_denied, denies_other
from clew.agents.reading.spans import asked_words
from clew.agents.rules.asked_noun import find_asked_phrase
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.retrieve.question_shape import is_plural
from clew.text.announced import ANNOUNCES
from clew.text.definitions import holds_term
from clew.text.sentences import sentence_spans
from clew.text.structure import CRUMB_SEPARATOR, Block, find_blocks, find_headings
from clew.text.unicode import split_words
from clew.text.word_forms import compare_words
from clew.types import Passage

_ASKED_KIND = re.compile(
    r"\b(?:what|which)\s+(?:is\s+the\s+)?(?P<words>\w[\w-]*(?:\s+\w[\w-]*){0,2})", re.IGNORECASE
)
_PLAIN = re.compile(r"[^\W\d_]?[a-z]*")  # a word that may stand in a question by chance
# "Higher-order functions" are no orders: a compound before a noun says what sort of it is meant.
_COMPOUND = re.compile(r"\b[^\W\d_]+(?:-[^\W\d_]+)+(?=\s+[^\W\d_])")
_ONE_OF = re.compile(
    r"(?P<words>(?:[\w-]+\s+){1,3})(?:(?:is|can be|may be|must be)\s+(?:one|any)\b|is\W*\Z)",
    re.IGNORECASE,
)
_FORM = 0.9  # from which two words are forms of one
_BY_TERM = 0.05  # of what its term says, before an entry that says as much
_LEAST, _MARGIN = 0.45, 0.12  # of the question's words by rarity, and before the next entry
_FEW, _LEAST_OF_FEW = 2, 0.6  # entries; one that has no rival has to say more
# Confidence of a term that leads, by the share of the question it says; and of one that does not.
_SAID_NOTHING, _SAID_ALL, _AMONG_OTHERS = 0.5, 0.95, 0.49
_MAX_NAME_WORDS = 3  # of a title that a question may name its document by
_MOST_ENTRIES = 400  # that are compared
_MAX_TERM = 80  # characters


@dataclass(frozen=True, slots=True)
class Entry:
    """A definition of a list, and words for what its terms are."""

    passage: Passage
    block: Block
    kinds: frozenset[str]

    @property
    def text(self) -> str:
        """Its term and its body."""
        return self.passage.text[self.block.start : self.block.end]

    @property
    def terms(self) -> list[str]:
        """What the entry may be called by: each of its names, without values and types."""
        names = (part.split() for part in self.block.title.replace("`", "").split(","))
        return [_cut_value(words[0]) for words in names if words]

    def measure(self, words: Mapping[str, float]) -> float:
        """Return how far it says the words: in all it says, and at once in its first sentence.

        Of two that say as much the one whose term says more is meant.
        """
        text = self.text
        first = text[: sentence_spans(text)[0][1]]
        said = (_measure_share(words, text) + _measure_share(words, first)) / 2
        return said + _BY_TERM * _measure_share(words, self.block.title)

    def cite(self) -> ExactUnit:
        """Cite the definition for its term."""
        cited = make_citation(self.passage, SupportSpan(self.block.start, self.block.end, 1.0))
        return ExactUnit(cited, self.block.title.replace("`", ""))


@dataclass(frozen=True, slots=True)
class AskedTerm:
    """What a question for a term finds: the entry that says most of it, and all terms."""

    unit: ExactUnit
    share: float
    """How much of the question the entry says, by the rarity of words."""
    leads: bool
    """Whether no other entry says nearly as much."""
    terms: tuple[str, ...]
    texts: tuple[str, ...] = ()
    """What the entries say."""

    def bound(self, candidate: str, confidence: float) -> float:
        """Return a confidence that is no higher than what the list tells of the candidate."""
        if self.leads and candidate == self.unit.short:
            return min(confidence, _SAID_NOTHING + (_SAID_ALL - _SAID_NOTHING) * self.share)
        chosen = any(candidate and candidate in term for term in self.terms)
        meant = self.share == 1 and candidate in self.unit.short
        # What an entry only mentions is not what it is called.
        told = any(candidate and candidate in text for text in self.texts)
        return min(confidence, _AMONG_OTHERS) if (chosen or told) and not meant else confidence


def find_asked_term(ctx: Context, passages: Sequence[Passage]) -> AskedTerm | None:
    """Return the definition whose term a question asks for; None where it asks for no term."""
    asked = _ASKED_KIND.search(ctx.question)
    if asked is None:
        return None
    said = {*split_words(ctx.question)}
    named = [p for p in passages if _name_words(p) and _name_words(p) <= said]
    names = {word for passage in named for word in _name_words(passage)}
    following = dropwhile(names.__contains__, split_words(asked["words"]))  # "which ssh option"
    nouns = list(takewhile(asked_words, following))  # none in "what does"
    entries = _find_entries(named or passages, _find_beside(passages))[:_MOST_ENTRIES]
    kinds = {noun for noun in nouns if any(_is_said(noun, e.kinds) for e in entries)}
    if head := find_asked_phrase(ctx.question).head:
        kinds &= {head}
    own = [e for e in entries if any(_is_said(kind, e.kinds) for kind in kinds)]
    told = [e for e in own if any(holds_term(one, ctx.question) for one in e.terms)]
    if not asks_denied(ctx.question):
        terms = {term for entry in own for term in entry.terms}
        told += [e for e in own if denies_other(e.block.title, e.text, terms)]
    own = [e for e in own if e not in told]
    words = _weigh_asked(ctx, names | kinds, own) if own else {}
    if not words:
        return None
    # A value of a term, or what belongs to it, is asked for: no other term is that.
    of_one = any(holds_term(t, ctx.question) for e in told for t in e.terms if _is_code(t))
    chosen = _choose_entry(own, words)
    return replace(chosen, leads=chosen.leads and not of_one)


def _is_code(term: str) -> bool:
    return _PLAIN.fullmatch(term) is None


def _choose_entry(entries: Sequence[Entry], words: Mapping[str, float]) -> AskedTerm:
    fits = [entry.measure(words) for entry in entries]
    best = max(range(len(entries)), key=fits.__getitem__)
    behind = max((fit for at, fit in enumerate(fits) if at != best), default=0.0)
    share = _measure_share(words, entries[best].text)
    least = _LEAST if len(entries) >= _FEW else _LEAST_OF_FEW
    leads = share >= least and fits[best] - behind >= _MARGIN
    terms = tuple(entry.cite().short for entry in entries)
    texts = tuple(entry.text for entry in entries)
    return AskedTerm(entries[best].cite(), share, leads, terms, texts)


def _measure_share(words: Mapping[str, float], text: str) -> float:
    said = split_words(text)
    return sum(weight for word, weight in words.items() if _is_said(word, said))


def _is_said(word: str, among: Sequence[str] | frozenset[str]) -> bool:
    return any(compare_words(one, word) >= _FORM for one in among)


def _weigh_asked(ctx: Context, known: set[str], entries: Sequence[Entry]) -> dict[str, float]:
    """Return the words that say which entry is meant, by their rarity in the list; sums to 1."""
    light, stems = table_for(ctx.question).links, {word[:STEM] for word in known}
    said = {word[:STEM]: word for word in reversed(split_words(ctx.question))}
    asked = weigh_words(ctx.view, ctx.question).keys() & said.keys() - stems
    words = sorted(said[stem] for stem in asked if not light.search(said[stem]))
    texts = [split_words(entry.text) for entry in entries]
    held = {word: sum(_is_said(word, text) for text in texts) for word in words}
    weights = {word: math.log(1 + len(texts) / max(1, held[word])) for word in words}
    return {word: weight / sum(weights.values()) for word, weight in weights.items()}


def _name_words(passage: Passage) -> frozenset[str]:
    """Return the words of a short title: a question names the document by them, "git rebase"."""
    words = [word for word in split_words(passage.title) if not word.isdigit()]  # ssh(1)
    return frozenset(words) if len(words) <= _MAX_NAME_WORDS else frozenset()


def _find_entries(
    passages: Sequence[Passage], beside: Mapping[str, Collection[str]]
) -> list[Entry]:
    """Return the definitions of passages, with the words for what their terms are."""
    found = []
    for passage in passages:
        blocks = find_blocks(passage.text)
        headings = [(one.start, one.title) for one in find_headings(passage.text)]
        outer = passage.heading.split(CRUMB_SEPARATOR)[-1]
        for block in _find_defined(blocks):
            above = [title for start, title in headings if start < block.start][-1:] or [outer]
            called = split_words(_COMPOUND.sub(" ", " ".join(above)))
            told = _COMPOUND.sub(" ", _find_announcement(passage.text, blocks, block))
            near = beside.get(block.title[0], ())
            found.append(Entry(passage, block, frozenset((*called, *_list_kinds(told), *near))))
    return found


def _find_defined(blocks: Sequence[Block]) -> list[Block]:
    return [b for b in blocks if b.kind == "definition" and 0 < len(b.title) <= _MAX_TERM]


def _find_announcement(text: str, blocks: Sequence[Block], block: Block) -> str:
    """Return the sentence before a list that ends in a colon."""
    before = [b for b in blocks if b.end <= block.start and b.kind == "paragraph"][-1:]
    said = text[before[0].start : before[0].end].rstrip() if before else ""
    spans = sentence_spans(said) if said.endswith(ANNOUNCES) else []
    return said[spans[-1][0] :] if spans else ""


def _list_kinds(announcement: str) -> list[str]:
    """Return the words of a sentence that may say what the things are that it announces.

    That is a plural ("The modes are:"), or what is "one of" them; other words say what they are of.
    """
    one = _ONE_OF.search(announcement)
    plurals = [word for word in split_words(announcement) if is_plural(word)]
    return [*plurals, *(split_words(one["words"]) if one else ())]


def _find_beside(passages: Sequence[Passage]) -> dict[str, set[str]]:
    """Return the words that follow a term somewhere, "the -n option", by the sign it begins with.

    Terms that begin with the same sign are of one kind. Their values are none: "-l depth".
    """
    titles = [b.title for p in passages for b in _find_defined(find_blocks(p.text))]
    terms = {_cut_value(word) for title in titles for word in title.split()[:1]}
    values = {word for title in titles for word in split_words(" ".join(title.split()[1:]))}
    found: dict[str, set[str]] = defaultdict(set)
    for passage in passages:
        words = passage.text.split()
        for before, word in pairwise(words):
            if not (term := before.strip("`'‘’“”("))[:1].isalnum() and term in terms:
                found[term[0]].update({*split_words(word)[:1]} - values)
    return found


def _cut_value(term: str) -> str:
    """Return an option without its value or comma: "--size" of "--size=N,"; "=" stays as it is."""
    cut = term.split(",")[0].split("=")[0]
    return cut or term
