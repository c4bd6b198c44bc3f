"""What the model is asked of a passage, and which of its questions are kept."""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.reader.decode_batch import Job, Request
from bench.reader.examples import Passage
from clew.evaluate.metrics.answers import answer_tokens, normalise_answer, overlap_f1

LONGEST = 90  # characters of an answer
AGREED = 0.6  # overlap of two readings that counts as the same answer
KINDS = (
    "who did something or who someone is",
    "when something happened or a date",
    "where something is or took place",
    "how many or how much",
    "why something is so",
    "what a term means or what something is",
    "which option, command, file or setting does something",
    "what happens under a condition",
    "the name of a thing, a group, a place or a work",
    "what something is used for",
    "what kind of thing something is",
    "what someone did or said",
    "which condition must hold or what is required",
    "what comes before or after something",
    "what something is part of or belongs to",
)
STYLES = (
    ("written", ""),
    ("written", ""),
    ("written", ""),
    ("written", " Word the questions differently from the text: use synonyms and another order."),
    ("written", " Word the questions differently from the text: use synonyms and another order."),
    ("written", " Make the questions long, with two details of the text each."),
    ("written", " Make the questions short, as people type them in a hurry."),
    (
        "keyword",
        ' Instead of questions write instructions such as "Name ...", "Find ..." or "Give ...".',
    ),
    (
        "keyword",
        " Instead of questions write search queries of three to seven words without question mark.",
    ),
    ("written", " Describe things by what they do or are instead of naming them where you can."),
)
_BEGIN = "<|im_start|>user\n"
_REPLY = "<|im_end|>\n<|im_start|>assistant\n"
_SYSTEM = (
    "<|im_start|>system\nYou prepare reading tests. You follow the format exactly.<|im_end|>\n"
)
_PAIR = re.compile(r"Q\d*[:.)]\s*(.+?)\s*\n\s*A\d*[:.)]\s*(.+?)\s*(?=\n|$)")
_VAGUE = re.compile(
    r"\b(the|this|given|above|following) (text|passage|article|paragraph|sentence|excerpt|author|"
    r"document|section|snippet)\b|\baccording to\b|\bmentioned\b|\bdescribed (here|above|in the)\b",
    re.I,
)
_PRONOUN = re.compile(r"\b(he|she|they|his|her|him|their|them|it|its|this|these|those)\b", re.I)
_NONE = re.compile(
    r"^\W*(none|no answer|not (stated|mentioned|given|specified|said)|n/?a|unknown)\b", re.I
)
_CONTENT = re.compile(r"\w{4,}")
_ASKING = frozenset(("what", "whic", "when", "wher", "whos", "whom", "does"))
_NAME = re.compile(r"\b(?:[A-Z][\w.-]+(?: [A-Z][\w.-]+)*|\d[\d.,]*\d|\d)\b")


def begin_text(passage: Passage) -> str:
    """The prompt up to the end of the text, shared by everything asked of it."""
    return f'{_SYSTEM}{_BEGIN}Text "{passage.title}":\n{passage.text}\n\n'


def ask_questions(rng: random.Random) -> tuple[str, Request]:
    """The request for four questions, and the kind of what comes back."""
    kind, style = rng.choice(STYLES)
    first, second, third, fourth = rng.sample(KINDS, 4)
    task = (
        f"Write four test items about the text above: ask for {first}; {second}; {third}; "
        f"{fourth}. Where the text has nothing of a kind, ask for something else that it says. "
        "Every item must be clear without the text at hand, so use names, never he, she, it or "
        "this, and never mention the text. Every answer has one to eight words and is copied "
        f"exactly from the text.{style}\nFormat, four times:\nQ: question\nA: answer"
    )
    return kind, Request(f"{task}{_REPLY}Q:", 220, 0.8)


def ask_unanswered() -> Request:
    """The request for questions the text does not answer."""
    task = (
        "Write two questions about the same people and things as the text above that look as if "
        "the text answered them, but whose answer it does not give. Use names, not he or it, and "
        "never mention the text.\nFormat, twice:\nQ: question"
    )
    return Request(f"{task}{_REPLY}Q:", 80, 0.8)


def ask_answer(question: str) -> Request:
    """The request for a second reading."""
    task = (
        f"Question: {question}\nAnswer with as few words as possible, copied exactly from the text "
        "above. If the text does not say it, answer: none"
    )
    return Request(f"{task}{_REPLY}", 24, stop="\n")


def ask_again(question: str) -> Request:
    """The request for a third reading, in other words than the second."""
    task = (
        f"Find in the text above what answers this: {question}\nWrite only those words of the "
        "text, nothing else; write none if there are no such words."
    )
    return Request(f"{task}{_REPLY}", 24, stop="\n")


