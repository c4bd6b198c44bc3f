"""Detect the language of a text by its script; cheap enough for every chunk."""

import re

HAN = "\u3400-\u4dbf\u4e00-\u9fff"
"""The common Han characters, as a range for a character class."""
_SAMPLE_CHARS = 4000
_WORD = re.compile(r"[^\W\d_]+")
_ANY_HAN = re.compile(f"[{HAN}\uf900-\ufaff\U00020000-\U0003fffd]")
_KANA = re.compile("[\u3041-\u30ff]")
_UNSPACED_RUN = re.compile(f"[\u3041-\u30ff{HAN}\uf900-\ufaff\U00020000-\U0003fffd]+")
_MIN_SHARE = 0.4
_MAX_FOREIGN = 0.05


def prompt_language(text: str) -> str:
    """The language to prompt in: `zh` for text mostly in Han characters, else `en`."""
    sample = text[:_SAMPLE_CHARS]
    if sample.isascii():
        return "en"
    own = len(_ANY_HAN.findall(sample))
    # A Han character counts like a word of another script, as Latin terms are long.
    rest = len(_WORD.findall(_UNSPACED_RUN.sub(" ", sample)))
    kana = len(_KANA.findall(sample))
    return "zh" if own and own >= _MIN_SHARE * (own + rest) and kana <= _MAX_FOREIGN * own else "en"


def is_unspaced(question: str) -> bool:
    """Whether a question has words that no spaces part: Chinese or Japanese."""
    return bool(_UNSPACED_RUN.search(question))
