"""What a document tells about its names: marks of code, definitions, and case inside sentences.

In a manual most sentences begin with a verb ("Specifies the …"), and names are written small. So a
capital at the beginning of a sentence, an item or a cell counts only if the word has one elsewhere,
and names come from their form, from what is marked as code, and from the terms that are defined.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from clew.text.code_names import (
    COMMAND,
    DEFINED,
    FLAG,
    IDENTIFIER,
    PATH,
    VARIABLE,
    CodeName,
    find_acronyms,
    find_code_names,
    find_marked,
    find_sure_names,
)
from clew.text.code_outline import CODE_FORMAT
from clew.text.name_spans import COMMON_WORDS, NAME, TERM, NameSpan, find_uncased_terms
from clew.text.names import Tokens, tokenize
from clew.text.sentences import sentence_spans
from clew.text.structure import Block, find_blocks
from clew.text.word_forms import function_words, text_language
from clew.types import Document

_WORD = re.compile(r"\w+")
_FENCED = re.compile(r"^[ \t]*```.*?^[ \t]*```", re.DOTALL | re.MULTILINE)
_MARKED_SHARE = 0.5  # of its occurrences that are marked: then a plain word is a name
_LEAST_TERM_CHARS = 2
_MAX_TERMS = 400
_FUNCTION_WORDS = 25
_MAX_TERM_WORDS, _MAX_TERM_CHARS = 6, 60
_TRAILING_BRACKETS = re.compile(r"\s*[(（\[][^()（）]*[)）\]]\s*$")
_NOT_A_TERM = (":", ".", ";", ",", "：", "。", "!", "?")
_RULES = "names 7"
_TECHNICAL_MARK = re.compile(
    r"^[ \t]*(?:```|~~~|:[ \t]{1,4}\S|\|[^\n]*\|[ \t]*$)|(?<!`)`[^`\n]{2,60}`(?!`)", re.MULTILINE
)
_TECHNICAL_TYPES = frozenset({FLAG, PATH, IDENTIFIER, COMMAND, VARIABLE})
_LEAST_CODE_NAMES = 3
# Names that other versions read otherwise: before a contraction, in Japanese, over indented lines.
_NEW_FORMS = re.compile(
    r"\b[^\W\d_a-z]\w*['’](?:t|ll|re|ve|d|m)\b|[\u3041-\u309f]|\w\n[ \t]+[^\W\d_a-z]"
)
_CONTRACTION = re.compile(r"['’](?:t|ll|re|ve|d|m)\b")
_IS_SUBJECT = re.compile(r"\s+(?:is|was|are|were|has|had|can|will|does|may|supports)\b")
# What is before the first word of an item, a cell, a definition or a quotation.
_OPENING = re.compile(r"(?:^[ \t]*(?:[-*+•|>#]+|:|\d{1,3}[.)])[ \t]+|\|[ \t]+|[(:][ \t]*)$")
_BEFORE_PLACES = frozenset("in aus nach".split())  # without an article
_MAX_MARK_CHARS = 12  # of the mark before an item
_NUMBERED = re.compile(r"[ \t]*\(?\d{1,3}[.)][ \t]+")
_DETERMINER = re.compile(
    r"\s+(?:the|an?|this|these|those|your|each|every|any|all|until|it|them)\s+[a-z]"
)
_NOUN_CAPITALS_SHARE = 0.22  # of the words inside sentences: then nouns are written so (German)


@dataclass(frozen=True, slots=True)
class DocumentNames:
    """What was learnt from a whole document."""

    technical: bool = False
    inside: frozenset[str] = frozenset()
    """Keys of words with a capital inside a sentence."""
    small: frozenset[str] = frozenset()
    """The most frequent words in lower case: articles and the like, in any language."""
    noun_capitals: bool = False
    repeated: frozenset[str] = frozenset()
    repeated_terms: frozenset[str] = frozenset()
    """Terms of scripts without case that occur more than once."""
    terms: re.Pattern[str] | None = None
    acronyms: tuple[tuple[str, str], ...] = ()
    language: str = ""


def learn_names(document: Document) -> DocumentNames:
    """Read a document once for what its names look like."""
    text = document.text
    acronyms = tuple(dict.fromkeys(find_acronyms(text)))
    if not is_technical(document):
        return _learn_prose(text, acronyms)
    inside, share, repeated = _capitals_inside(text)
    return DocumentNames(
        technical=True,
        inside=inside,
        small=_frequent_words(text),
        noun_capitals=share > _NOUN_CAPITALS_SHARE or text_language(text) == "de",
        repeated=repeated,
        repeated_terms=_repeated_terms(text),
        terms=_compile_terms(document),
        acronyms=acronyms,
        language=text_language(text),
    )


def _learn_prose(text: str, acronyms: tuple[tuple[str, str], ...]) -> DocumentNames:
    """Learn from prose: in languages other than English also which capitals are only openers."""
    language = text_language(text)
    inside, _, repeated = _capitals_inside(text)
    return DocumentNames(
        inside=inside,
        repeated=repeated,
        noun_capitals=language == "de",
        acronyms=acronyms,
        language=language,
    )


def is_technical(document: Document) -> bool:
    """Whether a document is written like a manual: it has code, definitions, tables or names of it.

    Encyclopaedia articles, stories and news are not, with or without headings.
    """
    if document.metadata.get("terms") or document.metadata.get("format") == CODE_FORMAT:
        return True
    if _TECHNICAL_MARK.search(document.text):
        return True
    names = (one for one in find_code_names(document.text) if one.type in _TECHNICAL_TYPES)
    return len(list(islice(names, _LEAST_CODE_NAMES))) == _LEAST_CODE_NAMES


def names_stamp(document: Document) -> tuple[str, ...]:
    """Return what the stamp of a document needs besides the extractor: the rules of its names."""
    new = is_technical(document) or _NEW_FORMS.search(document.text) is not None
    return (_RULES,) if new else ()


def _capitals_inside(text: str) -> tuple[frozenset[str], float, frozenset[str]]:
    """Return the words with a capital inside a sentence, their share, and those that recur."""
    capitals: Counter[str] = Counter()
    words = 0
    for block in find_blocks(text):
        if block.depth or block.kind in ("heading", "code", "header"):
            continue
        piece = text[block.start : block.end]
        t = tokenize(piece)
        starts = opening_tokens(piece, t, sentence_spans(piece))
        words += len(t)
        capitals.update(t.keys[at] for at in range(len(t)) if t.upper[at] and at not in starts)
    share = sum(capitals.values()) / words if words else 0.0
    return frozenset(capitals), share, frozenset(k for k, n in capitals.items() if n > 1)


def _frequent_words(text: str) -> frozenset[str]:
    words = Counter(match[0] for match in _WORD.finditer(text) if match[0].islower())
    return frozenset(word for word, _ in words.most_common(_FUNCTION_WORDS))


def is_all_capitals(text: str, t: Tokens, at: int) -> bool:
    """Whether a token is written in capitals only, as acronyms and constants are."""
    word = text[t.starts[at] : t.ends[at]]
    return len(word) > 1 and word.isupper()


def opening_tokens(text: str, t: Tokens, sentences: list[tuple[int, int]]) -> set[int]:
    """Return the tokens that begin a sentence, an item, a cell, a definition or a quotation."""
    found = {bisect_left(t.starts, start) for start, _ in sentences}
    for at in range(len(t)):
        start = t.starts[at]
        before = text[t.ends[at - 1] if at else 0 : start]
        line = text[text.rfind("\n", max(0, start - _MAX_MARK_CHARS), start) + 1 : start]
        numbered = len(line) <= _MAX_MARK_CHARS and _NUMBERED.fullmatch(line)
        if numbered or (
            len(before) > 1 and _OPENING.search(before[before.rfind("\n") + 1 :]) is not None
        ):
            found.add(at)
    return found


def _compile_terms(document: Document) -> re.Pattern[str] | None:
    """Return a pattern of what the document marks as code; plain words only if mostly marked."""
    marked = document.metadata.get("terms")
    if not isinstance(marked, dict):
        return None
    counts = Counter(_WORD.findall(_FENCED.sub("", document.text)))
    kept = []
    for term, number in list(marked.items())[:_MAX_TERMS]:
        if not isinstance(term, str) or len(term) < _LEAST_TERM_CHARS or len(term.split()) > 4:
            continue
        if term.isdigit() or term.casefold() in COMMON_WORDS or not any(map(str.isalpha, term)):
            continue
        plain = term.isalpha()
        if plain and isinstance(number, int) and number < _MARKED_SHARE * counts[term]:
            continue
        kept.append(re.escape(term))
    if not kept:
        return None
    kept.sort(key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(kept)})(?![\w-])")


@dataclass(frozen=True, slots=True)
class ChunkBlocks:
    """The definitions and the code of a chunk."""

    definitions: tuple[tuple[Block, str], ...] = ()
    code: tuple[Block, ...] = ()

    def subject_at(self, at: int) -> str:
        """Return the term whose definition holds a character, or ""."""
        held = [name for block, name in self.definitions if block.holds(at)]
        return held[-1] if held else ""

    def is_code(self, at: int) -> bool:
        """Whether a character is in a block of code."""
        return any(block.holds(at) for block in self.code)


def find_chunk_blocks(text: str, known: DocumentNames) -> ChunkBlocks:
    """Find the definitions and the code of a chunk of a structured document."""
    if not known.technical:
        return ChunkBlocks()
    blocks = find_blocks(text)
    named = [(b, term_name(b.title)) for b in blocks if b.kind == "definition"]
    return ChunkBlocks(
        tuple((block, name) for block, name in named if name),
        tuple(block for block in blocks if block.kind == "code"),
    )


def term_name(title: str) -> str:
    """Return the name that a definition's term stands for, or "" if it is no name."""
    names = [found for found in find_code_names(title) if found.type != "suffix"]
    if names and names[0].start == 0:
        flags = [found.name for found in names if found.type == names[0].type == "flag"]
        return max(flags, key=len) if flags else names[0].name
    bare = _TRAILING_BRACKETS.sub("", title.strip().strip("`*_")).strip()
    short = 0 < len(bare) <= _MAX_TERM_CHARS and len(bare.split()) <= _MAX_TERM_WORDS
    is_name = short and not bare.endswith(_NOT_A_TERM) and any(map(str.isalpha, bare))
    return bare if is_name and bare.casefold() not in COMMON_WORDS else ""


