"""Parses a question: its content words, the position of its name, and the kind of answer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from clew.text.names import Tokens, tokenize, tokenize_question
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
# Words of courtesy, and the words that may stand beside them; together they ask for nothing.
_COURTESY_WORDS = frozenset(
    """
    please kindly thanks thank hello hi hey tell wondering wonder appreciate grateful curious
    """.split()
)
_BESIDE_COURTESY = frozenset(
    "know help following question advance sorry dear excuse like want need let".split()
)
_ASKING_WORDS = frozenset("who whom whose which what when where why how".split())
_COURTESY = _COURTESY_WORDS | _BESIDE_COURTESY | (QUESTION_WORDS - _ASKING_WORDS)
_CLOSING_WORDS = frozenset("please kindly thanks thank".split())
_CLAUSE_END = frozenset(",:;.!?")
_MAX_COURTESY = 8  # words at the beginning or end that may be courtesy
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
# What holds a Chinese question together: without spaces it would make words with its neighbours.
_OPENING_MARKS = re.compile(r"(?<!\S)(?:[\"'“‘„«‹「『《〈(（\[¿¡]+\s*)+\Z")
_ASKING_ZH = re.compile(
    "请问|应该|应当|可以|能够|需要|最多|最少|至少|多少个?|几个|多长|多久|多大|什么样的?|什么时候|什么|怎么样?|怎样|如何|"
    "为什么|为何|哪几个|哪一个|哪个|哪些|哪里|哪儿|哪种|谁的?|是不是|是否|还是|有没有|表示|代表|意思|吗|呢|的(?=[？?]|$)"
)
# "!!??"; one mark before the question mark may be a name's.
_MANY_MARKS = re.compile(r"(?:[?？]\s*[!！?？]|[?？.。!！…]\s*[.。!！…]\s*[?？])\s*\Z")
_WHETHER = re.compile(
    r"\A(?:if|whether)\s+(?!.*(?:,|\b(?:who|whom|whose|which|what|when|where|why|how)\b))",
    re.IGNORECASE,
)
_WHICH_WORDS = frozenset(("what", "which"))
_MAX_WORDS = 24  # content words that are read, those nearest to the name: as many as are aligned
_MAX_NOUN_DISTANCE = 6  # words after "what" or "which" that are searched for the noun
_ARTICLES = frozenset("the a an his her its their this that".split())
_VERB_SIGNS = frozenset("was were did does do has have had".split())
_CLAUSE_WORDS = frozenset(
    "is are was were did does do has have had who what which when where why how that".split()
)
_BRACKET_PAIRS = {")": "(", "]": "[", "）": "（"}
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

    def word_before_name(self) -> str:
        """Return the word before the first name and its article, "" for none."""
        at = self.name_position - 1
        while at >= 0 and self.keys[at] in _ARTICLES:
            at -= 1
        return self.keys[at] if at >= 0 else ""

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
    t = tokenize_question(question)
    keys, polite = _mask_names(t, spans, find_courtesy(question, t))
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


def content_words(text: str) -> list[str]:
    """Return the different words of a text that say what it is about."""
    words = split_words(_ASKING_ZH.sub(" ", text))
    return list(dict.fromkeys(word for word in words if word not in QUESTION_WORDS))


def tidy_question(question: str) -> str:
    """Remove courtesy and close with a question mark, so that neither makes a difference."""
    plain = strip_courtesy(question).strip()
    plain = _WHETHER.sub("Is it true that ", plain)  # left of "Can you tell me if it floats?"
    if _MANY_MARKS.search(plain):
        plain = plain.rstrip("?？.。!！… ")
    if plain.endswith(("?", "？")):
        return plain
    plain = plain.rstrip(".。!！…,;: ")
    return f"{plain}?" if plain else question


@lru_cache(maxsize=256)  # several steps ask for the same
def strip_courtesy(question: str) -> str:
    """Remove "could you please tell me" and "thank you", wherever they stand."""
    t = tokenize_question(question)
    courtesy = find_courtesy(question, t)
    kept = [at for at in range(len(t)) if at not in courtesy]
    # What follows a word (spaces, marks) goes with it, but for a mark that opens what follows.
    opened = (
        _OPENING_MARKS.search(question, before, start)
        for before, start in zip([0, *t.ends], t.starts, strict=False)
    )
    starts = [o.start() if o else start for o, start in zip(opened, t.starts, strict=True)]
    ends = [*starts[1:], len(question)]
    return "".join(question[starts[at] : ends[at]] for at in kept).strip() or question


def find_courtesy(question: str, t: Tokens) -> set[int]:
    """Return the tokens that only address the reader: whole clauses, an opening, a closing.

    None if they are all there is.
    """
    clauses = _split_clauses(question, t)
    found = {at for clause in clauses if _is_courtesy(t, clause) for at in clause}
    left = [at for at in range(len(t)) if at not in found]
    opening = _find_opening(t, left)
    left = left[len(opening) :]
    found.update(opening, _find_closing(t, left))
    return found if len(found) < len(t) else set()


def _split_clauses(question: str, t: Tokens) -> list[range]:
    """Return the tokens between marks."""
    ends = [
        at + 1
        for at in range(len(t))
        if at + 1 == len(t) or _CLAUSE_END & set(question[t.ends[at] : t.starts[at + 1]])
    ]
    return [range(first, last) for first, last in zip([0, *ends], ends, strict=False)]


def _find_opening(t: Tokens, left: Sequence[int]) -> Sequence[int]:
    """Return "could you tell me" at the beginning: it ends with a word of courtesy, or its "me"."""
    for last in range(min(_MAX_COURTESY, len(left) - 1), 0, -1):
        key, before = t.keys[left[last - 1]], t.keys[left[last - 2]] if last > 1 else ""
        end = before if key in ("me", "us", "if") else key
        # "Please Please Me" is a name: what follows is courtesy too, and has a capital.
        named = t.upper[left[last]] and t.keys[left[last]] in _COURTESY - {"i"}
        named |= t.upper[left[last]] and key == "tell"  # "Tell Ada to close it" asks nothing
        courteous = end in _COURTESY_WORDS | _BESIDE_COURTESY
        if courteous and not named and _is_courtesy(t, left[:last]):
            return left[:last]
    return ()


def _find_closing(t: Tokens, left: Sequence[int]) -> Sequence[int]:
    """Return "please" or "thanks in advance" at the end, if something is asked before it."""
    for first in range(max(1, len(left) - _MAX_COURTESY), len(left)):
        asked = any(t.keys[at] not in QUESTION_WORDS for at in left[:first])
        opens = (
            left[first + 1] if first + 1 < len(left) and _stresses(t, left[first]) else left[first]
        )
        if asked and t.keys[opens] in _CLOSING_WORDS and _is_courtesy(t, left[first:]):
            return left[first:]
    return ()


def _stresses(t: Tokens, at: int) -> bool:
    """Whether a word only makes the thanks after it greater: "many thanks"."""
    return t.keys[at] in ("many", "so", "very", "with", "and")


def _is_courtesy(t: Tokens, some: Sequence[int]) -> bool:
    """Whether one word is of courtesy and all others accompany it; a name has capitals."""
    keys = [t.keys[at] for at in some]
    if any(t.upper[at] and t.keys[at] != "i" for at in some[1:]):
        return False
    said = any(key in _COURTESY_WORDS for key in keys) or any(
        key == "know" and before in ("to", "you", "me") for before, key in pairwise(keys)
    )
    return said and all(key in _COURTESY for key in keys)


def locate_names(question: str, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the token spans (first, last) of names in a question; absent names are left out."""
    t = tokenize_question(question)
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


def _mask_names(
    t: Tokens, spans: Sequence[tuple[int, int]], courtesy: set[int]
) -> tuple[list[str], set[int]]:
    """Return the folded words, each name replaced by one mark, and which of them are courtesy."""
    inside = {at for first, last in spans for at in range(first, last)}
    opens = {first for first, _ in spans}
    kept = [at for at in range(len(t)) if at in opens or at not in inside]
    keys = [NAME_MARK if at in opens else t.keys[at] for at in kept]
    return keys, {place for place, at in enumerate(kept) if at in courtesy - inside}


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


def remove_names(question: str, t: Tokens, spans: Sequence[tuple[int, int]]) -> str:
    """Remove these token spans from the question."""
    rest = question
    for first, last in reversed(spans):
        begin, end = t.starts[first], t.ends[last - 1]
        # A name's last token ends before its closing bracket.
        opening = _BRACKET_PAIRS.get(rest[end : end + 1])
        if opening is not None and opening in rest[begin:end]:
            end += 1
        rest = rest[:begin] + rest[end:]
    return " ".join(rest.split())
