"""Expands what a manual page defines itself: macros, strings and conditions of roff."""

import operator
import re
from collections.abc import Callable, Iterator

_REQUEST = re.compile(r"[.']\s*([^\s\\]+)[ \t]*(.*)", re.DOTALL)
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:\\.|\S)+)')
_PARAMETER = re.compile(r"\\\$(?:(\d)|\((\d\d)|\[(\d{1,3})\]|([*@]))")
_STRING = re.compile(r"\\\*(?:\[([^\]\n]*)\]|\((..)|(.))")
_REGISTER = re.compile(r"\\n[-+]?(?:\[([^\]\n]*)\]|\((..)|(.))")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_COMPARED = re.compile(r"(-?\d+)[a-z]?(?:(<=|>=|==|=|<|>)(-?\d+)[a-z]?)?")
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "==": operator.eq,
}
_MAX_DEPTH = 8  # macros that call macros
_MAX_LINES = 100_000  # … and the lines that they may make in one page
_MAX_LINE = 20_000  # characters of an expanded line


def split_arguments(rest: str) -> list[str]:
    """Split a request's arguments, which may be quoted."""
    rest = rest.split('\\"')[0]
    return [
        quoted.replace('""', '"') if not plain else plain
        for quoted, plain in _ARGUMENT.findall(rest)
    ]


def split_request(line: str) -> tuple[str, str]:
    """The name of a request and the rest of its line; an empty name for lines of text."""
    found = _REQUEST.fullmatch(line)
    return (found[1], found[2]) if found else ("", "")