def ask_about(name: str, title: str) -> Request:
    """The request for questions whose answer is a name."""
    task = (
        f'Write three different questions about "{title}" whose answer is "{name}", going by what '
        f'the text above says. Each of them names "{title}", and none names "{name}" or mentions '
        "the text.\nFormat, three times:\nQ: question"
    )
    return Request(f"{task}{_REPLY}Q:", 110, 0.7)


def ask_phrase(question: str) -> Request:
    """The request for the noun phrase that stands for the answer of a question."""
    task = (
        "Turn a question into a noun phrase that stands for its answer, keeping its names.\n"
        "Who built the Marrow Bridge? -> the person who built the Marrow Bridge\n"
        "In which town did Ilse Brandvik grow up? -> the town where Ilse Brandvik grew up\n"
        "What is the mother company of Vessen Rail? -> the mother company of Vessen Rail\n"
        f"{question} ->"
    )
    return Request(f"{task}{_REPLY}the", 32, stop="\n")


@dataclass
class Kept:
    """Everything kept so far, and how much was rejected and why."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    by_passage: dict[str, list[tuple[str, str, tuple[int, int]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Questions of a passage with their answers and spans."""
    pending: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    """Questions of similar passages that a passage is to be asked."""
    counts: Counter[str] = field(default_factory=Counter)

    def add(
        self, kind: str, question: str, ids: list[str], answer: tuple[int, int, int] | None
    ) -> None:
        """Keep one question."""
        self.counts[kind] += 1
        self.rows.append({"kind": kind, "question": question, "passages": ids, "answer": answer})

    def take(self) -> list[dict[str, Any]]:
        """Rows since the last call."""
        rows, self.rows = self.rows, []
        return rows


def read_pairs(reply: str) -> list[tuple[str, str]]:
    """Questions and answers of a reply."""
    return [(q.strip(), a.strip().strip('"“”')) for q, a in _PAIR.findall(f"Q:{reply}")]


def find_span(text: str, answer: str, question: str) -> tuple[int, int] | None:
    """Where the answer stands; of several places, the one with most of the question around."""
    answer = answer.strip(" .,;:\"'“”`")
    if not answer:
        return None
    places = [m.start() for m in re.finditer(re.escape(answer), text, re.I)]
    places = [at for at in places if _is_whole(text, at, at + len(answer))]
    if not places:
        return None
    asked = {word.lower() for word in _CONTENT.findall(question)}

    def shared(at: int) -> int:
        around = text[max(0, at - 160) : at + len(answer) + 160].lower()
        return len(asked & set(_CONTENT.findall(around)))

    best = max(places, key=shared)
    return best, best + len(answer)


