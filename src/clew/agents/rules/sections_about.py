"""Find the section of a passage that is about a name: its page, section, or run of sentences.

A file about several things has no page for each; the text from the sentence (or heading) that
introduces a name to the next name serves as one.
"""

import re
from collections.abc import Iterator

from clew.text.name_spans import find_capitalised_runs
from clew.text.names import (
    CONNECTORS,
    FORM,
    Tokens,
    name_key,
    short_forms,
    strip_disambiguation,
    tokenize,
)
from clew.text.sentences import sentence_spans
from clew.text.structure import find_blocks, has_structure
from clew.types import Passage

Span = tuple[int, int]
_HEADING = re.compile(r"^[ \t]*(#{1,6})[ \t]+(.+?)[ \t#]*$", re.M)
_SENTENCE_MARKS = (".", "!", "?", "…", ";", ":", ",")
_MAX_HEADING_CHARS = 60  # characters; a longer line without a stop is no heading


def find_sections(name: str, passage: Passage) -> list[Span]:
    """Return the spans of the passage's text that are about `name`, in order."""
    for key in _name_keys(name):
        if name_key(strip_disambiguation(passage.title)) == key:
            return [_trim_to_own_section(key, passage.text)]
        sections = [
            (start, end) for mark, start, end in _heading_sections(passage.text) if mark == key
        ]
        sections = sections or _definitions(key, passage.text)
        if found := sections or list(_sentence_runs(key, passage.text)):
            return found
    return []


def _definitions(key: str, text: str) -> list[Span]:
    """Return the definitions of the term with this key."""
    if not has_structure(text):
        return []
    return [
        (block.start, block.end)
        for block in find_blocks(text)
        if block.kind == "definition"
        and any(name_key(strip_disambiguation(one)) == key for one in block.title.split(","))
    ]


def find_headings(text: str) -> list[str]:
    """Return the headings of a text."""
    return [mark[2] for mark in _HEADING.finditer(text)]


def cut_to_section(text: str, at: int) -> str:
    """Return the section around a place with the headings above it; all where none is above."""
    marks = list(_HEADING.finditer(text))
    above = [mark for mark in marks if mark.start() <= at]
    if not above:
        return text
    path, level = list[str](), len(above[-1][1]) + 1
    for mark in reversed(above):
        if len(mark[1]) < level:
            path.insert(0, mark[2])
            level = len(mark[1])
    end = next((mark.start() for mark in marks if mark.start() > at), len(text))
    return "\n".join([*path, text[above[-1].end() : end]])


def _name_keys(name: str) -> list[str]:
    """Return the name's key, then unambiguous shorter ones: without its rank, before its comma.

    The part before "of" may be another person ("Frederick III"), a first or last name anybody.
    """
    bare = strip_disambiguation(name)
    short = [form.key for form in short_forms(bare) if form.kind == FORM]
    if "," in bare:
        short.append(name_key(bare.split(",")[0]))
    return [name_key(bare), *(key for key in short if " " in key)]


def _heading_sections(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each heading's key and the span of its section, up to the next heading of its level."""
    marks = list(_HEADING.finditer(text))
    for at, mark in enumerate(marks):
        ends = (m.start() for m in marks[at + 1 :] if len(m[1]) <= len(mark[1]))
        yield name_key(strip_disambiguation(mark[2])), mark.end(), next(ends, len(text))


def _trim_to_own_section(key: str, text: str) -> Span:
    """Return the page's own span: only its first section, if that has the page's name."""
    first = next(_heading_sections(text), None)
    return first[1:] if first is not None and first[0] == key else (0, len(text))


def _sentence_runs(key: str, text: str) -> Iterator[Span]:
    """Yield runs from a sentence that begins with the name to the next heading or other name."""
    begin: int | None = None
    until = 0
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        heading = _is_heading(text, start, end)
        mine = _begins_with_name(key, sentence, alone=heading)
        if begin is not None and not mine and (heading or _begins_with_other_name(key, sentence)):
            yield begin, until
            begin = None
        if mine and begin is None:
            begin = end if heading else start
        until = end
    if begin is not None and begin < until:
        yield begin, until


def _is_heading(text: str, start: int, end: int) -> bool:
    """Whether a span is a heading: a line of its own without a final stop."""
    line = text[start:end]
    if line.startswith("#"):
        return True
    whole = text[:start].rstrip(" \t")[-1:] in ("", "\n") and text[end : end + 1] in ("", "\n")
    return (
        whole
        and len(line) < _MAX_HEADING_CHARS
        and "\n" not in line
        and not line.endswith(_SENTENCE_MARKS)
    )


def _begins_with_name(key: str, sentence: str, *, alone: bool) -> bool:
    """Whether a sentence begins with exactly this name, not a longer one or a possessive."""
    if alone:
        return name_key(strip_disambiguation(sentence.lstrip("# "))) == key
    t = tokenize(sentence)
    first = 1 if t.keys[:1] == ["the"] else 0
    wanted = key.split()
    last = first + len(wanted)
    if not wanted or t.keys[first:last] != wanted:
        return False
    return last >= len(t) or not _name_continues(sentence, t, last)


def _name_continues(sentence: str, t: Tokens, last: int) -> bool:
    """Whether the name continues: "Ana Roth Prize" and "Ana Roth's sister" are not Ana Roth."""
    gap = sentence[t.ends[last - 1] : t.starts[last]]
    of = t.keys[last] in CONNECTORS and last + 1 < len(t) and t.upper[last + 1]
    return gap in ("'", "’") or (gap in (" ", "-") and (t.upper[last] or of))


def _begins_with_other_name(key: str, sentence: str) -> bool:
    opening_words = name_key(_opening_name(sentence)).split()
    return bool(opening_words) and not set(opening_words) <= set(key.split())


def _opening_name(sentence: str) -> str:
    """Return the name a sentence begins with, or ""."""
    t = tokenize(sentence)
    runs = find_capitalised_runs(sentence, t, {0})
    first = 1 if t.keys[:1] == ["the"] else 0
    if not runs or runs[0][0] > first:
        return ""
    return sentence[t.starts[runs[0][0]] : t.ends[runs[0][1] - 1]]