class RoffMacros:
    """Keeps the definitions of a page and gives the lines that they stand for."""

    def __init__(self, known: frozenset[str]) -> None:
        self._known = known  # macros that the reader interprets itself
        self._bodies: dict[str, list[str]] = {}
        self._strings: dict[str, str] = {}
        self._registers = {".g": 1}
        self._defining: list[str] | None = None
        self._definition_ends = ""
        self._skipped = 0  # open brackets of a block whose condition is false
        self._else = [False]  # whether the branch after the last `ie` holds
        self._next_holds: bool | None = None  # what a condition alone on its line is for the next
        self._left = _MAX_LINES

    def expand(self, line: str, depth: int = 0) -> Iterator[str]:
        """The lines that stand for a line of the page: none for definitions."""
        if self._defining is not None:
            self._add_to_definition(line)
            return
        if self._skipped:
            self._skipped = max(0, self._skipped + line.count("\\{") - line.count("\\}"))
            return
        if self._next_holds is not None:  # this line is the branch of the condition before
            holds, self._next_holds = self._next_holds, None
            if not holds:
                self._skipped = max(0, line.count("\\{") - line.count("\\}"))
                return
        name, rest = split_request(line)
        if name in {"de", "de1", "am", "am1", "ig"}:
            self._begin_definition(name, rest.split('\\"')[0].split())
        elif name in {"ds", "ds1", "as", "nr", "als", "rm"}:
            self._define(name, rest)
        elif name in {"if", "ie", "el", "while"}:
            yield from self._choose(name, rest, depth)
        elif name in self._bodies and depth < _MAX_DEPTH:
            yield from self._call(self._bodies[name], split_arguments(self._fill(rest)), depth)
        else:
            yield self._fill(line)

    # -- definitions

    def _begin_definition(self, name: str, words: list[str]) -> None:
        if name == "ig":
            self._defining, self._definition_ends = [], words[0] if words else "."
        elif words:
            self._definition_ends = words[1] if len(words) > 1 else "."
            body = self._bodies.get(words[0], []) if name.startswith("am") else []
            self._defining = list(body)
            if words[0] not in self._known and (body or not name.startswith("am")):
                self._bodies[words[0]] = self._defining

    def _add_to_definition(self, line: str) -> None:
        """Add a line to the body; the end may be indented: `.  .`."""
        assert self._defining is not None
        if line[:1] in {".", "'"} and line[1:].split()[:1] == [self._definition_ends]:
            self._defining = None
        else:
            self._defining.append(line.replace("\\\\", "\\"))

    def _define(self, name: str, rest: str) -> None:
        """Define a string or a number, or give a macro a second name."""
        key, _, value = rest.split('\\"')[0].partition(" ")
        words = value.split()
        if name == "rm":
            self._bodies.pop(key, None)
        elif name == "als":
            if words and words[0] in self._bodies and key not in self._known:
                self._bodies[key] = self._bodies[words[0]]
        elif name == "nr":
            number = _NUMBER.match(self._fill_numbers(words[0]).lstrip("+")) if words else None
            self._registers[key] = int(float(number[0])) if number else 0
        else:
            before = self._strings.get(key, "") if name == "as" else ""
            text = self._fill(value.strip().removeprefix('"'))
            self._strings[key] = (before + text)[:_MAX_LINE]

    # -- conditions

    def _choose(self, name: str, rest: str, depth: int) -> Iterator[str]:
        """Give the line, or begin the block, whose condition holds; no loops."""
        if name == "el":
            holds = self._else.pop() if len(self._else) > 1 else self._else[0]
        else:
            holds, rest = self._test(self._fill(rest))
            if name == "ie":
                self._else.append(not holds)
        rest = rest.lstrip()
        if not rest.strip() and name != "while":
            self._next_holds = holds
            return
        if not holds or name == "while":
            self._skipped = max(0, rest.count("\\{") - rest.count("\\}"))
            return
        rest = rest.removeprefix("\\{").lstrip()
        if rest.rstrip("\\ "):
            yield from self.expand(rest, depth)

    def _test(self, rest: str) -> tuple[bool, str]:
        """Whether a condition holds, and what follows it; a page is read as on a terminal."""
        negated = rest.startswith("!")
        rest = rest[negated:].lstrip()
        sign = rest[:1]
        if sign and not (sign.isalnum() or sign in "\\(-+"):  # 'one'other'
            one, _, behind = rest[1:].partition(sign)
            other, _, after = behind.partition(sign)
            return (one == other) != negated, after
        words = rest.split(maxsplit=1)
        condition, after = (words + ["", ""])[:2]
        if sign in {"d", "r", "c", "F", "S", "m"} and len(condition) == 1:  # what is defined
            words = after.split(maxsplit=1)
            condition, after = (words + ["", ""])[:2]
            return (condition in self._bodies or condition in self._strings) != negated, after
        if sign in {"n", "t", "o", "e", "v"}:
            return (sign in "no") != negated, rest[1:]
        condition, bracket, more = condition.partition("\\{")
        return self._compare(self._fill_numbers(condition)) != negated, bracket + more + " " + after

    def _compare(self, condition: str) -> bool:
        """Whether a comparison of numbers holds; one that is not understood does."""
        condition = condition.replace("(", "").replace(")", "")
        if ":" in condition:
            return any(self._compare(part) for part in condition.split(":"))
        if "&" in condition:
            return all(self._compare(part) for part in condition.split("&"))
        found = _COMPARED.fullmatch(condition)
        if not found:
            return True
        left = int(found[1])
        return _COMPARE[found[2]](left, int(found[3])) if found[2] else left > 0

    # -- use

    def _call(self, body: list[str], words: list[str], depth: int) -> Iterator[str]:
        """The lines of a macro with its arguments put in."""

        def fill(found: re.Match[str]) -> str:
            if found[4]:
                return " ".join(words)
            number = int(found[1] or found[2] or found[3])
            return words[number - 1] if 0 < number <= len(words) else ""

        count = self._registers.get(".$", 0)
        for line in list(body):
            self._left -= 1
            if self._left < 0:
                return
            self._registers[".$"] = len(words)
            yield from self.expand(_PARAMETER.sub(fill, line)[:_MAX_LINE], depth + 1)
        self._registers[".$"] = count

    def _fill(self, line: str) -> str:
        """Put the page's own strings in."""
        if "\\*" not in line or not self._strings:
            return line

        def fill(found: re.Match[str]) -> str:
            return self._strings.get(found[1] or found[2] or found[3] or "", found[0])

        return _STRING.sub(fill, line)[: max(_MAX_LINE, len(line))]

    def _fill_numbers(self, text: str) -> str:
        return _REGISTER.sub(
            lambda found: str(self._registers.get(found[1] or found[2] or found[3] or "", 0)), text
        )
