"""Parses a question: its content words, the position of its name, and the kind of answer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clew.text.names import Tokens, tokenize
from clew.text.unicode import split_words

QUESTION_WORDS = frozenset(
    """
    a an the this that these those he she it they we i you his her its their our my your him them
    us me who whom whose which what when where why how is are was were be been being am has have
    had do does did will would can could shall should may might must not no nor or and but if then
    than so as of in on at to by for from with without into onto over under after before during
    since until while about against between among through both either neither each every all any
    some many much most more few several other another such same own only also too very just there
    here because although though however one two three first last new s t d ll re ve m o according
    despite following including unlike like along later earlier early late once upon per via name
    named born die died film song album book
    """.split()
)
# Question words that still help to tell namesakes apart.
WORK_KINDS = frozenset(("film", "song", "album", "book"))
# Words at which a name ends in a question without capitals.
NAME_BREAKS = QUESTION_WORDS | frozenset(
    "currently originally initially eventually finally recently today directed written produced "
    "starring released based set shot filmed founded located known name".split()
)
# A single capitalised first word that is one of these is no name. Imperatives are listed only here:
# within a question "list" and "show" may belong to a name.
OPENING_WORDS = NAME_BREAKS | frozenset(
    """
    tell explain list give show describe please kindly find identify define summarise summarize
    outline compare contrast discuss mention provide compute calculate determine estimate translate
    given considering regarding concerning
    """.split()
)
# Verbs that ask for an account, and nouns of which there are several parts to tell.
_ACCOUNT_VERBS = frozenset(
    """
    summarise summarize describe outline discuss explain trace characterise characterize list
    enumerate compare contrast overview review survey
    """.split()
)
_ACCOUNT_NOUNS = frozenset(
    """
    history evolution development overview consequences causes effects impact impacts features
    aspects factors trends challenges criticisms measures policies steps stages events reasons
    circumstances advantages disadvantages differences similarities methods approaches
    """.split()
)
_ACCOUNT_SIGNS_ZH = ("总结", "概述", "列出", "描述", "有哪些", "比较")
_MAX_VERB_POSITION = 4  # words before an imperative: "could you please summarise"
# A clause of words of courtesy, words beside them and question words alone asks nothing.
_COURTESY_WORDS = frozenset(
    "please kindly thanks thank hello hi hey tell wondering wonder appreciate grateful".split()
)
_BESIDE_COURTESY = frozenset("know help following question advance sorry dear excuse".split())
_CLAUSE = re.compile(r"[^,:;.!?]+[,:;.!?]*\s*")
_MAX_COURTESY = 8  # words at the beginning that may be courtesy
AnswerKind = Literal["person", "time", "place", ""]
# Question words that may also name a relation.
_RELATION_WORDS = frozenset("born die died film song album book name named last first".split())
_STOP_WORDS = QUESTION_WORDS - _RELATION_WORDS
# Words for a relation followed there and back: another film of the same director.
_SHARED_WORDS = frozenset(
    "same also share shared shares sharing together other others else another both co".split()
)
_SHARED_SIGNS_ZH = ("同", "一起", "共同", "其他", "另外", "也")
_ANSWER_KIND_WORDS: dict[str, AnswerKind] = {
    **dict.fromkeys(("who", "whom", "person"), "person"),
    **dict.fromkeys(("when",), "time"),
    **dict.fromkeys(("where",), "place"),
}
_ANSWER_KIND_SIGNS_ZH: tuple[tuple[str, AnswerKind], ...] = (
    *(
        ("谁", "person"),
        ("何时", "time"),
        ("什么时候", "time"),
        ("哪年", "time"),
        ("哪一年", "time"),
    ),
    *(("哪里", "place"), ("何处", "place"), ("在哪", "place")),
)
# Words of politeness and request, and the words that may stand among them; they ask for nothing.
_POLITE_WORDS = frozenset(
    "please kindly tell know thanks thank hi hello hey sorry wonder wondering curious help".split()
)
_ADDRESS_WORDS = frozenset(
    "can could would will do you i me us to like want need may might if am just so much".split()
)
_WHICH_WORDS = frozenset(("what", "which"))
_MAX_WORDS = 48  # content words that are read, those nearest to the name
_MAX_NOUN_DISTANCE = 6  # words after "what" or "which" that are searched for the noun
_ARTICLES = frozenset("the a an his her its their this that".split())
_VERB_SIGNS = frozenset("was were did does do has have had".split())
_CLAUSE_WORDS = frozenset(
    "is are was were did does do has have had who what which when where why how that".split()
)
NAME_MARK = "\0"  # replaces a name


@dataclass(frozen=True, slots=True)
class QuestionShape:
    """A parsed question with its names removed."""

    words: tuple[str, ...]
    positions: tuple[int, ...]
    """The content words, and the position of each."""
    name_position: int
    """Position of the first name; -1 when it is not in the question."""
    question_word_position: int
    """Position of the question word; -1 for none."""
    answer_kind: AnswerKind
    nouns: tuple[str, ...]
    """The nouns after `what` or `which`."""
    has_shared_word: bool
    rest: str
    """The question's words without names."""
    keys: tuple[str, ...] = ()
    """All words in order, each name replaced by `NAME_MARK`; positions are indices into them."""

    chain: tuple[tuple[int, ...], ...] = ()
    """The links of a possessive chain from the name outwards, each the indices of its words."""

    def bound_hops(self) -> tuple[int, int | None]:
        """Return the least and the greatest number of hops that a possessive chain allows.

        Words outside the chain are one more relation ("where was X's son born"), or any number.
        """
        if not self.chain:
            return 0, None
        linked = {word for link in self.chain for word in link}
        outside = [place for at, place in enumerate(self.positions) if at not in linked]
        if len(outside) > 1:
            return len(self.chain), None
        least = len(self.chain) + len(outside)
        # "where was X's son born": the last word may be a verb, said of the whole chain.
        verbs = any(key in _VERB_SIGNS for key in self.keys[: self.name_position])
        inner = (link for link in self.chain if self.positions[link[0]] > self.name_position)
        return least, least + (verbs and any(len(link) > 1 for link in inner))


