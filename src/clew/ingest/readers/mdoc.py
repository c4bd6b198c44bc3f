"""Writes lines of mdoc macros, in which many manual pages are written, as text."""

import re

_PUNCTUATION = frozenset(".,:;()[]?!|")
# Names of systems, which have a macro each; a version may follow.
_SYSTEMS = {
    "Ux": "UNIX",
    "At": "AT&T UNIX",
    "Bx": "BSD",
    "Bsx": "BSD/OS",
    "Fx": "FreeBSD",
    "Nx": "NetBSD",
    "Ox": "OpenBSD",
    "Dx": "DragonFly",
}
# Macros that enclose the rest of their line, and those that open or close a pair.
_QUOTES = {
    "Dq": "“”",
    "Qq": '""',
    "Sq": "‘’",
    "Ql": "‘’",
    "Pq": "()",
    "Op": "[]",
    "Aq": "<>",
    "Bq": "[]",
    "Brq": "{}",
}
_OPENERS = {
    **{"Oo": "[", "Bo": "[", "Po": "(", "Bro": "{", "Do": "“", "So": "‘", "Ao": "<", "Qo": '"'}
}
_CLOSERS = {
    **{"Oc": "]", "Bc": "]", "Pc": ")", "Brc": "}", "Dc": "”", "Sc": "’", "Ac": ">", "Qc": '"'}
}
_PLAIN = frozenset(
    "Fl Ar Nm Nd Xr Pa Li Em Sy Cm Ev Va Vt Fa Fn Ft Ic Tn Er Dv Ad An Cd Ns No Ta Lk Mt Ms Eo Ec "
    "St Xo Xc Fo Fc Fd In Lb Ap Pf Ex Rv Ud Bt Hf".split()
)
MDOC_INLINE = _PLAIN | _SYSTEMS.keys() | _QUOTES.keys() | _OPENERS.keys() | _CLOSERS.keys()
"""Macros within a line of text."""
MDOC_LINES = frozenset({"Dl", "D1"})
"""Macros whose text is a line of its own."""
_GLUE = "\x00"  # no space here
LITERAL = "\x01"
"""Before a word that is no punctuation, whatever its signs are: `\\&.`"""
_SPACES = re.compile(r" (?=[.,:;)\]}”’?!>])|(?<=[(\[{“‘]) ")
_STATUS = "exits 0 on success, and >0 if an error occurs."
_RETURN = "returns 0 if successful; otherwise -1 is returned and errno is set."


def write_mdoc(words: list[str], name: str) -> str:
    """Write a line of macros: `Fl o Ar file` is `-o file`; `name` is that of the page."""
    return join_mdoc(_write(words, name.partition("(")[0]))


def join_mdoc(text: str) -> str:
    """Leave out the spaces before closing and after opening signs."""
    text = re.sub(f" *{_GLUE} *", "", text)
    return _SPACES.sub("", " ".join(text.split())).replace(LITERAL, "")


def _write(words: list[str], name: str) -> str:
    """Write macros and words from the left; the words up to the next macro belong to one."""
    found: list[str] = []
    closing: list[str] = []
    at = 0
    while at < len(words):
        macro = words[at]
        end = at + 1
        if macro not in MDOC_INLINE:
            found.append(macro)
        elif macro in _QUOTES:
            found.append(_QUOTES[macro][0] + _GLUE)
            closing.append(_GLUE + _QUOTES[macro][1])
        else:
            while end < len(words) and words[end] not in MDOC_INLINE:
                end += 1
            found.append(_write_macro(macro, words[at + 1 : end], name))
        at = end
    ends: list[str] = []  # punctuation at the end stands behind the quotes
    while closing and found and found[-1] in _PUNCTUATION:
        ends.insert(0, found.pop())
    return " ".join([*found, *reversed(closing), *ends])


def _write_macro(macro: str, own: list[str], name: str) -> str:
    text = " ".join(own)
    if macro in _OPENERS:
        return f"{_OPENERS[macro]}{_GLUE}{text}"
    if macro in _CLOSERS:
        return f"{_GLUE}{_CLOSERS[macro]} {text}"
    if macro in _SYSTEMS:
        return f"{_SYSTEMS[macro]} {text}"
    if macro == "Fl":
        flags = [word if word in _PUNCTUATION else f"-{word}" for word in own]
        return " ".join(flags) or f"-{_GLUE}"
    if macro in {"Ns", "Ap", "Pf"}:
        mark = "'" if macro == "Ap" else ""
        return f"{_GLUE}{mark}{_GLUE}{text}" if macro != "Pf" else f"{text}{_GLUE}"
    if macro in {"Ex", "Rv"}:
        return f"{name} {_STATUS if macro == 'Ex' else _RETURN}"
    return _write_words(macro, own, name)


def _write_words(macro: str, own: list[str], name: str) -> str:
    """Write a macro that dresses its words, or stands for some where it has none."""
    text = " ".join(own)
    has_words = bool(own) and own[0] not in _PUNCTUATION
    if macro == "Xr" and len(own) > 1:
        return f"{own[0]}({own[1]}){' '.join(own[2:])}"
    if macro == "In" and has_words:
        return f"#include <{own[0]}> {' '.join(own[1:])}"
    if macro == "Fn" and has_words:
        return f"{own[0]}({', '.join(word for word in own[1:] if word not in _PUNCTUATION)})" + (
            own[-1] if own[-1] in _PUNCTUATION else ""
        )
    if macro == "St" and has_words:
        return f"{own[0].removeprefix('-').replace('p100', 'POSIX 100')} {' '.join(own[1:])}"
    if not has_words and macro in {"Nm", "Ar"}:
        return f"{name if macro == 'Nm' else 'file ...'} {text}"
    return f"– {text}" if macro == "Nd" else text
