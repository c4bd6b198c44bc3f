"""What is no whole term in a script without spaces: 问题可 is 问题 and a loose character.

A character is loose where it stands beside many terms that are far more frequent without it. Lines
that are full end within terms, too.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from clew.text.unicode import UNSPACED_CHAR

Parts = Mapping[str, tuple[int, int]]
"""Of fragments, as keys: the first and the last character (exclusive) of what is whole."""
_MOST, _LEAST = 5, 2  # characters of a fragment, and of what is whole in it
_OFTENER = 3  # times as often without the character
_LEAST_HOSTS = 2  # different terms that a loose character stands beside
_FULL_LINE = 24  # characters
_SPACES = " \t\u3000\xa0"


def find_fragments(terms: Mapping[str, int], candidates: Collection[str]) -> Parts:
    """Return those of a document's terms that have a loose character, and what is whole in them."""
    counts = _count_parts(terms)
    loose: dict[str, tuple[str, tuple[int, int]]] = {}
    hosts: defaultdict[str, set[str]] = defaultdict(set)
    for term in {*terms, *candidates}:
        chars = term.split()
        if not _LEAST < len(chars) <= _MOST or not UNSPACED_CHAR.match(term):
            continue
        for at, own in ((len(chars) - 1, (0, len(chars) - 1)), (0, (1, len(chars)))):
            host = " ".join(chars[slice(*own)])
            if counts[host] >= _OFTENER * max(counts[term], 1):
                sign = f"{chars[at]}{'<' if at else '>'}"  # loose behind, or before
                hosts[sign].add(host)
                loose.setdefault(term, (sign, own))
    return {term: own for term, (sign, own) in loose.items() if len(hosts[sign]) >= _LEAST_HOSTS}


def _count_parts(terms: Mapping[str, int]) -> Counter[str]:
    """Count what is in the runs of characters, up to some length."""
    counts: Counter[str] = Counter()
    for run, many in terms.items():
        chars = run.split() if UNSPACED_CHAR.match(run) else []
        for size in range(_LEAST, _MOST + 1):
            for at in range(len(chars) - size + 1):
                counts[" ".join(chars[at : at + size])] += many
    return counts


def is_wrapped(line: str, following: str) -> bool:
    """Whether a full line ends without a mark, and the next one goes on with such a character."""
    before, behind = line.rstrip(_SPACES), following.lstrip(_SPACES)
    full = len(before) > _FULL_LINE and UNSPACED_CHAR.match(before[-1])
    return bool(full and UNSPACED_CHAR.match(behind))


def touches_wrap(text: str, start: int, end: int) -> bool:
    """Whether a full line ends right at a span, so that it may be a part of a word."""
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    line = text[first : last if last >= 0 else len(text)]
    before = text[text.rfind("\n", 0, max(first - 1, 0)) + 1 : max(first - 1, 0)]
    behind = text[last + 1 : text.find("\n", last + 1) % (len(text) + 1)] if last >= 0 else ""
    if not line[end - first :].strip(_SPACES) and is_wrapped(line, behind):
        return True
    return not line[: start - first].strip(_SPACES) and is_wrapped(before, line)
