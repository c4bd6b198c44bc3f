"""Metrics of an answer against gold answers: EM, F1, Hits, ROUGE-L, choice and reversion.

Answers are normalised as in SQuAD, extended to every script.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from clew.text.unicode import UNSPACED, nfc, split_words
from clew.text.word_forms import function_words

_SAID = 0.6  # of the words of a statement that an answer has to have
_SENTENCE_WORDS = 6  # least words of a sentence: "Martin Luther King Jr." is a name
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TOKEN = re.compile(f"[{UNSPACED}]|[^{UNSPACED}\\s]+")


@lru_cache(maxsize=1 << 14)  # every recipe is compared with the same gold answers
def normalise_answer(text: str) -> str:
    """Lower case, no punctuation, no English articles, single spaces."""
    bare = nfc(text).lower().translate(_PUNCTUATION)
    if not bare.isascii():
        bare = "".join(char for char in bare if unicodedata.category(char)[0] != "P")
    return " ".join(_ARTICLES.sub(" ", bare).split())


@lru_cache(maxsize=1 << 14)
def answer_tokens(text: str) -> tuple[str, ...]:
    """Return the tokens for F1; a text of only articles or punctuation is its own token."""
    found = tuple(_TOKEN.findall(normalise_answer(text)))
    bare = text.strip().lower()
    return found or ((bare,) if bare else ())


def is_same_answer(one: str, other: str) -> bool:
    """Whether two answers are equal after normalisation."""
    return answer_tokens(one) == answer_tokens(other)


_SEPARATOR = r"(?:[,;|&\n、，；]|(?<!\d)/|/(?!\d)|\b(?i:and|or)\b|以及|[和及与與或])"
_SEPARATORS = re.compile(rf"{_SEPARATOR}(?:\s*{_SEPARATOR})*")
_ITEM_NUMBER = re.compile(r"\s*\(?\d{1,3}[.)](?:\s+|(?=[^\W\d_]))")  # "2. London", "2.伦敦"


def is_sentence(gold: str) -> bool:
    """Whether a gold answer is a whole sentence, not a name or a value: it ends as one does."""
    ends = gold.rstrip(" \"'”’)").endswith((".", "。"))
    return ends and len(answer_tokens(gold)) >= _SENTENCE_WORDS


def exact_match(answer: str, golds: Sequence[str]) -> float:
    """1 when the answer equals a gold answer after normalisation (EM; Graph-R1 eq. 33)."""
    return float(any(is_same_answer(answer, gold) for gold in golds))


def sub_exact_match(answer: str, golds: Sequence[str]) -> float:
    """1 when the answer contains a gold answer, in whole words (SubEM; GraphSearch eq. 6)."""
    padded = _pad_tokens(answer)
    return float(any(_pad_tokens(gold) in padded for gold in golds if answer_tokens(gold)))


def f1(answer: str, golds: Sequence[str]) -> float:
    """Token F1 with the best-matching gold answer (Graph-R1 eq. 34)."""
    tokens = answer_tokens(answer)
    return max((overlap_f1(tokens, answer_tokens(gold)) for gold in golds), default=0.0)


def overlap_f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """F1 of two bags of tokens."""
    if not predicted or not gold:
        return float(not predicted and not gold)
    common = sum((Counter(predicted) & Counter(gold)).values())
    return 2 * common / (len(predicted) + len(gold))


def set_f1(answer: str, golds: Sequence[Sequence[str]]) -> float:
    """F1 between the listed answers and the gold answers, each with its aliases."""
    wanted = {
        tokens: at
        for at, names in enumerate(golds)
        for name in names
        if (tokens := answer_tokens(name))
    }
    if not wanted:
        return 0.0
    listed = _parse_listed_answers(answer, wanted)
    if not listed:
        return 0.0
    right = sum(isinstance(one, int) for one in listed)
    return 2 * right / (len(listed) + len(set(wanted.values())))


def _parse_listed_answers(
    answer: str, wanted: Mapping[tuple[str, ...], int]
) -> set[int | tuple[str, ...]]:
    """Parse a list of answers into indices of gold answers, or the tokens of anything else.

    A gold answer may contain a separator ("Trinidad and Tobago"): the longest match wins.
    """
    parts = list(_SEPARATORS.finditer(answer))
    starts = [0, *(part.end() for part in parts)]
    ends = [*(part.start() for part in parts), len(answer)]
    longest = max(len("".join(tokens)) for tokens in wanted)
    found: set[int | tuple[str, ...]] = set()
    at = 0
    while at < len(starts):
        numbered = _ITEM_NUMBER.match(answer, starts[at], ends[at])
        bare = numbered.end() if numbered else starts[at]
        # With its number first: a name may begin with one ("1. FC Nürnberg").
        for start in dict.fromkeys((starts[at], bare)):
            spans = [answer[start:end] for end in ends[at : at + longest + 1]]
            right = _match_longest_gold(spans, wanted, longest)
            if right is not None:
                number, dividers = right
                found.add(number)
                at += dividers
                break
        else:
            if tokens := answer_tokens(answer[bare : ends[at]]):
                found.add(tokens)
        at += 1
    return found


def _match_longest_gold(
    spans: Sequence[str], wanted: Mapping[tuple[str, ...], int], longest: int
) -> tuple[int, int] | None:
    """Return the longest gold answer and its separators; `spans` are in increasing length."""
    found = None
    for dividers, span in enumerate(spans):
        if len(normalise_answer(span).replace(" ", "")) > longest:
            break
        tokens = answer_tokens(span)
        if tokens in wanted:
            found = wanted[tokens], dividers
    return found


def names_recall(names: Sequence[str], golds: Sequence[Sequence[str]]) -> float:
    """Share of the gold answers, each under any of its names, among the names found."""
    found = {answer_tokens(name) for name in names}
    right = sum(any(answer_tokens(name) in found for name in group) for group in golds)
    return right / len(golds) if golds else 0.0


def names_f1(names: Sequence[str], golds: Sequence[Sequence[str]]) -> float:
    """F1 of the names found against the gold answers: a large subgraph has low precision."""
    found = {answer_tokens(name) for name in names}
    wanted = {answer_tokens(name) for group in golds for name in group}
    share = names_recall(names, golds)
    precision = len(found & wanted) / len(found) if found else 0.0
    return 2 * share * precision / (share + precision) if share and precision else 0.0


def hits(ranked: Sequence[str], golds: Sequence[str]) -> float:
    """1 when one of the ranked answers is a gold answer (Hits@k for the first k)."""
    return float(any(is_same_answer(answer, gold) for answer in ranked for gold in golds))


def answer_reciprocal_rank(ranked: Sequence[str], golds: Sequence[str]) -> float:
    """1 / rank of the first correct answer."""
    for rank, answer in enumerate(ranked, start=1):
        if hits([answer], golds):
            return 1 / rank
    return 0.0


def statement_recall(texts: Sequence[str], statements: Sequence[str]) -> float:
    """Share of the statements of which one text has most of the words that say something."""
    have, closed = [set(split_words(text)) for text in texts], function_words("en")
    said = 0
    for statement in statements:
        words = set(split_words(statement)) - closed
        said += any(len(words & some) >= _SAID * len(words) for some in have)
    return said / len(statements)


def rouge_l(answer: str, golds: Sequence[str]) -> float:
    """ROUGE-L F-measure on words with the best-matching gold answer (Lin 2004)."""
    tokens = split_words(answer)
    return max((_rouge_l_score(tokens, split_words(gold)) for gold in golds), default=0.0)


def _rouge_l_score(predicted: list[str], gold: list[str]) -> float:
    if not predicted or not gold:
        return 0.0
    return 2 * lcs_length(predicted, gold) / (len(predicted) + len(gold))


def lcs_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the longest common subsequence, bit-parallel: one integer is a row."""
    places: dict[str, int] = {}
    for at, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << at
    # A zero bit marks a step of the row; adding carries each step to the next match (Crochemore).
    full = (1 << len(one)) - 1
    row = full
    for word in other:
        match = row & places.get(word, 0)
        row = ((row + match) | (row - match)) & full
    return len(one) - row.bit_count()


