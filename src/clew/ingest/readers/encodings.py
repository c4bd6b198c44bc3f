"""Detects encodings of other scripts than Latin by how often their characters occur in prose.

A wrong encoding still decodes, but to characters that no text has so often: rare ideographs, or
capitals inside words. Where nothing is certain, nothing is detected.
"""

import re
from collections.abc import Callable

_SAMPLE = 65_536
_LEAST_LETTERS = 40  # of the script, for a certain verdict
_WIDE_SHARE = 0.4  # of the bytes at one parity that are zero: Latin text in UTF-16
_COMMON_CYRILLIC = frozenset("оеаинтсрвл")
_LEAST_COMMON, _LEAST_SMALL = 0.45, 0.7
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_CAPITAL_INSIDE = re.compile("[\u0430-\u045f][\u0400-\u042f]")
_MOST_INSIDE = 0.005
_HAN = re.compile("[\u3400-\u9fff]")
_KANA = re.compile("[\u3041-\u30ff]")
_HIRAGANA = re.compile("[\u3041-\u309f]")
_STOPS = re.compile("[。，、]")
_LEAST_COMMON_HAN = 0.95  # of the ideographs: in the first part of a standard, of common ones
_LEAST_KANA, _LEAST_STOPS = 0.3, 0.01


def detect_encoding(raw: bytes) -> str:
    """Return the encoding of a text that is not UTF-8 nor Western; "" where none is certain."""
    sample = raw[:_SAMPLE]
    if wide := detect_wide(sample):
        return wide
    if len(raw) > _SAMPLE:
        sample = sample[: sample.rfind(b"\n") + 1]  # no character is cut there
    for codec, fits in _CANDIDATES:
        try:
            text = sample.decode(codec)
        except UnicodeDecodeError:
            continue
        if fits(text):
            return codec
    return ""


def detect_wide(raw: bytes) -> str:
    """Return UTF-16 without a mark: every other byte of Latin text is zero."""
    even, odd = raw[0:_SAMPLE:2], raw[1:_SAMPLE:2]
    if len(odd) < _LEAST_LETTERS or len(raw) % 2:
        return ""
    first, second = even.count(0) / len(even), odd.count(0) / len(odd)
    if second > _WIDE_SHARE and not first:
        return "utf-16-le"
    return "utf-16-be" if first > _WIDE_SHARE and not second else ""


def _is_cyrillic(text: str) -> bool:
    letters = _CYRILLIC.findall(text)
    if len(letters) < _LEAST_LETTERS or _has_controls(text):
        return False
    if len(_CAPITAL_INSIDE.findall(text)) > _MOST_INSIDE * len(letters):
        return False  # Mac OS has some small letters where others have capitals
    common = sum(one.lower() in _COMMON_CYRILLIC for one in letters)
    small = sum(map(str.islower, letters))
    return common >= _LEAST_COMMON * len(letters) and small >= _LEAST_SMALL * len(letters)


def _is_japanese(text: str) -> bool:
    kana, han = len(_KANA.findall(text)), _HAN.findall(text)
    both = kana + len(han)
    enough = both >= _LEAST_LETTERS and kana >= _LEAST_KANA * both and _HIRAGANA.search(text)
    return bool(enough) and _are_common("".join(han), "euc_jp", 0xCF)


def _is_chinese(text: str) -> bool:
    han = _HAN.findall(text)
    if len(han) < _LEAST_LETTERS or len(_STOPS.findall(text)) < _LEAST_STOPS * len(han):
        return False
    return not _KANA.search(text) and _are_common("".join(han), "gb2312", 0xD7)


def _are_common(ideographs: str, standard: str, last: int) -> bool:
    """Whether nearly all ideographs are of the first part of a standard, from 0xB0 to `last`."""
    leads = ideographs.encode(standard, "ignore")[::2]
    return sum(0xB0 <= lead <= last for lead in leads) >= _LEAST_COMMON_HAN * len(ideographs)


def _has_controls(text: str) -> bool:
    return any("\x80" <= char <= "\x9f" for char in text)


# Japanese first: EUC-JP decodes as GB18030 as well.
_CANDIDATES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("shift_jis", _is_japanese),
    ("euc_jp", _is_japanese),
    ("gb18030", _is_chinese),
    ("cp1251", _is_cyrillic),
    ("koi8_r", _is_cyrillic),
)