def find_technical_names(text: str, known: DocumentNames, blocks: ChunkBlocks) -> list[CodeName]:
    """Return the names by form, by mark and by definition; the longest of those that overlap."""
    if not known.technical:
        return _drop_overlaps([*_find_spelled_out(text, known), *find_sure_names(text)])
    found = [*find_code_names(text), *find_marked(text), *_find_spelled_out(text, known)]
    if known.terms is not None:
        found += [
            CodeName(m.start(), m.end(), m[0], "identifier") for m in known.terms.finditer(text)
        ]
    for block, name in blocks.definitions:
        at = text.find(name, block.start, block.end)
        if at >= 0:
            found.append(CodeName(at, at + len(name), name, DEFINED))
    return _drop_overlaps(found)


def _find_spelled_out(text: str, known: DocumentNames) -> Iterator[CodeName]:
    """Yield the acronyms that the document explains, and their long forms, under one name."""
    for short, long in known.acronyms:
        pattern = rf"(?<![\w-])(?:{re.escape(long)}|(?-i:{re.escape(short)}))(?![\w-])"
        for found in re.finditer(pattern, text, re.IGNORECASE):
            yield CodeName(found.start(), found.end(), long, NAME)


def _drop_overlaps(found: list[CodeName]) -> list[CodeName]:
    """Return the names in order, the first and longest of those that overlap."""
    kept: list[CodeName] = []
    for one in sorted(found, key=lambda name: (name.start, name.start - name.end)):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def keep_names(
    text: str, t: Tokens, spans: list[NameSpan], first: set[int], known: DocumentNames
) -> Iterator[NameSpan]:
    """Yield the spans that are names; words that only begin a sentence are not."""
    for span in spans:
        at = span.first
        if _CONTRACTION.match(text, t.ends[span.last - 1]) and span.last - at == 1:
            continue
        if span.last - at == 1 and at in first and _is_opener(text, t, at, known):
            continue
        if known.technical and (_is_cell_label(text, t, span) or _is_rare_term(t, span, known)):
            continue
        if known.technical and span.type == NAME:
            trimmed = _drop_opener(text, t, span, first, known)
            if trimmed is None:
                continue
            span = trimmed
        single = span.last - span.first == 1
        if known.noun_capitals and single and t.keys[span.first] not in known.repeated:
            if span.type == NAME and not _is_name_place(text, t, span.first):
                continue
        yield span


