"""What a document tells about its names: marks of code, definitions, and case inside sentences.

In a manual most sentences begin with a verb ("Specifies the …"), and names are written small. So a
capital at the beginning of a sentence, an item or a cell counts only if the word has one elsewhere,
and names come from their form, from what is marked as code, and from the terms that are defined.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import NamedTuple

from clew.extract.affixed_names import find_affixed_names
from clew.extract.common_nouns import find_common_nouns
from clew.extract.dotted_numbers import DottedNumbers, learn_numbers
from clew.extract.openers import (
    SentenceHeadings,
    find_letter_marks,
    learn_headings,
    opening_tokens,
)
from clew.extract.term_fragments import Parts, find_fragments, is_wrapped
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
    find_section_numbers,
    find_sure_names,
    marked_type,
    name_marked,
)
from clew.text.code_outline import CODE_FORMAT
from clew.text.name_spans import COMMON_WORDS, NAME, find_uncased_terms
from clew.text.names import Tokens, recall_tokens, tokenize
from clew.text.sentences import sentence_spans
from clew.text.structure import Block, find_blocks
from clew.text.unicode import UNSPACED_CHAR
from clew.text.word_forms import text_language
from clew.types import Document

_WORD = re.compile(r"\w+")
# A word in small letters that is no part of an address, a path, a compound or an option.
_SMALL_WORD = re.compile(r"(?<![\w/.@:=-])[a-zß-öø-ÿа-яё]{2,}(?![\w/@=-]|[.:]\w)")
_FENCED = re.compile(r"^[ \t]*(?::[ \t]+)?```.*?^[ \t]*```", re.DOTALL | re.MULTILINE)
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_HEADING_LINE = re.compile(r"^\f? {0,3}#{1,6}[ \t].*$", re.MULTILINE)
_MARKED_SHARE = 0.5  # of its occurrences that are marked: then a plain word is a name
_LEAST_TERM_CHARS = 2
_LEAST_OWN_TERM = 3  # characters of a term that a longer run is cut to
_MAX_TERMS = 400
_FUNCTION_WORDS = 25
_MAX_TERM_WORDS, _MAX_TERM_CHARS = 6, 60
_TRAILING_BRACKETS = re.compile(r"\s*[(（\[][^()（）]*[)）\]]\s*$")
_NOT_A_TERM = (":", ".", ";", ",", "：", "。", "!", "?")
_RULES = "names 15"
_TECHNICAL_MARK = re.compile(
    r"^[ \t]*(?:```|~~~|:[ \t]{1,4}\S|\|[^\n]*\|[ \t]*$)|(?<!`)`[^`\n]{2,60}`(?!`)", re.MULTILINE
)
_MAY_BE_MARK = re.compile("[`~|:]")
_TECHNICAL_TYPES = frozenset({FLAG, PATH, IDENTIFIER, COMMAND, VARIABLE})
_LEAST_CODE_NAMES = 3
# Names that other versions read otherwise: before a contraction, in Japanese, over lines, behind
# a quotation mark.
_NEW_FORMS = re.compile(
    r"\b[^\W\d_a-z]\w*['’](?:t|ll|re|ve|d|m)\b|[\u0621-\u064a\u3041-\u309f\u4e00-\u9fff]"
    r"|\w[.,;:]?\n[ \t]*[^\W\d_a-z]|[\"“„«>][^\W\d_a-z]"
)
_AROUND, _LEAST_AROUND = 60, 4  # characters and words beside one that is in capitals as they are
_LONG_WORD = re.compile(r"[^\W\d_]{2,}")
_OPENS = 3  # times as often at the beginning of a sentence as inside: then a capital says little
_NOUN_CAPITALS_SHARE = 0.22  # of the words inside sentences: then nouns are written so (German)

_JOINED = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*-[a-z][a-z0-9]*"
_JOINED_WORD = re.compile(rf"(?<![\w/.=@:-]){_JOINED}(?![\w=-])")
_JOINED_BEGIN = re.compile(rf"({_JOINED})(?![\w=-])")
# Behind a prompt or at the beginning of a line of code; `name(1)`; `name`; /usr/bin/name
_RUN = re.compile(rf"^[ \t]*(?:[\w@:~.-]*[$#%][ \t]+)?({_JOINED})(?![\w=-])", re.MULTILINE)
_SHOWN = re.compile(
    rf"(?<![\w-])(?:({_JOINED})\([1-9][a-z]{{0,4}}\)|`({_JOINED})`|/s?bin/({_JOINED})(?![\w-]))"
)
_EXPLAINED = re.compile(rf"^({_JOINED})[ \t]+(?:-{{1,2}}|[–—])[ \t]+\S", re.MULTILINE)
_SENTENCE_END = (".", "!", "?", ".)", ".]", "].")
_MAX_JOINED = 200
_LEAST_SIGNED = 3  # characters of a word with a dash that may be a sign


@dataclass(frozen=True, slots=True)
class DocumentNames:
    """What was learnt from a whole document."""

    technical: bool = False
    inside: frozenset[str] = frozenset()
    """Keys of words with a capital inside a sentence."""
    apart: frozenset[str] = frozenset()
    """Words with a capital where no opener with one is right before them."""
    opening: frozenset[str] = frozenset()
    """Those among them that mostly begin a sentence, and are also written small."""
    letters: frozenset[str] = frozenset()
    """Letters that count the items of a list."""
    mostly_small: frozenset[str] = frozenset()
    """Those among them that are written small more often, or mostly begin a sentence."""
    small: frozenset[str] = frozenset()
    """The most frequent words in lower case: articles and the like, in any language."""
    noun_capitals: bool = False
    common: frozenset[str] = frozenset()
    """Nouns that the text shows to be common, where all nouns have capitals."""
    repeated: frozenset[str] = frozenset()
    repeated_terms: frozenset[str] = frozenset()
    """Terms of scripts without case that occur more than once."""
    own_terms: frozenset[str] = frozenset()
    """Terms of scripts without spaces that stand alone somewhere."""
    whole_terms: frozenset[str] = frozenset()
    """Those that stand alone more than once."""
    fragments: Parts = field(default_factory=dict)
    """Terms with a loose character, and what is whole in them."""
    terms: re.Pattern[str] | None = None
    is_code: bool = False
    """Whether `#` marks comments, not headings."""
    body: str = ""
    """The words outside headings, folded, in a text that has headings."""
    headings: frozenset[str] = frozenset()
    """The words of each heading, folded."""
    acronyms: tuple[tuple[str, str], ...] = ()
    language: str = ""
    numbers: DottedNumbers = DottedNumbers()
    mentions: SentenceHeadings = SentenceHeadings()
    """The headings whose words the text refers to."""


def learn_names(document: Document) -> DocumentNames:
    """Read a document once for what its names look like."""
    text = document.text
    acronyms = tuple(dict.fromkeys(find_acronyms(text)))
    if not is_technical(document):
        return _learn_prose(text, acronyms)
    capitals = _capitals_inside(text)
    terms, language = _count_terms(text), text_language(text)
    recurring = _find_recurring(terms)
    fragments = find_fragments(terms, recurring)
    recurring -= fragments.keys()
    nouns = capitals.share > _NOUN_CAPITALS_SHARE or language == "de"
    return DocumentNames(
        technical=True,
        inside=capitals.inside,
        apart=capitals.apart,
        mostly_small=capitals.mostly_small,
        opening=capitals.opening,
        letters=frozenset(text[at] for at in find_letter_marks(text)),
        small=_frequent_words(text),
        noun_capitals=nouns,
        common=find_common_nouns(text, language) if nouns else frozenset(),
        repeated=capitals.repeated,
        repeated_terms=frozenset(t for t, count in terms.items() if count > 1) | recurring,
        own_terms=(_long_terms(terms) | recurring) - fragments.keys(),
        terms=_compile_terms(document),
        fragments=fragments,
        whole_terms=frozenset(t for t, many in terms.items() if many > 1) - fragments.keys(),
        is_code=document.metadata.get("format") == CODE_FORMAT,
        body=_fold_body(text),
        headings=_fold_headings(text),
        acronyms=acronyms,
        language=language,
        numbers=learn_numbers(text),
        mentions=learn_headings(text),
    )


def _learn_prose(text: str, acronyms: tuple[tuple[str, str], ...]) -> DocumentNames:
    """Learn from prose: in languages other than English also which capitals are only openers."""
    language, terms = text_language(text), _count_terms(text)
    capitals = _capitals_inside(text)
    return DocumentNames(
        inside=capitals.inside,
        apart=capitals.apart,
        mostly_small=capitals.mostly_small,
        opening=capitals.opening,
        letters=frozenset(text[at] for at in find_letter_marks(text)),
        repeated=capitals.repeated,
        noun_capitals=language == "de",
        common=find_common_nouns(text, language) if language == "de" else frozenset(),
        own_terms=_long_terms(terms) | _find_recurring(terms),
        body=_fold_body(text),
        acronyms=acronyms,
        language=language,
    )


def is_technical(document: Document) -> bool:
    """Whether a document is written like a manual: it has code, definitions, tables or names of it.

    Encyclopaedia articles, stories and news are not, with or without headings.
    """
    if document.metadata.get("terms") or document.metadata.get("format") == CODE_FORMAT:
        return True
    text = document.text
    if _MAY_BE_MARK.search(text) and _TECHNICAL_MARK.search(text):
        return True
    names = (one for one in find_code_names(text) if one.type in _TECHNICAL_TYPES)
    return len(list(islice(names, _LEAST_CODE_NAMES))) == _LEAST_CODE_NAMES


def names_stamp(document: Document) -> tuple[str, ...]:
    """Return what the stamp of a document needs besides the extractor: the rules of its names."""
    new = is_technical(document) or _NEW_FORMS.search(document.text) is not None
    return (_RULES,) if new else ()


class _Capitals(NamedTuple):
    """Words with a capital inside sentences, as in `DocumentNames`, and their share."""

    inside: frozenset[str]
    apart: frozenset[str]
    repeated: frozenset[str]
    mostly_small: frozenset[str]
    opening: frozenset[str]
    share: float


def _capitals_inside(text: str) -> _Capitals:
    """Return the words with a capital inside a sentence, those that recur, and those that are
    written small more often or that have a capital mostly as they begin a sentence.
    """
    capitals: Counter[str] = Counter()
    openers: Counter[str] = Counter()
    apart: set[str] = set()
    words = 0
    letters, mentions = find_letter_marks(text), learn_headings(text)
    for block in find_blocks(text):
        if block.depth or block.kind in ("heading", "code", "header"):
            continue
        piece = text[block.start : block.end]
        t = recall_tokens(piece)
        starts = opening_tokens(piece, t, sentence_spans(piece)) | mentions.find(t)
        starts.update(
            bisect_left(t.starts, one - block.start) + 1 for one in letters if block.holds(one)
        )
        words += len(t)
        openers.update(t.keys[at] for at in starts if at < len(t) and t.upper[at])
        own = [at for at in range(len(t)) if t.upper[at] and at not in starts]
        own = [at for at in own if not is_shouted(piece, t.starts[at], t.ends[at])]
        capitals.update(t.keys[at] for at in own)
        apart.update(t.keys[at] for at in own if at - 1 not in starts or not t.upper[at - 1])
        apart.update(t.keys[at] for at in starts if at < len(t) and t.upper[at])
    smalls = Counter(found for found in _SMALL_WORD.findall(_FENCED.sub(" ", text)))
    opening = frozenset(k for k, n in capitals.items() if smalls[k] and openers[k] > _OPENS * n)
    return _Capitals(
        inside=frozenset(capitals),
        apart=frozenset(apart),
        repeated=frozenset(k for k, n in capitals.items() if n > 1),
        mostly_small=frozenset(k for k, n in capitals.items() if smalls[k] > n) | opening,
        opening=opening,
        share=sum(capitals.values()) / words if words else 0.0,
    )


def _fold_body(text: str) -> str:
    """Return the words outside headings, as they are compared; "" without headings."""
    rest = _HEADING_LINE.sub(" ", text) if "#" in text else text
    return f" {' '.join(tokenize(rest).keys)} " if rest != text else ""


def _fold_headings(text: str) -> frozenset[str]:
    """Return the words of each heading, as they are compared."""
    return frozenset(" ".join(tokenize(one[0]).keys) for one in _HEADING_LINE.finditer(text))


def blank_code(text: str) -> str:
    """Return a text without its code: a word written small there may be a name elsewhere."""
    rest = _INLINE_CODE.sub(" ", _FENCED.sub(" ", text))
    for one in reversed(list(find_code_names(rest))):
        rest = f"{rest[: one.start]} {rest[one.end :]}"
    return rest


def _frequent_words(text: str) -> frozenset[str]:
    words = Counter(match[0] for match in _WORD.finditer(text) if match[0].islower())
    return frozenset(word for word, _ in words.most_common(_FUNCTION_WORDS))


def is_all_capitals(text: str, t: Tokens, at: int) -> bool:
    """Whether a token is written in capitals only, as acronyms and constants are."""
    word = text[t.starts[at] : t.ends[at]]
    return len(word) > 1 and word.isupper()


def is_shouted(text: str, start: int, end: int) -> bool:
    """Whether all words around a span are in capitals, as in a licence: they make no name."""
    if not text[start:end].isupper():
        return False
    low = max(text.rfind("\n\n", 0, start) + 1, start - _AROUND, 0)
    stop = text.find("\n\n", end)
    high = min(stop if stop >= 0 else len(text), end + _AROUND)
    around = f"{text[low:start]} {text[end:high]}"
    if around != around.upper():
        return False
    return len(_LONG_WORD.findall(around)) >= _LEAST_AROUND


def _count_terms(text: str) -> Counter[str]:
    """Count the terms of scripts without case."""
    counts: Counter[str] = Counter()
    if text.isascii():
        return counts
    lines = text.split("\n")  # a term ends with its line, but not where the line is full
    wrapped = [False, *(is_wrapped(one, other) for one, other in pairwise(lines)), False]
    for line, begun, goes_on in zip(lines, wrapped, wrapped[1:], strict=False):
        t = tokenize(line)
        terms = [t.key(first, last) for first, last in find_uncased_terms(t)]
        counts.update(terms[int(begun) : len(terms) - goes_on])
    return counts


def _long_terms(terms: Counter[str]) -> frozenset[str]:
    return frozenset(term for term in terms if len(term.split()) >= _LEAST_OWN_TERM)


def _find_recurring(terms: Counter[str]) -> frozenset[str]:
    """Return what runs without spaces have in common, with other characters before and behind it.

    In 工程师李明远设计 and 李明远出生 it is 李明远.
    """
    before: dict[str, set[str]] = defaultdict(set)
    behind: dict[str, set[str]] = defaultdict(set)
    runs = [run.split() for run in terms if UNSPACED_CHAR.match(run)]
    for number, run in enumerate(runs):
        for first in range(len(run) - _LEAST_OWN_TERM + 1):
            for last in range(first + _LEAST_OWN_TERM, len(run) + 1):
                part = " ".join(run[first:last])
                before[part].add(run[first - 1] if first else f"run {number}")
                behind[part].add(run[last] if last < len(run) else f"run {number}")
    return frozenset(p for p, some in before.items() if len(some) > 1 and len(behind[p]) > 1)


def _compile_terms(document: Document) -> re.Pattern[str] | None:
    """Return a pattern of what the document marks as code, plain words only if mostly marked, and
    of the words with hyphens that it shows to be names.
    """
    marked = document.metadata.get("terms")
    marked = marked if isinstance(marked, dict) else {}
    kept = list(map(re.escape, _find_joined_names(document.text)))
    counts = Counter(_WORD.findall(_FENCED.sub("", document.text))) if marked else Counter()
    for term, number in list(marked.items())[:_MAX_TERMS]:
        term = name_marked(term) if isinstance(term, str) else ""
        if len(term) < _LEAST_TERM_CHARS or term.startswith("-"):
            continue  # an option is known by its form, without its value
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


def _find_joined_names(text: str) -> frozenset[str]:
    """Return the words with hyphens that the document shows to be names: `update-mime-database`,
    but not `case-sensitive`.

    It begins a sentence with them in small letters, runs them in code, has them as a heading or a
    term, marks them as code, explains them as a manual page does, or gives them the number of one.
    """
    if "-" not in text or _JOINED_WORD.search(text) is None:
        return frozenset()
    found = {next(filter(None, one)) for one in _SHOWN.findall(text)}
    found.update(_EXPLAINED.findall(text))
    for block in find_blocks(text):
        found.update(_find_in_block(text, block))
    return frozenset(sorted(found)[:_MAX_JOINED])


def _find_in_block(text: str, block: Block) -> Iterator[str]:
    piece = text[block.start : block.end]
    if block.kind == "code":
        yield from _RUN.findall(piece)
    elif block.kind in ("heading", "definition"):
        term = _JOINED_BEGIN.fullmatch(block.title.split(",")[0].strip("`* "))
        yield from (term[1],) if term else ()
    elif block.kind == "paragraph":
        yield from _find_openers(piece)


def _find_openers(piece: str) -> Iterator[str]:
    """Yield the words that begin a sentence small, behind one that ended."""
    for start, _ in sentence_spans(piece):
        opened = _JOINED_BEGIN.match(piece, start)
        if opened and (not start or piece[:start].rstrip().endswith(_SENTENCE_END)):
            yield opened[1]


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
    is_name = is_name and bare.count("(") == bare.count(")")  # the head of a function is none
    return bare if is_name and bare.casefold() not in COMMON_WORDS else ""


def find_technical_names(text: str, known: DocumentNames, blocks: ChunkBlocks) -> list[CodeName]:
    """Return the names by form, by mark and by definition; the longest of those that overlap."""
    affixed = find_affixed_names(text, known.own_terms)
    if not known.technical:
        sure = [*find_sure_names(text), *find_section_numbers(text)]
        return _drop_overlaps([*_find_spelled_out(text, known), *sure, *affixed])
    found = [*find_code_names(text), *find_marked(text), *_find_spelled_out(text, known)]
    found = [one for one in found if not known.numbers.is_section(one)]
    found = [one for one in found if not _is_signed(text, one)]
    found += affixed
    found += [] if known.is_code else [*find_section_numbers(text), *known.numbers.find(text)]
    for block, name in blocks.definitions:
        at = text.find(name, block.start, block.end)
        if at >= 0:
            found.append(CodeName(at, at + len(name), name, DEFINED))
    if known.terms is not None:
        found += [
            CodeName(m.start(), m.end(), m[0], marked_type(m[0]))
            for m in known.terms.finditer(text)
        ]
    return _drop_overlaps(found)


def _is_signed(text: str, one: CodeName) -> bool:
    """Whether a word stands with a plus, too, so that its dash is a sign: `+user`, `-user`."""
    is_word = one.type == FLAG and len(one.name) > _LEAST_SIGNED and one.name[1] != "-"
    return is_word and f"+{one.name[1:]}" in text


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