def parse_question(question: str, spans: Sequence[tuple[int, int]]) -> QuestionShape:
    """Parse a question whose names are at these token spans (first, last)."""
    t = tokenize(question)
    keys = _mask_names(t, spans)
    polite = _find_polite_words(keys)
    word_position, answer_kind, nouns = _find_question_word(keys)
    if not answer_kind:
        answer_kind = next((kind for sign, kind in _ANSWER_KIND_SIGNS_ZH if sign in question), "")
    content = [
        (at, key)
        for at, key in enumerate(keys)
        if key != NAME_MARK
        and key not in _STOP_WORDS
        and key not in _SHARED_WORDS
        and at not in polite
    ]
    if not content:
        content = [(at, key) for at, key in enumerate(keys) if key != NAME_MARK]
    if len(content) > _MAX_WORDS:
        name = keys.index(NAME_MARK) if NAME_MARK in keys else 0
        content = sorted(sorted(content, key=lambda word: abs(word[0] - name))[:_MAX_WORDS])
    shared = any(key in _SHARED_WORDS for key in keys) or any(
        s in question for s in _SHARED_SIGNS_ZH
    )
    return QuestionShape(
        tuple(key for _, key in content),
        tuple(at for at, _ in content),
        keys.index(NAME_MARK) if NAME_MARK in keys else -1,
        word_position,
        answer_kind,
        nouns,
        shared,
        " ".join(key for at, key in enumerate(keys) if key != NAME_MARK and at not in polite),
        tuple(keys),
        _find_chain(keys, {at: index for index, (at, _) in enumerate(content)}),
    )


def _find_chain(keys: Sequence[str], word_at: dict[int, int]) -> tuple[tuple[int, ...], ...]:
    """Return the links of "d of the c of X's a's b" from the name outwards: a, b, c, d."""
    if NAME_MARK not in keys:
        return ()
    name = keys.index(NAME_MARK)
    links: list[list[int]] = []
    for at in range(name + 1, len(keys)):
        if keys[at] == "s":
            links.append([])
        elif at == name + 1 or keys[at] in _CLAUSE_WORDS or keys[at] == "and":
            break
        elif at in word_at:
            links[-1].append(word_at[at])
    at = name
    while (of := _of_before(keys, at)) >= 0:
        first = of
        while first > 0 and keys[first - 1] not in _ARTICLES | _CLAUSE_WORDS | {"and"}:
            first -= 1
        links.append([word_at[at] for at in range(first, of) if at in word_at])
        at = first
    return tuple(tuple(link) for link in links if link)


def _of_before(keys: Sequence[str], at: int) -> int:
    """Return the position of an "of" before a word and its article, or -1."""
    at -= 1
    while at >= 0 and keys[at] in _ARTICLES:
        at -= 1
    return at if at >= 0 and keys[at] == "of" else -1


