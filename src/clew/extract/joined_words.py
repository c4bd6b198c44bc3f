"""Which words joined by hyphens are names: `update-mime-database`, but not `case-sensitive`.

Both look alike. A document tells a name apart where it writes it small at the beginning of a
sentence, runs it in code, has it as a heading or a term, marks it as code, explains it as a manual
page does, or gives it the number of one.
"""

import re
from collections.abc import Iterator

from clew.text.sentences import sentence_spans
from clew.text.structure import Block, find_blocks

_JOINED = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*-[a-z][a-z0-9]*"
_WORD = re.compile(rf"(?<![\w/.=@:-]){_JOINED}(?![\w=-])")
_OPENS = re.compile(rf"({_JOINED})(?![\w=-])")
# Behind a prompt or at the beginning of a line of code; `name(1)`; `name`; /usr/bin/name
_RUN = re.compile(rf"^[ \t]*(?:[\w@:~.-]*[$#%][ \t]+)?({_JOINED})(?![\w=-])", re.MULTILINE)
_SHOWN = re.compile(
    rf"(?<![\w-])(?:({_JOINED})\([1-9][a-z]{{0,4}}\)|`({_JOINED})`|/s?bin/({_JOINED})(?![\w-]))"
)
_EXPLAINED = re.compile(rf"^({_JOINED})[ \t]+(?:-{{1,2}}|[–—])[ \t]+\S", re.MULTILINE)
_SENTENCE_END = (".", "!", "?", ".)", ".]", "].")
_MOST = 200


def find_joined_names(text: str) -> frozenset[str]:
    """Return the words with hyphens that the document shows to be names."""
    if "-" not in text or _WORD.search(text) is None:
        return frozenset()
    found = {next(filter(None, one)) for one in _SHOWN.findall(text)}
    found.update(_EXPLAINED.findall(text))
    for block in find_blocks(text):
        found.update(_find_in_block(text, block))
    return frozenset(sorted(found)[:_MOST])


def _find_in_block(text: str, block: Block) -> Iterator[str]:
    piece = text[block.start : block.end]
    if block.kind == "code":
        yield from _RUN.findall(piece)
    elif block.kind in ("heading", "definition"):
        term = _OPENS.fullmatch(block.title.split(",")[0].strip("`* "))
        yield from (term[1],) if term else ()
    elif block.kind == "paragraph":
        yield from _find_openers(piece)


def _find_openers(piece: str) -> Iterator[str]:
    """Yield the words that begin a sentence small, behind one that ended."""
    for start, _ in sentence_spans(piece):
        opened = _OPENS.match(piece, start)
        if opened and (not start or piece[:start].rstrip().endswith(_SENTENCE_END)):
            yield opened[1]
