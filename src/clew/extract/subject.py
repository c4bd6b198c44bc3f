"""What a document is about: its title, the phrase its first sentence defines, its other names."""

import re

from clew.extract.spans import NameSpan
from clew.extract.wordlists import COMMON, NOT_A_SUBJECT, OPENERS
from clew.names import Tokens, name_key, plain_title

# How surely each kind of hint names the subject.
TITLE_IS, PLAIN_TITLE, HEAD_PHRASE, FIRST_NAME, OTHER_NAME = 1.0, 0.95, 0.9, 0.85, 0.8
BEFORE_COMMA, BEFORE_COLON, OFTEN_NAMED = 0.6, 0.5, 0.6

_COPULA = re.compile(
    r"\s*(?:[(（,，:;–—]|\b(?:is|was|are|were|has|had|refers|means|became|may|can|est|était|sont|"
    r"ist|war|sind|es|era|fue|son|è|fu|foi|é|är|var|er|to|jest|был|была|это|olan)\b|是|は|が)"
)
_ALIAS = re.compile(
    r"\b(?:also known as|better known as|best known as|known as|also called|also spelled|"
    r"also written|stage name|formerly|born|née|a\.k\.a\.?|aka|abbreviated(?: as| to)?|or simply|"
    r"nicknamed|pen name|pseudonym)\s*:?\s*(?:the\s+)?",
    re.IGNORECASE,
)
_OPENING_QUOTE = re.compile(r"[\"“«„《「『]\s*([^\"“”»«„《》「」『』\n]{1,80}?)\s*[\"”»》」』]")


def title_names(title: str) -> dict[str, float]:
    """The names a title gives, each with how surely it is the subject's."""
    if not title.strip():
        return {}
    plain = plain_title(title)
    found = {title.strip(): TITLE_IS}
    for name, weight in (
        (plain, PLAIN_TITLE),
        (plain.split(",")[0], BEFORE_COMMA),
        (plain.split(":")[0], BEFORE_COLON),
    ):
        if _is_name(name):
            found.setdefault(name.strip(), weight)
    return found


def defined_names(
    text: str, t: Tokens, first_sentence: tuple[int, int], spans: list[NameSpan], titled: bool
) -> dict[str, float]:
    """The names that the first sentence gives to what it defines."""
    found: dict[str, float] = {}
    if not len(t):
        return found
    begin, end = first_sentence
    quote = _OPENING_QUOTE.match(text, begin)
    if quote:
        found[quote[1]] = HEAD_PHRASE
    else:
        found |= _head_phrase(text, t, first_sentence, titled)
    if spans and spans[0].first <= 1:
        span = spans[0]
        found.setdefault(text[t.starts[span.first] : t.ends[span.last - 1]], FIRST_NAME)
    for match in _ALIAS.finditer(text, begin, end):
        for span in spans:
            if 0 <= t.starts[span.first] - match.end() <= 2:
                name = text[t.starts[span.first] : t.ends[span.last - 1]]
                found.setdefault(name, OTHER_NAME)
                break
    return {name: weight for name, weight in found.items() if _is_name(name)}


def _head_phrase(
    text: str, t: Tokens, first_sentence: tuple[int, int], titled: bool
) -> dict[str, float]:
    """All before the first copula, bracket or comma, when it looks like a name."""
    begin, end = first_sentence
    match = _COPULA.search(text, begin + 1, min(end, begin + 120))
    if match is None:
        return {}
    last = sum(1 for start in t.starts[:12] if start < match.start())
    opens = t.upper[0] or t.digit[0] or t.solo[0]
    if not 0 < last <= 10 or not opens or (t.keys[0] in NOT_A_SUBJECT and not titled):
        return {}
    named = any(t.upper[i] and t.keys[i] not in OPENERS for i in range(last))
    if not (named or t.digit[0] or t.solo[0]):
        return {}
    return {text[t.starts[0] : t.ends[last - 1]]: HEAD_PHRASE}


def _is_name(name: str) -> bool:
    keys = name_key(name).split()
    return bool(keys) and not all(key in COMMON or key.isdigit() for key in keys)
