"""Detects the prompt language for a text by its script; cheap enough for every chunk."""

import re
from dataclasses import dataclass

_SAMPLE_CHARS = 4000
_WORD = re.compile(r"[^\W\d_]+")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]")
_KANA = re.compile("[\u3041-\u30ff]")
_UNSPACED_RUN = re.compile(
    "[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]+"
)


@dataclass(frozen=True)
class Script:
    """The characters that indicate a language, and those that exclude it."""

    language: str
    letters: re.Pattern[str]
    others: re.Pattern[str]


# The first match wins; English otherwise.
SCRIPTS = (Script("zh", _HAN, others=_KANA),)
_MIN_SHARE = 0.4
_MAX_FOREIGN = 0.05


def prompt_language(text: str) -> str:
    """The language to prompt in: `zh` for text mostly in Han characters, else `en`."""
    sample = text[:_SAMPLE_CHARS]
    if sample.isascii():
        return "en"
    for script in SCRIPTS:
        own = len(script.letters.findall(sample))
        # A Han character counts like a word of another script, as Latin terms are long.
        rest = len(_WORD.findall(_UNSPACED_RUN.sub(" ", sample)))
        foreign = len(script.others.findall(sample))
        if own and own >= _MIN_SHARE * (own + rest) and foreign <= _MAX_FOREIGN * own:
            return script.language
    return "en"