def _pad_tokens(text: str) -> str:
    return f" {' '.join(answer_tokens(text))} "


_LETTER = r"[A-Z]"
_JOIN = r"(?:\s*(?:[,，、;；/&+]|and|和|及|与)?\s*)"
_LETTER_RUN = rf"{_LETTER}(?:{_JOIN}{_LETTER})*(?![A-Za-z'’])"
_STATED_CHOICE = re.compile(
    r"(?i:answers?|options?|choices?|correct|答案|正确选项|选)\W*(?:is|are|为|是)?"
    rf"[\s:：*(（]*({_LETTER_RUN})"
)
_LEADING_CHOICE = re.compile(
    rf"^[\s*(（\[\"“]*({_LETTER_RUN})(?=\s*$|\s*\n|[.．。:：,，;；)）\]*、\"”])"
)
_SINGLE_LETTER = re.compile(r"^\W*([A-Za-z])\W*$")
_PLACEHOLDER = r"([A-Z][A-Z_]*)\s*[#＃]\s*(\d+)"
_REVERSION = re.compile(
    rf"\[?{_PLACEHOLDER}\]?\s*(?:[—–-]{{1,3}}>?|=>|[:：=→]|"
    r"(?:is|was|means|stands\s+for|refers\s+to|represents|denotes)\b|是|为|代表|指)\s*"
    r"([^\n\r;；|]+?)(?=[\s,，、]*\[?[A-Z][A-Z_]*\s*[#＃]\s*\d|[\n\r;；|]|$)"
)
_WHOLE_PLACEHOLDER = re.compile(rf"\[?{_PLACEHOLDER}\]?")
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_TEX_COMMAND = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s*\{([^{}]*)\}")
_MARKDOWN = re.compile(r"\*+|__+|`+|^[ \t]*(?:#{1,6}|>|[-+])[ \t]+", re.M)
_ESCAPED = re.compile(r"\\([#_\[\]*])")
_TRIM_CHARS = " \t.,;，。；*_`\"'“”‘’[]()"


