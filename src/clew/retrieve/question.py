"""Reads a question: its content words, the places of names in it, and its closing mark."""

import re
from collections.abc import Sequence

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
# What holds a Chinese question together: without spaces it would make words with its neighbours.
_ASKING_ZH = re.compile(
    "请问|应该|应当|可以|能够|需要|最多|最少|至少|多少个?|几个|多长|多久|多大|什么样的?|什么时候|什么|怎么样?|怎样|如何|"
    "为什么|为何|哪几个|哪一个|哪个|哪些|哪里|哪儿|哪种|谁的?|是不是|是否|还是|有没有|表示|代表|意思|吗|呢|的(?=[？?]|$)"
)
# "!!??"; one mark before the question mark may be a name's.
_MANY_MARKS = re.compile(r"(?:[?？]\s*[!！?？]|[?？.。!！…]\s*[.。!！…]\s*[?？])\s*\Z")
_BRACKET_PAIRS = {")": "(", "]": "[", "）": "（"}


def content_words(text: str) -> list[str]:
    """Return the different words of a text that say what it is about."""
    words = split_words(_ASKING_ZH.sub(" ", text))
    return list(dict.fromkeys(word for word in words if word not in QUESTION_WORDS))


def tidy_question(question: str) -> str:
    """Return the question with one question mark at its end, so that marks make no difference."""
    plain = question.strip()
    if _MANY_MARKS.search(plain):
        plain = plain.rstrip("?？.。!！… ")
    if plain.endswith(("?", "？")):
        return plain
    plain = plain.rstrip(".。!！…,;: ")
    return f"{plain}?" if plain else question


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