def _find_polite_words(keys: Sequence[str]) -> set[int]:
    """Return the positions of words that only address the reader: "could you please tell me"."""
    found: set[int] = set()
    for order in (range(len(keys)), range(len(keys) - 1, -1, -1)):
        run: list[int] = []
        for at in order:
            if keys[at] not in _POLITE_WORDS and keys[at] not in _ADDRESS_WORDS:
                break
            run.append(at)
        if any(keys[at] in _POLITE_WORDS for at in run):
            found.update(run)
    return set() if len(found) == len(keys) else found


def content_words(text: str) -> list[str]:
    """Return the different words of a text that say what it is about."""
    return list(dict.fromkeys(word for word in split_words(text) if word not in QUESTION_WORDS))


def tidy_question(question: str) -> str:
    """Remove courtesy and close with a mark, so that either makes no difference."""
    plain = strip_courtesy(question)
    return f"{plain}?" if plain and plain[-1].isalnum() else plain


def strip_courtesy(question: str) -> str:
    """Remove "could you please tell me" and "thank you": clauses, and words at the beginning."""
    clauses = [
        clause for clause in _CLAUSE.findall(question) if not _is_courtesy(tokenize(clause).keys)
    ]
    kept = "".join(clauses).strip()
    t = tokenize(kept)
    for last in range(min(_MAX_COURTESY, len(t) - 1), 0, -1):
        # The opening ends with a word of courtesy, and perhaps with whom it is said to.
        ends = last - 2 if t.keys[last - 1] in ("me", "us") else last - 1
        courteous = t.keys[ends] in _COURTESY_WORDS | _BESIDE_COURTESY
        if courteous and _is_courtesy(t.keys[:last]):
            return kept[t.starts[last] :]
    return kept or question


def _is_courtesy(keys: Sequence[str]) -> bool:
    """Whether one word is of courtesy and all others accompany it."""
    known = _COURTESY_WORDS | _BESIDE_COURTESY | QUESTION_WORDS
    return any(key in _COURTESY_WORDS for key in keys) and all(key in known for key in keys)


def wants_breadth(question: str) -> bool:
    """Tell whether a question asks for an account with several parts, not for one fact."""
    keys = tokenize(question).keys
    if any(key in _ACCOUNT_VERBS for key in keys[:_MAX_VERB_POSITION]):
        return True
    if any(sign in question for sign in _ACCOUNT_SIGNS_ZH):
        return True
    parts = sum(key in _ACCOUNT_NOUNS for key in keys)
    return parts > 1 or (parts == 1 and any(key in ("main", "major", "key", "all") for key in keys))


def find_name_spans(question: str, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the token spans (first, last) of names in a question; absent names are left out."""
    t = tokenize(question)
    found: list[tuple[int, int]] = []
    for name in names:
        keys = tokenize(name).keys
        size = len(keys)
        for at in range(len(t) - size + 1) if size else ():
            if t.keys[at : at + size] == keys and not _overlaps(found, at, at + size):
                found.append((at, at + size))
                break
    return sorted(found)


def _overlaps(spans: Sequence[tuple[int, int]], first: int, last: int) -> bool:
    return any(first < b and a < last for a, b in spans)


def _mask_names(t: Tokens, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Return the folded words, each name replaced by one mark."""
    inside = {at for first, last in spans for at in range(first, last)}
    opens = {first for first, _ in spans}
    keys = []
    for at, key in enumerate(t.keys):
        if at in opens:
            keys.append(NAME_MARK)
        elif at not in inside:
            keys.append(key)
    return keys


def _find_question_word(keys: Sequence[str]) -> tuple[int, AnswerKind, tuple[str, ...]]:
    """Return the position of the question word, the kind of answer, and the nouns after it."""
    for at, key in enumerate(keys):
        if key in _ANSWER_KIND_WORDS and key != "person":
            return at, _ANSWER_KIND_WORDS[key], ()
        if key in _WHICH_WORDS:
            nouns = _leading_nouns(keys[at + 1 : at + 1 + _MAX_NOUN_DISTANCE])
            kinds: list[AnswerKind] = [
                _ANSWER_KIND_WORDS[noun] for noun in nouns if noun in _ANSWER_KIND_WORDS
            ]
            return (at, kinds[0], ()) if kinds else (at, "", nouns)
    return -1, "", ()


def _leading_nouns(after: Sequence[str]) -> tuple[str, ...]:
    """Return the first two content words in a row."""
    run: list[str] = []
    for key in after:
        skipped = key in _STOP_WORDS or key in _SHARED_WORDS
        if key == NAME_MARK or (skipped and run):
            break
        if not skipped:
            run.append(key)
    return tuple(run[:2])


def span_key(t: Tokens, first: int, last: int) -> str:
    """Return the loose key of a token span, without a leading article."""
    if last - first > 1 and t.keys[first] == "the":
        first += 1
    return t.key(first, last)