def _is_whole(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return not (before.isalnum() and text[start].isalnum()) and not (
        after.isalnum() and text[end - 1].isalnum()
    )


def fault_of(question: str, answer: str, passage: Passage) -> str:
    """Why a question is not kept, or ""."""
    words = question.split()
    if not 3 <= len(words) <= 40 or len(answer.split()) > 40:
        return "length"
    if _VAGUE.search(question):
        return "vague"
    if normalise_answer(answer) in normalise_answer(question):
        return "answer in question"
    if _PRONOUN.search(question) and not re.search(r"[a-z] [A-Z]", question):
        return "pronoun"
    known = {word.lower() for word in _CONTENT.findall(f"{passage.title} {passage.text}")}
    if not {word.lower() for word in _CONTENT.findall(question)} & known:
        return "unrelated"
    return ""


def agree(one: str, other: str) -> bool:
    """Whether two readings name the same answer."""
    if not one or not other:
        return False
    return overlap_f1(answer_tokens(one), answer_tokens(other)) >= AGREED


def confirms(answer: str, second: str) -> bool:
    """Whether a second reading names the same answer, or the part of it that was asked for."""
    words, again = set(answer_tokens(answer)), set(answer_tokens(second))
    return agree(answer, second) or (bool(again) and again <= words)


def is_refusal(reply: str) -> bool:
    """Whether the model says that the text has no answer."""
    return bool(_NONE.match(reply.strip())) or not reply.strip()


def write_about(passage: Passage, kept: Kept, rng: random.Random) -> Job:
    """Questions of one passage, read a second time; then questions of similar passages."""
    yield begin_text(passage)
    kind, request = ask_questions(rng)
    reply = yield request
    for question, answer in read_pairs(reply)[:4]:
        kept.counts["proposed"] += 1
        fault = fault_of(question, answer, passage)
        if fault:
            kept.counts[f"- {fault}"] += 1
            continue
        second = (yield ask_answer(question)).strip()
        if is_refusal(second):
            kept.counts["- second reading"] += 1
            continue
        readings = [answer, second]
        if not confirms(answer, second):
            third = (yield ask_again(question)).strip()
            if is_refusal(third) or not agree(second, third):
                kept.counts["- third reading"] += 1
                continue
            readings = [second]
        places = [find_span(passage.text, one, question) for one in readings]
        spans = [one for one in places if one and one[1] - one[0] <= LONGEST]
        if not spans:
            kept.counts["- not in text"] += 1
            continue
        span = min(spans, key=lambda one: one[1] - one[0])
        kept.add(kind, question, [passage.id], (0, *span))
        named = passage.text[span[0] : span[1]]
        kept.by_passage[passage.id].append((question, named, span))
        for other in passage.similar[:2]:
            kept.pending[other].append((question, named))
        yield from _ask_swapped(question, named, passage, kept, rng)
    yield from _write_unanswered(passage, kept, rng)
    yield from _ask_pending(passage, kept, rng)


def _write_unanswered(passage: Passage, kept: Kept, rng: random.Random) -> Iterator[Any]:
    if rng.random() > 0.5:
        return
    reply = yield ask_unanswered()
    for line in re.findall(r"Q\d*[:.)]\s*(.+)", f"Q:{reply}")[:2]:
        question = line.strip()
        if fault_of(question, "\0", passage) or not question.endswith("?"):
            continue
        if is_refusal((yield ask_answer(question))):
            kept.add("unanswered", question, [passage.id], None)


def _ask_swapped(
    question: str, answer: str, passage: Passage, kept: Kept, rng: random.Random
) -> Iterator[Any]:
    """The question about another name or number of the text, kept if it then has no answer."""
    names = [one for one in _NAME.findall(question)[0 if question[:1].islower() else 1 :]]
    if not names or rng.random() > 0.5:
        return
    old = rng.choice(names)
    same_kind = [one for one in _NAME.findall(passage.text) if one[0].isdigit() == old[0].isdigit()]
    others = [one for one in same_kind if one not in question and one not in answer]
    if not others:
        return
    swapped = question.replace(old, rng.choice(others), 1)
    if is_refusal((yield ask_answer(swapped))):
        kept.add("swapped", swapped, [passage.id], None)
    else:
        kept.counts["- swapped"] += 1


def _ask_pending(passage: Passage, kept: Kept, rng: random.Random) -> Iterator[Any]:
    """Questions of similar passages: mostly no answer here, sometimes the same one."""
    waiting = kept.pending.pop(passage.id, [])
    for question, answer in rng.sample(waiting, min(2, len(waiting))):
        reply = (yield ask_answer(question)).strip()
        span = find_span(passage.text, answer, question)
        if is_refusal(reply) and span is None:
            kept.add("negative", question, [passage.id], None)
        elif span is not None and agree(reply, answer):
            kept.add("written", question, [passage.id], (0, *span))


def write_two_hop(
    first: Passage, second: Passage, name: str, kept: Kept, rng: random.Random
) -> Job:
    """Questions of the second passage with its name replaced by what the first says of it."""
    yield begin_text(first)
    title = re.sub(r" \([^)]*\)$", "", first.title)
    pattern = re.compile(rf"(?:\bthe )?\b{re.escape(name)}\b", re.I)
    usable = [one for one in kept.by_passage[second.id] if pattern.search(one[0])]
    reply = yield ask_about(name, title)
    for line in re.findall(r"Q\d*[:.)]\s*(.+)", f"Q:{reply}")[:3]:
        kept.counts["questions for a name"] += 1
        about = line.strip()
        if not about.endswith("?") or fault_of(about, name, first):
            kept.counts["- question for a name"] += 1
            continue
        if not confirms((yield ask_answer(about)).strip(), name):
            kept.counts["- names another"] += 1
            continue
        phrase = clean_phrase((yield ask_phrase(about)))
        if not phrase or not _stands_for(phrase, about, name):
            kept.counts["- phrase"] += 1
            continue
        for question, answer, span in rng.sample(usable, min(2, len(usable))):
            asked = pattern.sub(phrase, question, count=1)
            asked = asked[:1].upper() + asked[1:]
            if pattern.search(asked) or answer.lower() in asked.lower():
                kept.counts["- still named"] += 1
                continue
            kept.add("two-hop", asked, [first.id, second.id], (1, *span))


def clean_phrase(reply: str) -> str:
    """The noun phrase of a reply, without a final mark; empty where it is no short phrase."""
    phrase = f"the {reply.strip()}".split("\n")[0].strip().rstrip(".?!,;:").replace('"', "")
    phrase = re.sub(r"^the the\b", "the", phrase, flags=re.I)
    return phrase if 3 <= len(phrase.split()) <= 18 else ""


def _stands_for(phrase: str, question: str, name: str) -> bool:
    """Whether a phrase keeps what its question says and does not give the name away."""
    words = {word.lower() for word in _CONTENT.findall(name)} or {name.lower()}
    said = {word.lower()[:4] for word in _CONTENT.findall(phrase)}
    wanted = {word.lower()[:4] for word in _CONTENT.findall(question)} - _ASKING
    given_away = words & {word.lower() for word in _CONTENT.findall(phrase)}
    return not given_away and len(wanted & said) >= 0.6 * len(wanted)
