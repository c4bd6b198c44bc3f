"""A model that knows every answer and replies to each prompt of each agent in its own shape.

Where the lines shown state the gold it answers with their numbers; where not, it searches on by the
titles of the gold documents, and says in the end what is missing (in `open` it knows by itself).
`bench.perfect` measures what comes of it; the tests ask it too.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from clew.llm.chat import Request
from clew.testing.fakes import prompt_name
from clew.text.sentences import sentence_spans

_ROW = re.compile(r"^ *(?:\[(\d+)\] |- |\d+\. )?(.*?)(?: \(score [\d.]+\))?$")
_LEFT = re.compile(r"(?:Further rounds of calls|Turns left to act|can be made): (\d+)")
_SHORT = 12  # bytes; a shorter row is in every document
Row = tuple[int, str]
"""A line of a prompt, and its number as evidence, or 0."""


@dataclass(frozen=True)
class Gold:
    """What a perfect model knows of one question; without `short` there is no answer."""

    question: str
    short: str = ""
    says: str = ""
    """The answer in sentences, by default one."""
    pages: Mapping[str, str] = field(default_factory=dict)
    """Title → text of the documents that say it, or that come nearest to saying it."""
    needs: tuple[str, ...] = ()
    """What must be shown, word for word; by default the short answer, where a document has it."""
    asked: str = ""
    """A follow-up as it is asked, where `question` is what it means."""
    history: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()
    """All names of the answer."""

    def lacking(self, rows: Sequence[Row]) -> list[str]:
        """Return the titles of the pages that the rows do not state, or not all that is needed."""
        stated = {
            title: " ".join(row for _, row in rows if states(row, title, text)).casefold()
            for title, text in self.pages.items()
        }
        needs = self.needs or (self.short,)
        held = " ".join(stated.values())
        return [
            title
            for title, text in self.pages.items()
            if not stated[title]
            or any(n.casefold() in text.casefold() and n.casefold() not in held for n in needs)
        ]

    def stating(self, rows: Sequence[Row], *, numbered: bool = True) -> list[Row]:
        """Return the rows that state a page."""
        pages = self.pages.items()
        return [r for r in rows if (r[0] or not numbered) and any(states(r[1], *p) for p in pages)]

    def numbers(self, rows: Sequence[Row], sentence: str) -> str:
        """Return the number of the line that has a sentence, else of a line of each page."""
        rows = sorted(rows, key=lambda row: not row[1].startswith(tuple(self.pages)))
        found = [[n for n, row in rows if n and sentence in row]]
        if not found[0]:  # a conclusion
            pages = self.pages.items()
            found = [[n for n, row in rows if n and states(row, *page)] for page in pages]
        return "".join(f"[{n}]" for n in dict.fromkeys(n for some in found for n in some[:1]))


def states(row: str, title: str, text: str) -> bool:
    """Whether a line shows a page, a sentence of it, or a triple from it."""
    bare = row.removeprefix(f"{title}: ")
    if bare != row or row.strip(" .") in text and len(row.encode()) > _SHORT:
        return True
    if row.count(" | ") == 2:
        return all(part.split(":")[0].strip() in f"{title} {text}" for part in row.split(" | "))
    return any(one in row for one in split_sentences(text) if len(one.encode()) > _SHORT)


@cache
def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [text[start:end].strip() for start, end in sentence_spans(text)]


@dataclass(frozen=True)
class PerfectModel:
    """Answers every prompt from the gold of the question that it asks."""

    golds: Sequence[Gold]

    def __call__(self, request: Request) -> str:
        """Return the reply in the shape of the prompt."""
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        name, last = prompt_name(messages), messages[-1]["content"]
        if name == "condense":
            asked = next(g for g in self.golds if g.asked and g.asked in last)
            return json.dumps({"question": asked.question}, ensure_ascii=False)
        if name.startswith("graph_r1"):
            return self._step_in_tags([m["content"] for m in messages])
        gold = self._find(last)
        rows = read_rows(last)
        if name in _OF_QUERY:
            reply = _OF_QUERY[name](self._targets(last, gold), rows, last)
        elif name in _OF_QUESTION:
            strict = "and from nothing else" in messages[0]["content"]
            reply = _OF_QUESTION[name](gold, rows, last, strict)
        else:  # retrieval goes without help
            reply = {}
        return json.dumps(reply, ensure_ascii=False)

    def _find(self, text: str) -> Gold:
        """Return the longest question of the set that a text asks."""
        asked = [one for one in self.golds if one.question in text]
        return max(asked, key=lambda one: len(one.question), default=Gold(""))

    def _targets(self, last: str, gold: Gold) -> Gold:
        """Return the gold of the whole question, or of a query about pages that it names."""
        if gold.question:
            return gold
        query = last.rpartition("uery: ")[2] or last
        query = last.rpartition("Lookup: ")[2] if "Lookup: " in last else query
        about = [one for one in self.golds if any(f"“{title}”" in query for title in one.pages)]
        pages = {t: x for one in about for t, x in one.pages.items() if f"“{t}”" in query}
        needs = tuple(need for one in about for need in one.needs or (one.short,) if need)
        return Gold("", pages=pages, needs=needs)

    def _step_in_tags(self, texts: Sequence[str]) -> str:
        gold, known = self._find(texts[1]), [t for t in texts if t.startswith("<knowledge>")]
        rows = [row for text in known for row in read_rows(text)]
        lacking = gold.lacking(rows)
        wanted = [*map(_ask_for, lacking), *(f"{one} {gold.question}" for one in ["", *lacking])]
        new = [one for one in wanted if not any(f"<query>{one}<" in text for text in texts)]
        if (lacking or not known) and new and "No queries are left" not in texts[-1]:
            return f"<think>This must be found.</think><query>{new[0]}</query>"
        unknown = not gold.short or (lacking and "unknown" in texts[1])
        said = "unknown" if unknown else gold.short
        told = [one for text in gold.pages.values() for one in split_sentences(text)]
        thought = " ".join(one for one in told if any(one in row for _, row in rows))
        return f"<think>{thought}</think><answer>{said}</answer>"


def read_rows(text: str) -> list[Row]:
    """Return the lines of a prompt; what goes on indented belongs to the line before."""
    lines = text.replace("\n    ", " ").splitlines()
    return [(int(m[1] or 0), m[2]) for line in lines if (m := _ROW.match(line))]


def _ask_for(title: str) -> str:
    return f"What is told of “{title}”?"


def _write(gold: Gold, rows: Sequence[Row], last: str, strict: bool) -> dict[str, Any]:
    """Write an answer, or what to look at first: what was asked already is not asked again."""
    lacking = gold.lacking(rows)
    if gold.short and not lacking:
        says = gold.says or f"The answer is {gold.short}."
        said = " ".join(f"{one} {gold.numbers(rows, one)}" for one in split_sentences(says))
        return {"reasoning": "r", "enough": True, "answer": said, "short": gold.short}
    left = _LEFT.search(last)
    if left and int(left[1]):
        queries = [(t, q) for t in lacking for q in (t, _ask_for(t), f"{t} {gold.question}")]
        calls = [("search", {"query": query}) for _, query in queries]
        calls += [("entity", {"name": title}) for title in lacking]
        new = [c for c in calls if not any(f"={value!r}" in last for value in c[1].values())]
        if new:
            wants = [{"tool": tool, "arguments": given} for tool, given in new[:2]]
            return {"reasoning": "r", "wants": wants}
    missing = f"what is told of {', '.join(lacking)}" if lacking else f"this: {gold.question}"
    if strict or not gold.short:
        return {"reasoning": "r", "enough": False, "short": "unknown", "missing": missing}
    says = gold.says or f"The answer is {gold.short}."
    return {"enough": False, "answer": says, "short": gold.short, "missing": missing}


def _reflect(gold: Gold, rows: Sequence[Row], last: str, _: bool) -> dict[str, Any]:
    said = _write(gold, rows, last, True)
    if "wants" in said:
        return {"action": "query", "text": [*said["wants"][0]["arguments"].values()][0]}
    return {"action": "answer", "text": said["short"]}


def _think_on(gold: Gold, rows: Sequence[Row], last: str, _: bool) -> dict[str, Any]:
    new = [one for one in map(_ask_for, gold.lacking(rows)) if one not in last]
    return {"sentence": new[0] if new else f"It is {gold.short}.", "done": not new}


def _plan_logic(gold: Gold, *_: Any) -> dict[str, Any]:
    steps = [
        {"question": _ask_for(title), "op": "retrieve", "args": [title, "what is told", "?"]}
        for title in gold.pages
    ]
    return {"steps": steps or [{"op": "retrieve", "args": [gold.question, "is", "?"]}]}


def _judge(key: str, good: Any, bad: Any) -> Any:
    def verdict(gold: Gold, rows: Sequence[Row], *_: Any) -> dict[str, Any]:
        lacking = gold.lacking(rows)
        return {key: bad if lacking or not gold.short else good, "missing": ", ".join(lacking)}

    return verdict


def _note(gold: Gold, rows: Sequence[Row], *_: Any) -> dict[str, Any]:
    found = gold.stating(rows)
    return {"points": [{"text": row, "reports": [n], "score": 100} for n, row in found]}


def _plan_triples(gold: Gold, *_: Any) -> dict[str, Any]:
    keys = ("subject", "relation", "object")
    rows = [(f"“{t}”", "is told of", f"Entity#{n}") for n, t in enumerate(gold.pages, start=1)]
    return {"queries": [{"triples": [dict(zip(keys, row, strict=True))]} for row in rows]}


def _ask_parts(key: str) -> Any:
    def parts(gold: Gold, rows: Sequence[Row], last: str, _: bool) -> dict[str, Any]:
        titles = gold.lacking(rows) if key == "more" else [*gold.pages]
        return {"queries" if key == "more" else key: [_ask_for(title) for title in titles]}

    return parts


def _refine(gold: Gold, rows: Sequence[Row], *_: Any) -> dict[str, Any]:
    found = gold.stating(rows)
    return {"items": [n for n, _ in found], "context": "\n".join(row for _, row in found)}


def _answer_part(gold: Gold, rows: Sequence[Row], *_: Any) -> dict[str, Any]:
    found = [row for _, row in gold.stating(rows, numbered=False)]
    return {"answer": gold.short or (found[0] if found else "unknown")}


def _read_values(gold: Gold, rows: Sequence[Row], *_: Any) -> dict[str, Any]:
    found = gold.stating(rows)
    found.sort(key=lambda row: (not any(need in row[1] for need in gold.needs), -len(row[1])))
    return {"values": [{"text": row[:200], "items": [n]} for n, row in found[:1]]}


_OF_QUERY = {
    "refine_text": _refine,
    "refine_triples": _refine,
    "sub_answer": _answer_part,
    "read_values": _read_values,
    "ground": lambda gold, rows, last: {"query": re.sub(r"#\d+", "it", last.rpartition(": ")[2])},
}
"""Prompts that may be about a part of the question alone."""
_OF_QUESTION = {
    **dict.fromkeys(("answer", "answer_or_search", "react", "reduce_points"), _write),
    "reflect": _reflect,
    "next_thought": _think_on,
    "decompose_by_schema": _ask_parts("sub_questions"),
    "decompose_text": _ask_parts("queries"),
    "decompose_triples": _plan_triples,
    "expand_text": _ask_parts("more"),
    "expand_triples": lambda *_: {"queries": []},
    "draft": lambda gold, rows, *_: {"answer": "" if gold.lacking(rows) else gold.short},
    "verify": _judge("verdict", "ACCEPT", "REJECT"),
    "verify_cited": lambda *_: {"entailed": True},
    "intent": lambda *_: {"intent": "question", "topic": ""},
    "logic": _plan_logic,
    "check_argument": _judge("sufficient", True, False),
    "check_result": _judge("sufficient", True, False),
    "map_reports": _note,
}