def parse_choice(text: str, options: Mapping[str, str]) -> frozenset[str]:
    """Parse the letters of the options that a text chooses; empty if the choice is unclear."""
    boxed = _BOXED.findall(text)
    text = _strip_markup(boxed[-1] if boxed else text).strip()
    for letter, option in options.items():
        if is_same_answer(text, option):
            return frozenset(letter)
    alone = _SINGLE_LETTER.match(text)
    if alone and alone[1].upper() in options:
        return frozenset(alone[1].upper())
    # The last statement counts: a model reasons first and concludes after.
    runs = [match[1] for match in _STATED_CHOICE.finditer(text)][-1:]
    start = _LEADING_CHOICE.match(text)
    for run in [*runs, *([start[1]] if start else [])]:
        letters = frozenset(re.findall(_LETTER, run)) & options.keys()
        if letters:
            return letters
    named = [letter for letter, option in options.items() if sub_exact_match(text, [option])]
    return frozenset(named)


def parse_gold_letters(golds: Sequence[str], options: Mapping[str, str]) -> frozenset[str]:
    """Return the correct letters, whether the gold has letters, option texts or both."""
    return frozenset(letter for gold in golds for letter in parse_choice(gold, options))


def choice_accuracy(answer: str, golds: Sequence[str], options: Mapping[str, str]) -> float:
    """1 when exactly the correct options are chosen (SeedBench QA-1, AnonyRAG)."""
    right = parse_gold_letters(golds, options)
    return float(bool(right) and parse_choice(answer, options) == right)


def choice_f1(answer: str, golds: Sequence[str], options: Mapping[str, str]) -> float:
    """F1 of the chosen options, for questions with several correct ones (SeedBench QA-2)."""
    right = parse_gold_letters(golds, options)
    return overlap_f1(sorted(parse_choice(answer, options)), sorted(right)) if right else 0.0


def parse_reversion(text: str) -> dict[str, str]:
    """Parse placeholder → name from lines such as `PERSON#200——Queequeg`."""
    found: dict[str, str] = {}
    lines = [_parse_table_row(line) for line in _strip_markup(text).splitlines()]
    for kind, number, name in _REVERSION.findall("\n".join(lines)):
        found.setdefault(f"{kind}#{number}", name.strip(_TRIM_CHARS))
    return found


def _strip_markup(text: str) -> str:
    """Remove Markdown and TeX markup."""
    return _ESCAPED.sub(r"\1", _MARKDOWN.sub("", _TEX_COMMAND.sub(r"\1", text)))


def _parse_table_row(line: str) -> str:
    """Convert a table row to `PLACEHOLDER: name`; return any other line unchanged."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    for mark, name in zip(cells, cells[1:], strict=False):
        if _WHOLE_PLACEHOLDER.fullmatch(mark) and name and not _WHOLE_PLACEHOLDER.fullmatch(name):
            return f"{mark}: {name}"
    return line


def reversion_accuracy(answer: str, originals: Mapping[str, Sequence[str]]) -> float:
    """Share of the placeholders whose name is correct (AnonyRAG, per-entity accuracy)."""
    if not originals:
        return 0.0
    found = parse_reversion(answer)
    right = sum(
        1
        for mark, names in ((mark.strip("[]"), names) for mark, names in originals.items())
        if answer_tokens(found.get(mark, "")) and any(is_same_answer(found[mark], n) for n in names)
    )
    return right / len(originals)
