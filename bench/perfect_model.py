"""A model that knows every answer: what each recipe refuses although the answer was in its prompt.

`python -m bench.perfect_model --data DIR --kb DIR --recipes naive,clew --limit 25`. The scripted
model answers in each prompt's own format, names the gold and copies the sentence that fits the
question best among those which hold it; where no line holds it, it says that it does not know.
The table also has the largest prompt of each recipe, in tokens as Clew estimates them.
"""

import argparse
import asyncio
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.machine import print_result, require_path
from clew.agents.ask import AskOptions
from clew.agents.citing.support import contains_answer, measure_overlap
from clew.agents.base import Answer
from clew.config import ROLES, ModelSettings, load_settings
from clew.engine import KnowledgeBase
from clew.errors import ClewError
from clew.evaluate.datasets import Question, load_dataset
from clew.evaluate.metrics.answers import exact_match, f1
from clew.evaluate.scoring import RecipeOutput
from clew.llm.chat import Request
from clew.llm.openai_api import estimate_prompt_tokens
from clew.llm.structured import pin_mode
from clew.models import Models
from clew.testing.fakes import ScriptedChat, prompt_name
from clew.text.sentences import sentence_spans

RECIPES = (
    "naive,clew,lightrag,pathrag,hypergraphrag,hipporag2,grag-m,lego-12,lego-13,tog,"
    "graphsearch,youtu,youtu-by-model,rograg,graph-r1,react,ircot"
)
MAX_PROMPT = 4000
"""Tokens of a default question's prompt."""
YES_NO = ("yes", "no")
# A line of evidence: numbered, found by ReAct, or one fact that Graph-R1 is shown.
LINE = re.compile(r"^(?:\[(\d+)\]|found:|-|\d+\.) (.+)$", re.MULTILINE)
EXAMPLE_END = "=== assistant ==="
OFFERED = re.compile(r"^(\d+): (.+)$", re.MULTILINE)  # an answer that may be chosen


@dataclass(frozen=True)
class Quotation:
    """A sentence that holds the answer, and the number of its line."""

    text: str = ""
    source: int = 0


@dataclass(frozen=True)
class PerfectModel:
    """Answers every prompt from the gold of the question that it asks."""

    golds: Mapping[str, str]

    def __call__(self, request: Request) -> str:
        """Return the reply in the format of the prompt."""
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        asked = self.find_question(messages[-1]["content"]) or self.find_question(
            "\n".join(m["content"] for m in messages[-6:])
        )
        gold = self.golds.get(asked, "")
        name = prompt_name(messages)
        if name.startswith("graph_r1"):
            return reply_in_tags(messages, asked, gold)
        found = quote_gold(messages[-1]["content"], asked, gold)
        whole = asked in messages[-1]["content"]
        if name == "choose_answer":
            return json.dumps({"reason": "", "choice": choose_gold(messages[-1]["content"], gold)})
        reply = reply_to(name, asked, gold if whole else "", found if whole else [])
        return json.dumps(reply, ensure_ascii=False)

    def find_question(self, text: str) -> str:
        """Return the longest question of the set that a text asks."""
        return max((one for one in self.golds if one in text), key=len, default="")


def quote_gold(prompt: str, question: str, gold: str) -> list[Quotation]:
    """Return the sentences that hold the gold, the one nearest to the question first.

    A yes or no stands in none: then the sentence of two lines that are nearest to the question.
    """
    rows = [(int(number or 0), text) for number, text in LINE.findall(prompt)]
    found = [
        (measure_overlap(question, f"{text.partition(': ')[0]} {sentence}"), number, sentence)
        for number, text in rows
        for start, end in sentence_spans(text)
        if contains_answer(gold, sentence := text[start:end]) or gold.casefold() in YES_NO
    ]
    best = sorted(found, key=lambda row: -row[0])
    if gold.casefold() not in YES_NO:
        return [Quotation(text, number) for _, number, text in best[:1]]
    by_line = {number: Quotation(text, number) for _, number, text in reversed(best)}
    return list(reversed(by_line.values()))[:2]


