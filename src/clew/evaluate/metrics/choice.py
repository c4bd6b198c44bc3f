"""Metrics that parse the answer first: multiple choice and anonymity reversion."""

import re
from collections.abc import Mapping, Sequence

from clew.evaluate.metrics.answers import overlap_f1, sub_exact_match
from clew.evaluate.metrics.normal import answer_tokens, is_same_answer

_LETTER = r"[A-Z]"
_JOIN = r"(?:\s*(?:[,，、;；/&+]|and|和|及|与)?\s*)"
_LETTER_RUN = rf"{_LETTER}(?:{_JOIN}{_LETTER})*(?![A-Za-z'’])"
_STATED_CHOICE = re.compile(
    r"(?i:answers?|options?|choices?|correct|答案|正确选项|选)\W*(?:is|are|为|是)?"
    rf"[\s:：*(（]*({_LETTER_RUN})"
)
_LEADING_CHOICE = re.compile(
    rf"^[\s*(（\[\"“]*({_LETTER_RUN})(?=\s*$|\s*\n|[.．。:：,，;；)）\]*、\"”])"
)
_SINGLE_LETTER = re.compile(r"^\W*([A-Za-z])\W*$")
_PLACEHOLDER = r"([A-Z][A-Z_]*)\s*[#＃]\s*(\d+)"
_REVERSION = re.compile(
    rf"\[?{_PLACEHOLDER}\]?\s*(?:[—–-]{{1,3}}>?|=>|[:：=→]|"
    r"(?:is|was|means|stands\s+for|refers\s+to|represents|denotes)\b|是|为|代表|指)\s*"
    r"([^\n\r;；|]+?)(?=[\s,，、]*\[?[A-Z][A-Z_]*\s*[#＃]\s*\d|[\n\r;；|]|$)"
)
_WHOLE_PLACEHOLDER = re.compile(rf"\[?{_PLACEHOLDER}\]?")
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_TEX_COMMAND = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s*\{([^{}]*)\}")
_MARKDOWN = re.compile(r"\*+|__+|`+|^[ \t]*(?:#{1,6}|>|[-+])[ \t]+", re.M)
_ESCAPED = re.compile(r"\\([#_\[\]*])")
_TRIM_CHARS = " \t.,;，。；*_`\"'“”‘’[]()"


def parse_choice(text: str, options: Mapping[str, str]) -> frozenset[str]:
    """Parse the letters of the options that a text chooses; empty if the choice is unclear."""
    boxed = _BOXED.findall(text)
    text = _strip_markup(boxed[-1] if boxed else text).strip()
    for letter, option in options.items():
        if is_same_answer(text, option):
            return frozenset(letter)
    alone = _SINGLE_LETTER.match(text)
    if alone and alone[1].upper() in options:
        return frozenset(alone[1].upper())
    # The last statement counts: a model reasons first and concludes after.
    runs = [match[1] for match in _STATED_CHOICE.finditer(text)][-1:]
    start = _LEADING_CHOICE.match(text)
    for run in [*runs, *([start[1]] if start else [])]:
        letters = frozenset(re.findall(_LETTER, run)) & options.keys()
        if letters:
            return letters
    named = [letter for letter, option in options.items() if sub_exact_match(text, [option])]
    return frozenset(named)


def parse_gold_letters(golds: Sequence[str], options: Mapping[str, str]) -> frozenset[str]:
    """Return the correct letters, whether the gold has letters, option texts or both."""
    return frozenset(letter for gold in golds for letter in parse_choice(gold, options))


def choice_accuracy(answer: str, golds: Sequence[str], options: Mapping[str, str]) -> float:
    """1 when exactly the correct options are chosen (SeedBench QA-1, AnonyRAG)."""
    right = parse_gold_letters(golds, options)
    return float(bool(right) and parse_choice(answer, options) == right)


def choice_f1(answer: str, golds: Sequence[str], options: Mapping[str, str]) -> float:
    """F1 of the chosen options, for questions with several correct ones (SeedBench QA-2)."""
    right = parse_gold_letters(golds, options)
    return overlap_f1(sorted(parse_choice(answer, options)), sorted(right)) if right else 0.0


def parse_reversion(text: str) -> dict[str, str]:
    """Parse placeholder → name from lines such as `PERSON#200——Queequeg`."""
    found: dict[str, str] = {}
    lines = [_parse_table_row(line) for line in _strip_markup(text).splitlines()]
    for kind, number, name in _REVERSION.findall("\n".join(lines)):
        found.setdefault(f"{kind}#{number}", name.strip(_TRIM_CHARS))
    return found


def _strip_markup(text: str) -> str:
    """Remove Markdown and TeX markup."""
    return _ESCAPED.sub(r"\1", _MARKDOWN.sub("", _TEX_COMMAND.sub(r"\1", text)))


def _parse_table_row(line: str) -> str:
    """Convert a table row to `PLACEHOLDER: name`; return any other line unchanged."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    for mark, name in zip(cells, cells[1:], strict=False):
        if _WHOLE_PLACEHOLDER.fullmatch(mark) and name and not _WHOLE_PLACEHOLDER.fullmatch(name):
            return f"{mark}: {name}"
    return line


def reversion_accuracy(answer: str, originals: Mapping[str, Sequence[str]]) -> float:
    """Share of the placeholders whose name is correct (AnonyRAG, per-entity accuracy)."""
    if not originals:
        return 0.0
    found = parse_reversion(answer)
    right = sum(
        1
        for mark, names in originals.items()
        if answer_tokens(found.get(mark, "")) and any(is_same_answer(found[mark], n) for n in names)
    )
    return right / len(originals)