def _is_opener(text: str, t: Tokens, at: int, known: DocumentNames) -> bool:
    """Whether a word that begins a sentence is no name: it has no capital elsewhere, and an article
    follows as behind a verb ("Turn the key"), or its language has no names at such places alone.
    """
    if t.keys[at] in function_words(known.language) and known.language != "en":
        return True
    if not t.upper[at] or t.keys[at] in known.inside or is_all_capitals(text, t, at):
        return False
    if any(map(str.isdigit, t.keys[at])):
        return False
    if known.language not in ("", "en"):
        return True
    return _DETERMINER.match(text, t.ends[at]) is not None


def _is_name_place(text: str, t: Tokens, at: int) -> bool:
    """Whether a German noun stands as names of places do: right behind "in" or "aus"."""
    if at == 0 or t.keys[at - 1] not in _BEFORE_PLACES:
        return False
    return text[t.ends[at - 1] : t.starts[at]] == " "


def _is_cell_label(text: str, t: Tokens, span: NameSpan) -> bool:
    """Whether a span is the label of a table cell: `| Code: 23505 |`."""
    start, end = t.starts[span.first], t.ends[span.last - 1]
    return text[end : end + 1] in (":", "：") and text[max(0, start - 2) : start] == "| "


def _is_rare_term(t: Tokens, span: NameSpan, known: DocumentNames) -> bool:
    """Whether a term of a script without case or spaces occurs only once."""
    return span.type == TERM and t.key(span.first, span.last) not in known.repeated_terms