def choose_gold(prompt: str, gold: str) -> int:
    """Return the number of the offered answer that is the gold or most like it; 0 for none."""
    offered = OFFERED.findall(prompt.rpartition("Answers:")[2])
    scores = [(f1(text, [gold]), -int(number)) for number, text in offered]
    best, number = max(scores, default=(0.0, 0))
    return -number if best > 0 else 0


def reply_to(name: str, asked: str, gold: str, found: Sequence[Quotation]) -> dict[str, Any]:
    """Return what a perfect model replies to a prompt of this name."""
    known = gold if found else ""
    first = found[0] if found else Quotation()
    quoted = [{"text": one.text, "source": one.source} for one in found]
    act = {"action": "finish", "input": gold} if found else {"action": "search", "input": asked}
    step = {"action": "answer", "text": gold} if found else {"action": "query", "text": asked}
    reading = {"quote": first.text, "source": first.source, "answer": known or "unknown"}
    replies: dict[str, dict[str, Any]] = {
        "read": reading,
        "refine_read": {"notes": quoted, "answer": known or "unknown"},
        "refine": {"notes": quoted},
        "draft": {"steps": [one.text for one in found], "answer": known or "unknown"},
        "verify": {"verdict": "ACCEPT", "missing": ""},
        "expand": {"questions": []},
        "decompose": {"questions": [asked]},
        "relations": {"facts": []},
        "involved": {"parts": [{"question": asked}]},
        "logic": {"steps": []},
        "sufficient": {"sufficient": bool(found), "missing": ""},
        "enough_paths": {"enough": bool(found)},
        "intent": {"intent": "question", "topic": "documents"},
        "react": {"thought": first.text, **act},
        "reflect": {"thought": first.text, **step},
        "next_thought": {"sentence": first.text, "answer": known},
        "keywords": {"names": [], "topics": []},
    }
    sentences = [{"text": one.text, "sources": [one.source]} for one in found]
    written = {"enough": bool(found), "sentences": sentences, "short": known, "missing": ""}
    bare = name.removesuffix("_graph")
    return written if bare in ("answer", "conclude") else replies.get(bare, {})


def reply_in_tags(messages: Sequence[Mapping[str, str]], asked: str, gold: str) -> str:
    """Look the question up, then answer once the knowledge shown holds the gold."""
    shown = "\n".join(m["content"] for m in messages if "<knowledge>" in m["content"])
    if contains_answer(gold, shown) or (shown and gold.casefold() in YES_NO):
        return f"<think>The knowledge says it.</think><answer>{gold}</answer>"
    return f"<think>This must be looked up.</think><query>{asked}</query>"


def holds_gold(answer: Answer, question: Question) -> bool:
    """Whether a prompt showed the gold, beside the question itself; a yes or no always counts."""
    gold = question.answers[0]
    if gold.casefold() in YES_NO:
        return True
    shown = [m.content for p in answer.prompts for m in p.messages[1:] if m.role == "user"]
    texts = [text for one in shown for _, text in LINE.findall(one.rpartition(EXAMPLE_END)[2])]
    return any(contains_answer(gold, text.replace(question.text, " ")) for text in texts)


def explain_refusal(answer: Answer) -> str:
    """Return why an answer was refused, as one of a few kinds."""
    reason = answer.missing or answer.answer
    for words, kind in (
        ("confidence", "confidence"),
        ("relevance", "confidence"),
        ("do not mention", "names not mentioned"),
        ("supported", "no citation"),
        ("supports", "no citation"),
        ("no passage answers", "sub-question unanswered"),
        ("do not contain", "model said not enough"),
    ):
        if words in reason:
            return kind
    return "other"


