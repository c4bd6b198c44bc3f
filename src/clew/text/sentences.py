"""Sentence splitting for any script, in one pass and without a model."""

import re
from collections.abc import Iterator
from functools import lru_cache

from clew.text.word_forms import is_function_word

_CLOSING_MARKS = "\"'”’»›)\\]}」』）】》〉*_"
# A sentence can end in two places: after a stop with its closing marks, or at a line end. Each
# match consumes its whole run without looking back, so that the scan stays linear.
_BOUNDARY_CANDIDATE = re.compile(
    rf"(?P<stop>[.!?…‼⁇⁈⁉]++[{_CLOSING_MARKS}]*+(?:\[\d{{1,3}}\]){{0,4}})"
    rf"|(?P<full>[。！？｡؟۔।॥։።።။។།]++[{_CLOSING_MARKS}]*+)"
    r"|(?P<line>\n\s*+)"
)
_WORD = re.compile(r"\w")
_BEFORE_LAST_WORD = re.compile(r".*[\s\"“”‘«‹(\[{<—–/]", re.DOTALL)
_NEXT_WORD = re.compile(r"\s*+[\"'“‘«‹(\[{¿¡*_—–-]{0,4}\s?(\w{0,16})")
_LIST_MARKER = re.compile(r"\s*\(?(?:\d{1,3}|[^\W\d_]|[ivxIVX]{1,5})")
_TERM = r"(?:`[^`\n]{1,60}`|-{1,2}[^\W_][\w-]*|[^\W\d_]\w*_\w+)"
_NO_ROW = r"(?![^;\n]*; [^:;\n]{1,40}: )"  # "size: 3; colour: red" is a row of a table
TERM_LINE = rf"(?P<term>{_TERM}(?:, ?{_TERM})*(?: \([^()\n]{{1,40}}\))?):[ \t]+{_NO_ROW}\S"
"""A line that begins with a marked name, an option or an identifier, and tells what it is."""
_LIST_LINE = re.compile(
    rf"(?:[-*+•‣◦–—]|\(?(?:\d{{1,3}}|[A-Za-z])[.)])\s|#{{1,6}}\s|[|>]|```|~~~|{TERM_LINE}"
)
_ROW_LINE = re.compile(r"\s*(?:#{1,6}\s|\||```|~~~)")
_ITEM_NUMBER = re.compile(r"[ \t]*\(?(?:(\d{1,3})|([^\W\d_]))([.)])\s")
_LIST_CHARS = 2_000  # before and behind an item, where its neighbours are looked for
_DEFINED_TERM = re.compile(r"(?!:[ \t])[^\n]{1,120}\n[ \t]*:[ \t]+\S")  # its body is the next line
_CLOSING_STOP = re.compile(rf"[.!?…:;。！？：；][{_CLOSING_MARKS}]*\Z")
# A stop after these never ends the sentence: a name must follow.
_MAX_SHORTENED = 3  # letters before a stop inside an abbreviation
_ABBREVIATIONS_BEFORE_NAME = frozenset(
    "mr mrs ms mx dr prof st ste fr rev hon col capt cmdr lt sgt cpl adm gov messrs mme mlle mgr "
    "sra srta dra e.g i.e cf viz vs v z.b d.h bzw approx geb gest mt mk assn".split()
)
_ABBREVIATIONS_BEFORE_NUMBER = frozenset(
    "no nos nr p pp vol vols fig figs eq sec ch chap art par pt ed fl aft bef ca".split()
).union("abcdefghijklmnopqrstuvwxyz")  # "b. 1950", "c. 900": lower-case letters
# After these, and after initials, the sentence ends only if the next word is a sentence starter.
_AMBIGUOUS_ABBREVIATIONS = frozenset(
    "jr sr inc ltd co corp llc plc etc al esq bc ad est bros op univ dept ave blvd ft sen gen rep "
    "pres maj jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
_SENTENCE_STARTERS = frozenset(
    "a after all although an and as at because before but by despite during each every for from he "
    "her here his how however i if in it its later many most my no on one our several she since "
    "some such that the their then there these they this those though through to today under until "
    "upon we were what when where which while who with you your "
    "der die das er sie es ein eine im am nach le la les il elle un une el los las en der".split()
)
# Words that a name follows.
_BEFORE_NAMES = frozenset(
    "a an and as at but by de der du for from if in la le nor of on or so than that the to van von "
    "vs was when while who with y und et von dr mr ms".split()
)
_GERMAN_MONTHS = frozenset(
    "januar jänner februar märz april mai juni juli august september oktober november "
    "dezember".split()
)
_SHORT_LINE = 48
_WIDEST_NOTE = 48  # a column that prose without any stop is not wrapped at
_OPENING = re.compile(  # the first letter of a line that is no heading, or behind a stop
    rf"(?:(?:\A|\n)(?![#|])|[.!?…][{_CLOSING_MARKS}]{{0,4}}\s)[^\w\n]{{0,6}}+([^\W\d_])"
)
_FENCE = re.compile(
    r"^[ \t]*+(?:(?P<mark>(?::|[-*+•‣◦]|\d{1,3}[.)])[ \t]++)```[^`\n]*+|```[^\n]*+)(?:\n|\Z)",
    re.MULTILINE,
)
_MAX_CODE_CHARS = 2_000  # a longer block of code is split at its lines like any text
_NO_CODE = (1 << 60, 1 << 60)
_MAX_KEPT_CHARS = 4_000  # of a text whose sentences are kept


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return each sentence's trimmed span, in order; every visible character is in one."""
    return list(_recall_spans(text)) if len(text) <= _MAX_KEPT_CHARS else _find_spans(text)


@lru_cache(maxsize=512)  # the passages of a question are split for many purposes
def _recall_spans(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(_find_spans(text))


def _find_spans(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = 0
    for end in _find_ends(text):
        piece = text[start:end]
        body = piece.strip()
        if body:
            left = start + len(piece) - len(piece.lstrip())
            spans.append((left, left + len(body)))
        start = end
    return spans


def _writes_small(text: str) -> bool:
    """Whether a text begins its lines and sentences with small letters throughout."""
    found = None
    for found in _OPENING.finditer(text):  # the first capital decides, mostly the first letter
        if not found[1].islower():
            return False
    return found is not None


def _has_lines_of_notes(text: str) -> bool:
    """Whether the lines of a text are statements of their own, rather than wrapped prose.

    Prose is wrapped where the next word is too long for the line, often behind a word that binds
    it to the next one. The width is that of the longer lines, so that one long line tells nothing.
    """
    breaks = _find_breaks(text)
    if not breaks:
        return False
    lengths = sorted(len(line) for line, _ in breaks)
    width = lengths[len(lengths) * 3 // 4]
    if len(breaks) > 1 and not any(
        _CLOSING_STOP.search(line[-8:].rstrip()) for line in text.splitlines()
    ):
        width = max(width, _WIDEST_NOTE)
    early = sum(len(line) + 1 + len(word) <= width for line, word in breaks)
    bound = sum(_is_unfinished(line) for line, _ in breaks)
    return early * 3 >= len(breaks) and bound * 4 <= len(breaks)


def _find_breaks(text: str) -> list[tuple[str, str]]:
    """Return the lines that another follows at the margin, each with the word that begins it."""
    lines = text.splitlines()
    pairs = zip(lines, lines[1:], strict=False)
    return [
        (line.rstrip(), after.split(maxsplit=1)[0])
        for line, after in pairs
        if line[:1].isalnum() and after[:1].isalnum() and not _LIST_LINE.match(after)
    ]


def _is_unfinished(line: str) -> bool:
    """Whether a line ends with a word or a mark that another word must follow."""
    words = line.split()
    return bool(words) and (words[-1].endswith((",", "-")) or is_function_word(words[-1]))


def _find_ends(text: str) -> Iterator[int]:
    start = line_start = seen = 0
    small = _writes_small(text)
    notes = small and _has_lines_of_notes(text)
    wordless = True  # a sentence needs a word: "- - -", ". . ." and "!?" join what follows
    fenced = _find_code(text) if "```" in text else iter(())
    code = next(fenced, _NO_CODE)
    for found in _BOUNDARY_CANDIDATE.finditer(text):
        while found.start() >= code[1]:
            code = next(fenced, _NO_CODE)
        if code[0] <= found.start():
            line_start = found.end() if found.lastgroup == "line" else line_start
            continue  # a block of code is one piece
        if wordless:
            wordless = _WORD.search(text, seen, found.start()) is None
            seen = found.start()
        kind, at = found.lastgroup, found.end()
        if kind == "line":
            ends = _is_line_end(text, line_start, found, notes)
            line_start = at
        elif wordless or _ROW_LINE.match(text, line_start):
            ends = False  # a heading and a table row are one piece each
        else:
            ends = kind == "full" or _is_stop_end(text, start, found, small)
        if ends:
            yield at
            start, seen, wordless = at, at, True
    yield len(text)


def _find_code(text: str) -> Iterator[tuple[int, int]]:
    """Yield the blocks of code between fences, except for long ones."""
    opened = -1
    for fence in _FENCE.finditer(text):
        if opened < 0:
            opened = fence.start()
        elif not fence["mark"]:
            end = fence.end() - fence[0].endswith("\n")
            if end - opened <= _MAX_CODE_CHARS:
                yield opened, end
            opened = -1


def _is_line_end(text: str, line_start: int, found: re.Match[str], notes: bool) -> bool:
    """Whether a line end ends a sentence, rather than wrapping a line within it.

    With `notes` the lines of the text are statements, whatever letter they begin with.
    """
    at = found.end()
    if found.group().count("\n") > 1:
        return True
    if _LIST_LINE.match(text, at):
        around = text[max(0, at - _LIST_CHARS) : at + _LIST_CHARS]
        return not goes_on_with_number(text[line_start : found.start()], text[at:], around)
    if _ROW_LINE.match(text, line_start):
        return True
    column = _column(text, at)
    if text.startswith((": ", ":\t"), line_start) and column <= _column(text, line_start):
        return True  # what stands under the colon of a definition is no part of its body
    if _DEFINED_TERM.match(text, at):  # two terms of one body stay together
        said = _CLOSING_STOP.search(text, line_start, found.start()) is not None
        if said or column < _column(text, line_start):
            return True
    following = text[at : at + 1]
    if notes and following.isalnum():
        return not _is_unfinished(text[line_start : found.start()])
    short = found.start() - line_start < _SHORT_LINE
    return short and not following.islower() and following.isalnum()


def goes_on_with_number(before: str, line: str, around: str) -> bool:
    """Whether a line that begins like an item goes on with the sentence of the line before.

    "… returns a status of" and "127. If …": the number is not the first of a list, and none of its
    neighbours stands at the beginning of a line around.
    """
    mark = _ITEM_NUMBER.match(line)
    bare = before.rstrip()
    if mark is None or not bare or _CLOSING_STOP.search(bare) or not bare[-1].isalnum():
        return False
    if mark[1]:
        number = int(mark[1])
        beside = [str(number - 1), str(number + 1)] if number > 1 else []
    else:
        first = mark[2] in "aAiI"
        beside = [] if first else [chr(ord(mark[2]) - 1), chr(ord(mark[2]) + 1)]
    numbers = "|".join(map(re.escape, beside))
    listed = rf"^[ \t\f]*\(?(?:{numbers}){re.escape(mark[3])}\s"
    return bool(beside) and re.search(listed, around, re.MULTILINE) is None


def _column(text: str, at: int) -> int:
    return at - text.rfind("\n", 0, at) - 1


def _is_stop_end(text: str, start: int, found: re.Match[str], small: bool) -> bool:
    """Whether a stop ends a sentence; in a text that writes `small` any word may follow it."""
    at = found.end()
    if at < len(text) and not text[at].isspace():
        return False
    following = _NEXT_WORD.match(text, at)
    word = following[1] if following else ""
    if word[:1].islower() and not small:
        return False
    stop = found.start()
    if _continues(text[stop], text[at : at + 2].lstrip()):
        return False
    if text[stop] != "." or text[stop + 1 : stop + 2] in {".", "!", "?"}:
        return True
    if stop - start < 10 and _LIST_MARKER.fullmatch(text, start, stop):
        return False  # "1." and "(a" at the start number the item that follows
    before = text[max(start, stop - 24) : stop]
    if "\n" in text[at : at + 2] and _is_letter_of_thing(before):
        return True
    if small and word[:1].islower() and _is_shortened(before):
        return False
    return _is_dot_end(before, word)


def _is_shortened(before: str) -> bool:
    """Whether the last word is an abbreviation and no unit: "e.g", "pkg", not "5 kg"."""
    last = _BEFORE_LAST_WORD.match(before)
    token = before[last.end() :] if last else before
    if token in _ABBREVIATIONS_BEFORE_NAME:
        return not before[: -len(token)].rstrip()[-1:].isdigit()
    bare = len(token) > 1 and token.isalpha() and token.isascii() and not set(token) & set("aeiouy")
    return bare and not before[: -len(token)].rstrip()[-1:].isdigit()


def _is_letter_of_thing(before: str) -> bool:
    """Whether a capital at a line end names a thing ("building C"), and is no initial of a name.

    An initial stands behind another one, a name, or a word that a name follows: "by J".
    """
    words = before.split()
    if len(words) < 2 or len(words[-1]) != 1 or not words[-1].isupper():
        return False
    return words[-2].isalpha() and words[-2].islower() and words[-2] not in _BEFORE_NAMES


def _continues(stop: str, following: str) -> bool:
    """Whether the mark belongs to a name or a date: `Help! (1965)`, `1176? – 1216`."""
    return following[:1] in {"–", "—"} or (stop in "!?" and following[:1] == "(")


def _is_dot_end(before: str, word: str) -> bool:
    last = _BEFORE_LAST_WORD.match(before)
    token = before[last.end() :] if last else before
    key, following = token.casefold(), word.casefold()
    if _is_abbreviation(token):
        return not word or following in _SENTENCE_STARTERS
    if key in _ABBREVIATIONS_BEFORE_NAME:  # unless it is a unit: "after 1500 ms."
        return token.islower() and before[: -len(token)].rstrip()[-1:].isdigit()
    if key in _ABBREVIATIONS_BEFORE_NUMBER:
        return not word[:1].isdigit()
    if key.isdigit() and len(key) < 3:
        return following not in _GERMAN_MONTHS
    return key not in _AMBIGUOUS_ABBREVIATIONS or not word or following in _SENTENCE_STARTERS


def _is_abbreviation(token: str) -> bool:
    """Whether a token is an initial or contains stops itself: `J`, `U.S`, `Ph.D`."""
    # Caseless letters are whole words in many scripts, so only capitals count as initials.
    if len(token) == 1:
        return token.isupper()
    head, dot, tail = token.rpartition(".")
    short = all(len(part) <= _MAX_SHORTENED for part in head.split("."))  # "main.cf" is a file
    return bool(dot) and 0 < len(tail) < 3 and tail.isalpha() and short
