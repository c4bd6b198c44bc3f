"""Which part of a passage is about a name: its own page, its section, or its run of sentences.

Files that tell of several things one after the other have no page for each; what stands between
the sentence (or heading) that brings a name up and the next name is as good as one.
"""

import re
from collections.abc import Iterator, Sequence

from clew.agents.writing.support import mentions
from clew.extract.spans import capitalised
from clew.names import (
    CONNECTORS,
    FORM,
    Tokens,
    forms,
    name_key,
    plain_title,
    tokens,
)
from clew.sentences import sentence_spans
from clew.types import Citation, Passage

Span = tuple[int, int]
_HEADING = re.compile(r"^[ \t]*(#{1,6})[ \t]+(.+?)[ \t#]*$", re.M)
_STOPS = (".", "!", "?", "…", ";", ":", ",")
_TITLE_LINE = 60  # characters; a longer line without a stop is no heading


def own_parts(name: str, passage: Passage) -> list[Span]:
    """Spans of the passage's text that are about `name`, in order; none where it has no own."""
    for key in _keys(name):
        if name_key(plain_title(passage.title)) == key:
            return [_without_others(key, passage.text)]
        sections = [(start, end) for mark, start, end in _sections(passage.text) if mark == key]
        if found := sections or list(_runs(key, passage.text)):
            return found
    return []


def _keys(name: str) -> list[str]:
    """The name's key, then those that can only mean it: without its rank, before its comma.

    What stands before "of" may be another ("Frederick III"), a first or last name anybody.
    """
    bare = plain_title(name)
    short = [form.key for form in forms(bare) if form.kind == FORM]
    if "," in bare:
        short.append(name_key(bare.split(",")[0]))
    return [name_key(bare), *(key for key in short if " " in key)]


def in_own_part(name: str, passage: Passage, start: int) -> bool:
    """Whether a place in a passage's text is in the part about `name`."""
    return any(first <= start < end for first, end in own_parts(name, passage))


def tells_of(name: str, cited: Citation, home: Passage) -> bool:
    """Whether a cited sentence speaks of a name, or stands where its passage is about it."""
    return mentions(name, cited.quote) or in_own_part(name, home, cited.start - home.start)


def short_for(name: str, passages: Sequence[Passage]) -> str:
    """The one full name that the passages bring up for a bare surname; else nothing."""
    if len(name_key(name).split()) != 1:
        return ""
    said = {}
    for passage in passages:
        for start, end in sentence_spans(passage.text):
            opening = _opening(passage.text[start:end])
            keys = name_key(opening).split()
            if len(keys) in (2, 3) and keys[-1] == name_key(name):
                said[" ".join(keys)] = opening
    return next(iter(said.values())) if len(said) == 1 else ""


def _sections(text: str) -> Iterator[tuple[str, int, int]]:
    """Each marked heading's key and what stands under it, up to the next of its rank."""
    marks = list(_HEADING.finditer(text))
    for at, mark in enumerate(marks):
        ends = (m.start() for m in marks[at + 1 :] if len(m[1]) <= len(mark[1]))
        yield name_key(plain_title(mark[2])), mark.end(), next(ends, len(text))


def _without_others(key: str, text: str) -> Span:
    """A page's own text: where its first section bears its name, other sections are others'."""
    first = next(_sections(text), None)
    return first[1:] if first is not None and first[0] == key else (0, len(text))


def _runs(key: str, text: str) -> Iterator[Span]:
    """From a sentence that begins with the name to the next heading or other name."""
    begin: int | None = None
    until = 0
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        heading = _is_heading(text, start, end)
        mine = _begins(key, sentence, alone=heading)
        if begin is not None and not mine and (heading or _other(key, sentence)):
            yield begin, until
            begin = None
        if mine and begin is None:
            begin = end if heading else start
        until = end
    if begin is not None and begin < until:
        yield begin, until


def _is_heading(text: str, start: int, end: int) -> bool:
    """A line of its own that ends like no sentence."""
    line = text[start:end]
    if line.startswith("#"):
        return True
    whole = text[:start].rstrip(" \t")[-1:] in ("", "\n") and text[end : end + 1] in ("", "\n")
    return whole and len(line) < _TITLE_LINE and "\n" not in line and not line.endswith(_STOPS)


def _begins(key: str, sentence: str, *, alone: bool) -> bool:
    """Whether a sentence begins with the name, and not with a longer one or with what is its."""
    if alone:
        return name_key(plain_title(sentence.lstrip("# "))) == key
    t = tokens(sentence)
    first = 1 if t.keys[:1] == ["the"] else 0
    wanted = key.split()
    last = first + len(wanted)
    if not wanted or t.keys[first:last] != wanted:
        return False
    return last >= len(t) or not _goes_on(sentence, t, last)


def _goes_on(sentence: str, t: Tokens, last: int) -> bool:
    """ "Ana Roth Prize" and "Ana Roth's sister" are not Ana Roth."""
    gap = sentence[t.ends[last - 1] : t.starts[last]]
    of = t.keys[last] in CONNECTORS and last + 1 < len(t) and t.upper[last + 1]
    return gap in ("'", "’") or (gap in (" ", "-") and (t.upper[last] or of))


def _other(key: str, sentence: str) -> bool:
    """Whether a sentence begins with the name of something else."""
    said = name_key(_opening(sentence)).split()
    return bool(said) and not set(said) <= set(key.split())


def _opening(sentence: str) -> str:
    """The name a sentence begins with, if it does."""
    t = tokens(sentence)
    runs = capitalised(sentence, t, {0})
    first = 1 if t.keys[:1] == ["the"] else 0
    if not runs or runs[0][0] > first:
        return ""
    return sentence[t.starts[runs[0][0]] : t.ends[runs[0][1] - 1]]
