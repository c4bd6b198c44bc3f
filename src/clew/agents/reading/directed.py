"""Who does what to whom: whether a sentence says what is asked with its two sides exchanged.

"YAML was replaced by TOML" has every word of "Was TOML replaced by YAML?". A relation with a
direction has a first side and a second one: who does it and to whom it is done. A clause gives them
by the place of its verb ("by" turns it around), or by a noun for one side ("a pupil of A", "his
successor was B"). The nouns and verbs of both sides are in `rules/en.toml`; any other verb has its
subject first.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from clew.agents.citing.clauses import find_verbs
from clew.agents.reading.spans import asked_words
from clew.agents.reading.stems import cut_ending
from clew.agents.rules.table import DirectedRelation, RuleTable
from clew.text.irregular_verbs import BASE_OF_FORM
from clew.text.names import STOP_WORDS

MUTUAL = frozenset("marry married wed meet met divorce divorced play played share shared".split())
"""Verbs of what one does with another, and the other as well: "When did N marry?"."""
_WORD = re.compile(r"[^\W_][\w’'.-]*[^\W_]|[^\W_]")
_BREAK = re.compile(
    r"[,;:()—–?!]|\.(?=\s|\Z)|\b(?:and|but|who|whom|which|that|while|whereas|when|where)\b", re.I
)
_ASKING = re.compile(r"\b(?:who|whom|what|which(?:\s+[a-z]\w*)?)\b", re.IGNORECASE)
_MOST_ENDINGS = 4  # that are cut from one word
_BE = r"(?:is|are|was|were|be|been|being|became|become|becomes|remained)"
_PASSIVE = re.compile(rf"\b{_BE}\b(?:\s+\w+){{0,2}}\s*\Z|\A\W*(?:is|are|was|were)\b", re.IGNORECASE)
_BY = re.compile(
    r"\A(?:\s+\w+ly|\s+(?:later|then|again)|\s+(?:in|on|at)(?:\s+\w+){1,3}?)?\s+by\b", re.IGNORECASE
)
_OWNER = re.compile(
    r"(?:\b(?P<pronoun>(?i:his|her|its|their))|(?P<name>[A-Z][\w.-]*(?:\s+[A-Z][\w.-]*)*)['’]s?)"
    r"(?:\s+[a-z][\w-]*){0,2}\s*\Z"
)
_IS_BEFORE = re.compile(rf"\b{_BE}\s*\Z", re.IGNORECASE)
_IS = re.compile(rf"\b{_BE}\b", re.IGNORECASE)
_OF = re.compile(r"\A\s+(?:of|to)\b")
_OBJECT = re.compile(
    r"\A\s*\Z|\A\s+(?:by\b|than\b|the\b|an?\b|his\b|her\b|its\b|their\b|him\b|them\b|it\b|[A-Z])"
)
_THAN = re.compile(r"\A\s+than\b")
_LEADS_ON = re.compile(r"\A\s+(?:of|to|for|in|on|at|from|with|under)\b")
_ENDS_IN_NAME = re.compile(r"(?:\b[A-Z]\w*|\d)\s*\Z|\b(?:the|an?)\s+\w+\s*\Z")
_NAME_LAST = re.compile(r"\b[A-Z]\w*\s*\Z")
# "The cause was" has no verb "cause".
_ENDS_IN_ARTICLE = re.compile(r"\b(?:the|an?|his|her|its|their|this|that|of)\s+\Z", re.IGNORECASE)
_IS_NEXT = re.compile(rf"\A\s+{_BE}\b", re.IGNORECASE)
_ADVERBIAL = re.compile(
    r"\b(?:in|at|on|from|to|with|under|as|for|during|before|after|since|until|by|into|over)\b",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(?:he|she|it|they)\s*(?:\w+\s*)?\Z", re.IGNORECASE)
_OPENING = re.compile(r"\A\W*(?:did|does|do|has|have|had|can|could|will|would|may|should)\b", re.I)
_HELPING = frozenset(
    "is are was were be been has had have do does did can could will would".split()
)


@dataclass(frozen=True, slots=True)
class Bond:
    """A relation that a text states, and the words that stand on either side of it."""

    relation: str
    first: str
    second: str


def has_exchanged_sides(question: str, sentence: str, table: RuleTable, short: str = "") -> bool:
    """Whether a sentence says what is asked of the two sides the other way round.

    `short` is the answer to a question of who or what; it stands where the question asks.
    """
    asked = _find_asked(question, table, short)
    if asked is None:
        return False
    found = find_bonds(sentence, table, wanted=asked.relation)
    own = [one for one in found if one.relation == asked.relation]
    if short:  # beside "A taught B", "A was a pupil of C" says of C what it says
        own = [one for one in own if _has(one, short)] or own
    return any(_crosses(asked, one) for one in own) and not any(_fits(asked, one) for one in own)


def turns_relation(claim: str, text: str, table: RuleTable) -> bool:
    """Whether a text has the two sides of something that a sentence claims the other way round."""
    claimed, said = list(find_bonds(claim, table)), list(find_bonds(text, table))
    pairs = [(one, _find_same(one, text, table)) for one in claimed]
    pairs += [(own, [one]) for one in said for own in _find_same(one, claim, table)]
    return any(
        any(_crosses(own, one) for one in others) and not any(_fits(own, one) for one in others)
        for own, others in pairs
    )


def _find_same(bond: Bond, text: str, table: RuleTable) -> list[Bond]:
    found = find_bonds(text, table, wanted=bond.relation)
    return [one for one in found if one.relation == bond.relation]


def _find_asked(question: str, table: RuleTable, short: str) -> Bond | None:
    """Return the relation that a question asks about, with an answer at the side it asks for."""
    plain = _ASKING.sub(" ", question).strip() if short else question
    for one in find_bonds(plain, table, asks=True):
        first, second = _head(one.first, one.second), _head(one.second, one.first)
        if short and bool(first) != bool(second):
            return Bond(
                one.relation, one.first if first else short, one.second if second else short
            )
        if short or not (first and second):
            return None
        return one
    return None


def find_bonds(
    text: str, table: RuleTable, *, wanted: str = "", asks: bool = False
) -> Iterator[Bond]:
    """Yield the relations that a text states, clause by clause.

    What has the form of the `wanted` verb is one; a text that `asks` has none of its own.
    """
    for piece in _BREAK.split(text):
        yield from _read_piece(piece, table, wanted, asks=asks)


def _read_piece(piece: str, table: RuleTable, wanted: str, *, asks: bool) -> Iterator[Bond]:
    verbs = {verb for verb in find_verbs(piece) if verb not in _HELPING}
    does = asks and _OPENING.match(piece) is not None
    for found in _WORD.finditer(piece):
        word, before, after = found[0], piece[: found.start()], piece[found.end() :]
        if not word.islower() or word in STOP_WORDS:
            continue
        known = next((one for one in table.directed if _is_word_of(one, word)), None)
        if known and (bond := _read_known(known, word, before, after, asks=asks)):
            yield bond
        elif known is None and word not in MUTUAL and not _LEADS_ON.match(after):
            acts = word in verbs and _OBJECT.match(after)
            if (
                acts
                or _stands_as_verb(word, before, after)
                or _is_form_of(word, wanted, before, after)
                or (does and _is_verb_of_name(before))
                or _THAN.match(after)
            ):
                yield _read_verb(_base(word), word, before, after)


def _stands_as_verb(word: str, before: str, after: str) -> bool:
    """Whether a word stands as a verb does, behind a name and before what it is done to."""
    named = _NAME_LAST.search(before) is not None and _OBJECT.match(after) is not None
    return named and bool(after.strip()) and word.endswith("s") and bool(asked_words(word))


def _is_word_of(known: DirectedRelation, word: str) -> bool:
    return bool(known.side_of(word)) or _base(word) in _bases(known.does | known.undergoes)


@lru_cache(maxsize=64)
def _bases(verbs: frozenset[str]) -> frozenset[str]:
    return frozenset(map(_base, verbs))


def _is_form_of(word: str, wanted: str, before: str, after: str) -> bool:
    """Whether a word is the wanted verb by its form, and no noun by its place."""
    is_noun = _ENDS_IN_ARTICLE.search(before) or _IS_NEXT.match(after)
    return _base(word) == wanted and not is_noun


@lru_cache(maxsize=4096)
def _base(word: str) -> str:
    """Return what the forms of one verb share, and no other word: "calls", "called", "calling"."""
    for _ in range(_MOST_ENDINGS):
        word = BASE_OF_FORM.get(word, word)
        word = re.sub(r"(?<=\w\w)(?:ied|ies)\Z", "y", word)
        short = re.sub(r"(?<=\w\w)(?:ing|ed|es|s|e)\Z", "", word)
        short = re.sub(r"(\w)\1\Z", r"\1", short)
        if short == word:
            break
        word = short
    return word


def _read_known(
    known: DirectedRelation, word: str, before: str, after: str, *, asks: bool
) -> Bond | None:
    """Read a relation of the table: by a noun for one of its sides, or by a verb."""
    if side := known.side_of(word):
        bearer, holder = _read_noun(before, after)
        if not holder:
            return None
        sides = (bearer, holder) if side == "first" else (holder, bearer)
        return Bond(known.name, *sides)
    if asks and (ahead := known.under.match(before.lstrip())):  # "Under whom did A train?"
        return Bond(known.name, "", before.lstrip()[ahead.end() :])
    turned = _base(word) in _bases(known.undergoes)
    behind = known.under.search(after)
    if behind and not re.match(r"\s+(?:[A-Z]|him\b|her\b|them\b)", after):
        return Bond(known.name, _cut(after[behind.end() :]), _subject(before))
    if turned and not known.is_direct:
        return None
    bond = _read_verb(known.name, word, before, after)
    return Bond(bond.relation, bond.second, bond.first) if turned else bond


def _read_noun(before: str, after: str) -> tuple[str, str]:
    """Return who a noun is said of, and whose he is: "A is a pupil of B", "B's pupil is A"."""
    if owner := _OWNER.search(before):
        own, ahead = owner["pronoun"] or owner["name"], before[: owner.start()]
        return (ahead if _IS_BEFORE.search(ahead) else after), own
    of = _OF.match(after)
    if of is None:
        return "", ""
    parts = _IS.split(after[of.end() :], maxsplit=1)
    bearer = before if _head(before, "") or _PRONOUN.search(_IS.sub("", before)) else ""
    return bearer or (parts[1] if len(parts) > 1 else ""), _cut(parts[0])


def _read_verb(name: str, word: str, before: str, after: str) -> Bond:
    """Read the sides of a verb, or of an adjective before "than"."""
    by = _BY.match(after)
    participle = word.endswith("ed") or word in BASE_OF_FORM
    if participle and (by or _PASSIVE.search(before)):
        return Bond(name, _cut(after[by.end() :]) if by else "", _subject(before))
    if participle and not after.strip() and not _OPENING.match(before):
        return Bond(name, "", "")  # "written and illustrated by": its voice is not told
    return Bond(name, _subject(before), _cut(re.sub(r"\A\s+than\b", "", after)))


def _subject(before: str) -> str:
    """Return the subject before a verb: a pronoun that stands there, else all."""
    found = _PRONOUN.search(_IS.sub("", before))
    return found[0] if found else before


def _cut(text: str) -> str:
    """Return what stands before when, where and how it is done."""
    found = _ADVERBIAL.search(text)
    return text[: found.start()] if found else text


def _is_verb_of_name(before: str) -> bool:
    """Whether what stands between the opening of a question and a word is a name or one thing."""
    between = _OPENING.sub("", before)
    return _ENDS_IN_NAME.search(between) is not None


def _keys(text: str) -> list[str]:
    """Return the words that tell what is named: names where there are any, else things."""
    words = [w for w in _WORD.findall(_OPENING.sub("", text)) if w.lower() not in STOP_WORDS]
    names = [w.lower() for w in words if w[0].isupper() or w[0].isdigit()]
    telling = set(asked_words(" ".join(words).lower()))
    return names or [cut_ending(w.lower()) for w in words if w.lower() in telling]


def _head(text: str, other: str) -> str:
    """Return the last word that names one side and not the other; "" where there is none."""
    rest = set(_keys(other))
    return next((word for word in reversed(_keys(text)) if word not in rest), "")


def _said(text: str) -> set[str]:
    words = [word.lower() for word in _WORD.findall(re.sub(r"['’]s\b", "", text))]
    return {*words, *map(cut_ending, words)}


def _crosses(asked: Bond, one: Bond) -> bool:
    """Whether a side of what is asked stands at the other side, and not at its own."""
    return _is_moved(asked.first, asked.second, one.second, one.first) or _is_moved(
        asked.second, asked.first, one.first, one.second
    )


def _has(one: Bond, short: str) -> bool:
    """Whether an answer stands at one of the sides."""
    return _head(short, "") in _said(one.first) | _said(one.second)


def _is_moved(side: str, other: str, there: str, here: str) -> bool:
    head = _head(side, other)
    return bool(head) and head in _said(there) and head not in _said(here)


def _fits(asked: Bond, one: Bond) -> bool:
    """Whether a side of what is asked stands where it does in another relation, and none moved."""
    first, second = _head(asked.first, asked.second), _head(asked.second, asked.first)
    kept = first in _said(one.first) or second in _said(one.second)
    return kept and not _crosses(asked, one)
