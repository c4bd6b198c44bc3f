"""Chinese without a reader: the patterns of `zh.toml` parse questions and match sentences.

A name in 《》 or quotes is masked, so that a 的 inside it splits nothing.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, cast

from clew.agents.core.plan import Join, JoinKind, Plan, plan_for_each
from clew.text.language import HAN
from clew.text.sentences import sentence_spans
from clew.types import Passage

Span = tuple[int, int]
Patterns = Sequence[re.Pattern[str]]
_QUOTED_NAME = re.compile("《[^《》]+》|“[^“”]+”|「[^「」]+」|『[^『』]+』")
_FIRST_MASK = 0xE000
_TRIMMED_ENDS = re.compile(r"[？?。！!\s]+$|^(?:请问|那么)[，,]?")
_CHAIN_QUESTION = re.compile(
    r"(?P<parts>[^，。？?]+的[^，。？?]+?)(?P<asks>是谁|是什么|是哪.*|在哪.*|有多.*|何时.*|什么时候.*)"
)
_NO_NAME = re.compile("[一某谁其他她它这那位个名]|不详|未知|不明|何人")
_BRACKET = re.compile(r"[（(][^（()）]{4,80}[）)]")
_UNTIL = re.compile(r"[－—–~～至-]")
_CONTINUES = re.compile("(?:他|她|它|其|该|此|这)")
_OPENS, _CLOSES = "《“「『", "》”」』"
_AFTER_NAME = "是为在于的出生由有和与曾，来位原系又也因死卒逝"


@dataclass(frozen=True, slots=True)
class AskedAttribute:
    """One attribute asked of one subject."""

    subject: str
    attribute: str
    """A relation or an attribute of the table; or ""."""


@dataclass(frozen=True)
class ChineseTable:
    """The patterns of `zh.toml`, compiled."""

    relations: Mapping[str, str]
    """The nouns of each relation."""
    any_relation: str
    questions: Sequence[tuple[str, re.Pattern[str]]]
    """Each attribute with a pattern of the question for it, in order."""
    comparisons: Sequence[tuple[JoinKind, re.Pattern[str], tuple[str, ...]]]
    answers: Mapping[str, Patterns]
    any_question: re.Pattern[str]
    date: re.Pattern[str]
    max_chars: int


@cache
def load_chinese() -> ChineseTable:
    """Read and compile the table."""
    text = files("clew.agents.rules").joinpath("zh.toml").read_text(encoding="utf-8")
    return _compile_table(tomllib.loads(text))


def _compile_table(raw: dict[str, Any]) -> ChineseTable:
    relations: dict[str, Any] = raw["relations"]
    any_relation = "|".join(one["words"] for one in relations.values())
    fragments = {**raw["fragments"], "RELATIONS": any_relation}

    def expand(text: str) -> str:
        while (found := re.search(r"<([A-Z]+)>", text)) is not None:
            text = text[: found.start()] + fragments[found[1]] + text[found.end() :]
        return text

    def compile_all(some: Sequence[str]) -> list[re.Pattern[str]]:
        return [re.compile(expand(one)) for one in some]

    subject = fragments["SUBJECT"]
    questions = [
        (name, one) for name, some in raw["questions"].items() for one in compile_all(some)
    ]
    for name, one in relations.items():
        asked = [
            rf"{subject}的(?:{one['words']})(?:是|叫|为)(?:谁或什么|谁|什么人?|什么名字|哪.*)",
            rf"谁是{subject}的(?:{one['words']})",
        ]
        if verbs := one.get("verbs"):
            does = rf"(?:是谁|谁|哪位.{{0,3}}?)(?:{verbs})(?:了|的)?"
            asked.append(rf"{does}(?:电影|影片|小说|歌曲)?{subject}的?")
            asked.append(rf"{subject}(?:是|由|是由)(?:谁|哪位.{{0,3}}?)(?:{verbs})的?")
        questions += [(name, pattern) for pattern in compile_all(asked)]
    answers = {name: compile_all(some) for name, some in raw["answers"].items()}
    for name, one in relations.items():
        answers[name] = compile_all(_relation_patterns(one["words"], one.get("verbs", "")))
    return ChineseTable(
        {name: one["words"] for name, one in relations.items()},
        any_relation,
        questions,
        [
            (cast(JoinKind, how), re.compile(expand(one["match"])), tuple(one["ask"]))
            for how, some in raw["comparisons"].items()
            for one in some
        ],
        answers,
        re.compile(expand("(?P<x>.+?)(?:是|在|有|叫)?(?:谁|什么|<WHERE>|<WHEN>|多少|几).*")),
        re.compile(expand("<DATE>")),
        raw["max_chars"],
    )


def _relation_patterns(words: str, verbs: str) -> list[str]:
    """Return the patterns for a relation: "导演是X", "由X执导"."""
    turns = [rf"(?:{words})(?:是|为|叫|系|：|:)\s*<TITLE><NAME>"]
    if verbs:
        turns.append(rf"由<TITLE>(?P<v><FULLNAME>?)(?:担任|负责)?(?:{verbs})")
        turns.append(rf"[，,]<TITLE>(?P<v><FULLNAME>?)(?:{verbs})(?=[<STOP>的]|$)")
    return turns


# -- questions


def parse_attribute_question(question: str) -> AskedAttribute | None:
    """Parse the subject and attribute of a Chinese question; None where no pattern matches."""
    masked, known = _mask_names(question)
    found = _parse_masked_question(masked)
    return AskedAttribute(_unmask_names(found.subject, known), found.attribute) if found else None


def find_subject(question: str) -> str:
    """Return the innermost subject of a Chinese question, or ""."""
    masked, known = _mask_names(question)
    table = load_chinese()
    found = _parse_masked_question(masked) or (
        (any_ := table.any_question.fullmatch(masked)) and AskedAttribute(any_["x"], "")
    )
    if not found:
        return ""
    subject = found.subject
    while (step := _relation_step(subject)) is not None:
        subject = step["x"]
    return _unmask_names(subject.split("的")[0], known)


def _relation_step(text: str) -> re.Match[str] | None:
    return re.fullmatch(rf"(?P<x>.+)的(?P<rel>{load_chinese().any_relation})", text)


def _parse_masked_question(masked: str) -> AskedAttribute | None:
    if len(masked) > load_chinese().max_chars:
        return None
    for attribute, shape in load_chinese().questions:
        if (found := shape.fullmatch(masked)) is not None:
            return AskedAttribute(found["x"], attribute)
    return None


def _mask_names(question: str) -> tuple[str, list[str]]:
    known: list[str] = []

    def mask(found: re.Match[str]) -> str:
        known.append(found[0])
        return chr(_FIRST_MASK + len(known) - 1)

    bare = _TRIMMED_ENDS.sub("", _TRIMMED_ENDS.sub("", question.strip()))
    return _QUOTED_NAME.sub(mask, bare), known


def _unmask_names(text: str, known: Sequence[str]) -> str:
    def unmask(found: re.Match[str]) -> str:
        at = ord(found[0]) - _FIRST_MASK
        return known[at] if at < len(known) else found[0]  # the text may hold such a character

    return re.sub("[\ue000-\ue0ff]", unmask, text)


def plan_chinese(question: str) -> Plan:
    """Plan a Chinese question; keep it whole when no pattern matches."""
    masked, known = _mask_names(question)
    fits = len(masked) <= load_chinese().max_chars
    plan = (_plan_comparison(masked) or _plan_chain(masked)) if fits else None
    if plan is None:
        return Plan((question,))
    join = plan.join
    if join is not None:
        options = tuple(_unmask_names(option, known) for option in join.options)
        join = Join(join.how, join.question_numbers, options, join.what)
    return Plan(tuple(_unmask_names(text, known) for text in plan.questions), join)


def _plan_comparison(masked: str) -> Plan | None:
    """Ask the templates of each of the two options, or of their relatives or makers."""
    for how, shape, ask in load_chinese().comparisons:
        if (found := shape.fullmatch(masked)) is not None:
            options = (found["a"], found["b"])
            groups = found.groupdict()
            templates = [one.replace("{verb}", groups.get("verb") or "") for one in ask]
            rel = groups.get("rel")
            first = [f"{option}的{rel}是谁？" for option in options] if rel else []
            return plan_for_each(how, options, first, templates)
    return None


def _plan_chain(masked: str) -> Plan | None:
    """Ask one question per relation of the subject, the innermost first."""
    asked = _parse_masked_question(masked)
    if asked is not None and _relation_step(asked.subject):
        before, _, behind = masked.partition(asked.subject)
        rels: list[str] = []
        subject = asked.subject
        while (step := _relation_step(subject)) is not None:
            subject, rels = step["x"], [step["rel"], *rels]
        questions = _relation_questions(subject, rels)
        return Plan((*questions, f"{before}#{len(rels)}{behind}？"))
    found = _CHAIN_QUESTION.fullmatch(masked)
    parts = found["parts"].split("的") if found else []
    if found is None or len(parts) < 3:
        return None
    questions = _relation_questions(parts[0], parts[1:-1])
    return Plan((*questions, f"#{len(questions)}的{parts[-1]}{found['asks']}？"))


def _relation_questions(subject: str, rels: Sequence[str]) -> list[str]:
    questions = []
    for number, rel in enumerate(rels, start=1):
        questions.append(f"{subject}的{rel}是谁或什么？")
        subject = f"#{number}"
    return questions


# -- sentences


def find_chinese_answer(question: str, passages: Sequence[Passage]) -> tuple[Passage, Span] | None:
    """Find the span of the answer in the sentences about the question's subject."""
    asked = parse_attribute_question(question)
    if asked is None or not (name := asked.subject.strip(f"{_OPENS}{_CLOSES} ")):
        return None
    for passage in sorted(passages, key=lambda p: p.title != name):
        for start, end in _find_sentences_about(name, passage):
            for first, last in _find_answer_spans(asked, name, passage.text[start:end]):
                return passage, (start + first, start + last)
    return None


