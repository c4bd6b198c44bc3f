"""Multiple-choice questions as text: options on lines of their own, and the letters of a choice."""

import re
from collections.abc import Mapping

from clew.text.names import name_key

_OPTION_LINE = re.compile(r"\s*([A-Z])[.)、:．：]\s*(\S.*?)\s*")
_MIN_OPTIONS = 2
_LETTERS = r"[A-Z](?:(?:\s*(?:[,，、;；/&+]|and|和|及|与)?\s*)[A-Z])*"
_STATED_CHOICE = re.compile(
    r"\W*(?:(?i:(?:so |therefore,? )?(?:the )?(?:correct |right )?(?:answers?|options?|choices?)"
    rf"(?: is| are)?)|(?:正确)?(?:答案|选项)(?:是|为)?|应?选)?\W*({_LETTERS})\W*"
)
_LETTER_AND_TEXT = re.compile(r"\W*([A-Z])[.)、:．：]\s*(\S.*)", re.DOTALL)


def format_options(question: str, options: Mapping[str, str]) -> str:
    """Return the question followed by its options, one per line."""
    return "\n".join([question, *(f"{letter}. {text}" for letter, text in options.items())])


def split_options(question: str) -> tuple[str, dict[str, str]]:
    """Split a question into what it asks and the options on its last lines, if it has any."""
    lines = question.rstrip().splitlines()
    options: dict[str, str] = {}
    while lines and (found := _OPTION_LINE.fullmatch(lines[-1])):
        options = {found[1]: found[2]} | options
        lines.pop()
    if len(options) < _MIN_OPTIONS or not lines:
        return question, {}
    return "\n".join(lines), options


def spell_out_choice(question: str, text: str) -> list[str]:
    """Return the texts of the options that a text chooses by letter; none if it is no choice.

    "B", "The answer is B." and "A, C" are choices; so is "B. Oslo" where B is Oslo.
    """
    options = split_options(question)[1]
    if not options:
        return []
    if found := _STATED_CHOICE.fullmatch(text):
        letters = dict.fromkeys(re.findall(r"[A-Z]", found[1]))
        return [options[letter] for letter in letters] if letters.keys() <= options.keys() else []
    named = _LETTER_AND_TEXT.fullmatch(text)
    if named and named[1] in options and name_key(named[2]) == name_key(options[named[1]]):
        return [options[named[1]]]
    return []


def match_option(question: str, answer: str) -> str:
    """Return the answer if it is one of the question's options, or if there are none; else ""."""
    options = split_options(question)[1]
    fits = not options or name_key(answer) in map(name_key, options.values())
    return answer if fits else ""