def _repeated_terms(text: str) -> frozenset[str]:
    """Return the terms of scripts without case that occur more than once."""
    if text.isascii():
        return frozenset()
    counts: Counter[str] = Counter()
    for line in text.split("\n"):  # a term ends with its line
        t = tokenize(line)
        counts.update(t.key(first, last) for first, last in find_uncased_terms(t))
    return frozenset(term for term, count in counts.items() if count > 1)


def _drop_opener(
    text: str, t: Tokens, span: NameSpan, first: set[int], known: DocumentNames
) -> NameSpan | None:
    """Return a span without a word that has its capital only from the sentence, None if empty."""
    at = span.first
    single = span.last - at == 1
    if at not in first or (t.keys[at] in known.inside and t.keys[at] not in known.small):
        return span
    word = text[t.starts[at] : t.ends[at]]
    if word[1:] != word[1:].lower() or any(map(str.isdigit, word)):
        return span
    if single:
        return span if _IS_SUBJECT.match(text, t.ends[at]) else None
    after = at + 1
    if t.upper[after] and t.keys[at] not in known.small and t.keys[after] not in known.inside:
        return span  # "Mail Transfer Agents", but not "The Cache", "Der Server", "Suppose Debian"
    while after < span.last and not t.upper[after]:
        after += 1
    return NameSpan(after, span.last, span.type) if after < span.last else None