def _find_sentences_about(name: str, passage: Passage) -> Iterator[Span]:
    """Yield the sentences about a name: those that begin with it or continue with a pronoun."""
    whole, on = passage.title.strip(f"{_OPENS}{_CLOSES} ") == name, False
    for start, end in sentence_spans(passage.text):
        sentence = passage.text[start:end].lstrip(f"{_OPENS}# ")
        begins = sentence.startswith(name) and _name_ends_here(sentence, name)
        on = begins or (on and _CONTINUES.match(sentence) is not None)
        if on or whole:
            yield start, end


def _name_ends_here(sentence: str, name: str) -> bool:
    """Whether the name is complete in the sentence: 王小 is not in 王小波是."""
    behind = sentence[len(name) : len(name) + 1]
    return not re.match(f"[{HAN}·]", behind) or behind in _AFTER_NAME


def _find_answer_spans(asked: AskedAttribute, name: str, sentence: str) -> Iterator[Span]:
    table = load_chinese()
    person = asked.attribute in table.relations
    if not person and _is_about_relative(name, sentence):
        return
    lived = _find_life_date(name, sentence, asked.attribute)
    if lived is not None:
        yield lived
    for pattern in table.answers.get(asked.attribute, ()):
        for found in pattern.finditer(sentence):
            if not (person and (_NO_NAME.match(found["v"]) or found["v"] == name)):
                yield found.span("v")


def _is_about_relative(name: str, sentence: str) -> bool:
    """Whether a sentence is about a relative or maker: X的父亲1920年出生于济南."""
    owner = rf"[{_OPENS}]?(?:{re.escape(name)}|他|她|它|其)[{_CLOSES}]?的?"
    return re.match(rf"{owner}(?:{load_chinese().any_relation})", sentence) is not None


def _find_life_date(name: str, sentence: str, attribute: str) -> Span | None:
    """Find the date of birth or death in brackets right after the name."""
    if attribute not in ("born", "died"):
        return None
    at = sentence.find(name) + len(name)
    bracket = _BRACKET.match(sentence, at + (sentence[at : at + 1] in tuple(_CLOSES)))
    until = _UNTIL.search(sentence, *bracket.span()) if bracket else None
    if bracket is None or until is None:
        return None
    side = (bracket.start(), until.start()) if attribute == "born" else (until.end(), bracket.end())
    found = load_chinese().date.search(sentence, *side)
    return found.span() if found else None