async def measure_recipe(
    base: KnowledgeBase, recipe: str, questions: Sequence[Question], out: Path | None
) -> dict[str, Any]:
    """Ask every question in `reject` and count what was refused, and why."""
    rows: list[dict[str, Any]] = []
    for question in questions:
        options = AskOptions(record_prompts=True)
        answer = await base.ask(question.text, recipe=recipe, mode="reject", manner=options)
        refused = answer.verdict == "refused"
        said = RecipeOutput(
            answer=answer.answer, short=answer.candidate, refused=refused, plain=answer.plain
        ).named_answer()
        sizes = [estimate_prompt_tokens(p.messages) for p in answer.prompts]
        rows.append(
            {
                "recipe": recipe,
                "question": question.text,
                "gold": question.answers[0],
                "said": said,
                "em": exact_match(said, question.answers),
                "shown": holds_gold(answer, question),
                "refused": refused,
                "why": explain_refusal(answer) if refused else "",
                "answer": answer.answer,
                "largest": max(sizes, default=0),
            }
        )
    if out is not None:
        with out.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    lost = [row for row in rows if row["shown"] and row["refused"]]
    kinds = sorted({str(row["why"]) for row in lost})
    return {
        "n": len(rows),
        "em": round(sum(float(row["em"]) for row in rows) / max(1, len(rows)), 3),
        "shown": sum(bool(row["shown"]) for row in rows),
        "refused": sum(bool(row["refused"]) for row in rows),
        "refused though shown": len(lost),
        "why": {kind: sum(row["why"] == kind for row in lost) for kind in kinds},
        "largest prompt": max((int(row["largest"]) for row in rows), default=0),
    }


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Measure every recipe on a copy of the knowledge base."""
    questions = [q for q in load_dataset(given.data).questions if q.answers][: given.limit]
    chat = ScriptedChat(PerfectModel({q.text.strip(): q.answers[0] for q in questions}))
    pin_mode(chat.name, "json")
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "kb"
        shutil.copytree(given.kb, copy)
        models = ModelSettings(model="perfect", window=given.window)
        settings = load_settings().model_copy(update={"kb": copy, "models": models})
        base = await KnowledgeBase.open(settings)
        base.models = Models(models, base.store, chats=dict.fromkeys(ROLES, chat))
        for recipe in filter(None, given.recipes.split(",")):
            try:
                figures[recipe] = await measure_recipe(base, recipe, questions, given.out)
            except ClewError as error:  # a tree that is missing
                figures[recipe] = {"error": str(error)}
            chat.requests.clear()
            print(format_row(recipe, figures[recipe]), flush=True)
        await base.close()
    return figures


def format_row(recipe: str, found: Mapping[str, Any]) -> str:
    """Format one row of the table, in Markdown."""
    if "error" in found:
        return f"| {recipe} | {found['error']} |"
    why = ", ".join(f"{count} {kind}" for kind, count in found["why"].items()) or "–"
    over = " (over 4,000)" if found["largest prompt"] > MAX_PROMPT else ""
    cells = [f"{found['em']:.2f}", found["shown"], found["refused"], found["refused though shown"]]
    return (
        f"| {recipe} | {' | '.join(map(str, cells))} | {why} | {found['largest prompt']:,}{over} |"
    )


def main() -> None:
    """Parse the options and print the table."""
    parser = argparse.ArgumentParser(prog="bench.perfect_model")
    parser.add_argument("--data", type=Path, required=True, help="a dataset folder")
    parser.add_argument("--kb", type=Path, required=True)
    parser.add_argument("--recipes", default=RECIPES)
    parser.add_argument("--limit", type=int, default=25)
    parser.add_argument("--window", type=int, help="the model's context window")
    parser.add_argument("--out", type=Path, help="one JSON line per question and recipe")
    given = parser.parse_args()
    require_path(given.data, "--data")
    require_path(given.kb, "--kb")
    print("| recipe | EM | gold in a prompt | refused | of these, shown | why | largest prompt |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    print_result("perfect_model", asyncio.run(measure(given)), {"questions": given.limit})


if __name__ == "__main__":
    main()
