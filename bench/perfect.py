"""What each agent refuses or garbles although a perfect model was shown the answer.

`python -m bench.perfect --data DIR --kb DIR [--recipes clew,naive] [--modes open,reject]`. Reported
are the exact matches, those of the questions whose gold was shown, and what was refused then. A row
of questions may have `needs`, `says` and `history` as in `Gold`, and what a follow-up `means`.
"""

import argparse
import asyncio
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.machine import print_result, require_path
from bench.perfect_model import Gold, PerfectModel, read_rows
from clew.agents.ask import AskOptions
from clew.agents.base import Answer, Mode
from clew.agents.conversation import ConversationTurn
from clew.config import ROLES, ModelSettings, load_settings
from clew.engine import KnowledgeBase
from clew.evaluate.datasets import load_dataset
from clew.evaluate.metrics.answers import exact_match
from clew.evaluate.scoring import RecipeOutput
from clew.llm.structured import pin_mode
from clew.models import Models
from clew.testing.fakes import ScriptedChat

RECIPES = (
    "clew,naive,lightrag,pathrag,hipporag2,lego-12,graphsearch,youtu,rograg,graph-r1,react,ircot,"
    "msgraphrag-global"
)


def load_golds(folder: Path, limit: int) -> list[Gold]:
    """Read the questions of a data set folder with the pages that answer them."""
    lines = (folder / "corpus.jsonl").read_text("utf-8").splitlines()
    corpus = {str(row["id"]): row for row in map(json.loads, lines)}
    raw = map(json.loads, (folder / "questions.jsonl").read_text("utf-8").splitlines())
    golds = []
    for question, row in zip(load_dataset(folder).questions[:limit], raw, strict=False):
        pages = {corpus[one]["title"]: corpus[one]["text"] for one in question.gold}
        golds.append(
            Gold(
                row.get("means", question.text),
                question.answers[0] if question.answers and question.answerable else "",
                row.get("says", ""),
                pages,
                tuple(row.get("needs", ())),
                question.text if "means" in row else "",
                tuple(map(tuple, row.get("history", ()))),
                question.answers,
            )
        )
    return golds


async def ask_one(base: KnowledgeBase, recipe: str, gold: Gold, mode: Mode) -> dict[str, Any]:
    """Ask one question and say whether its gold was shown, and what came of it."""
    turns = [ConversationTurn(*turn) for turn in gold.history]
    manner = AskOptions(record_prompts=True, history=turns)
    answer = await base.ask(gold.asked or gold.question, recipe=recipe, mode=mode, manner=manner)
    refused = answer.verdict == "refused"
    short = RecipeOutput(answer=answer.answer, short=answer.candidate, refused=refused)
    right = bool(exact_match(short.named_answer(), gold.names)) if gold.short else refused
    return {
        "recipe": recipe,
        "mode": mode,
        "question": gold.asked or gold.question,
        "answerable": bool(gold.short),
        "right": right,
        "shown": shows_gold(answer, gold),
        "refused": refused,
        "error": answer.model_error,
        "gold": gold.short,
        "answer": answer.answer,
        "missing": answer.missing,
    }


def shows_gold(answer: Answer, gold: Gold) -> bool:
    """Whether the prompt of the last call showed all of the gold."""
    texts = [m.content for p in answer.prompts[-1:] for m in p.messages[1:]]
    return not gold.lacking([row for text in texts for row in read_rows(text)])


def count(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Count what was right, shown, and lost though shown."""
    asked = [row for row in rows if row["answerable"]]
    rest = [row for row in rows if not row["answerable"]]
    return {
        "em": round(sum(row["right"] for row in asked) / max(1, len(asked)), 3),
        "shown": sum(row["shown"] for row in asked),
        "lost though shown": sum(row["shown"] and not row["right"] for row in asked),
        "refused rightly": f"{sum(row['refused'] for row in rest)}/{len(rest)}",
        "errors": sum(bool(row["error"]) for row in rows),
    }


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Measure every recipe in every mode on a copy of the knowledge base."""
    golds = load_golds(given.data, given.limit)
    chat = ScriptedChat(PerfectModel(golds))
    pin_mode(chat.name, "json")
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "kb"
        shutil.copytree(given.kb, copy)
        models = ModelSettings(model="perfect", window=given.window)
        settings = load_settings().model_copy(update={"kb": copy, "models": models})
        base = await KnowledgeBase.open(settings)
        base.models = Models(models, base.store, chats=dict.fromkeys(ROLES, chat))
        for recipe in given.recipes.split(","):
            for mode in given.modes.split(","):
                rows = [await ask_one(base, recipe, gold, mode) for gold in golds]
                chat.requests.clear()
                figures[f"{recipe} {mode}"] = found = count(rows)
                print(f"{recipe:18}{mode:8}{found}", flush=True)
                if given.out:
                    with given.out.open("a", encoding="utf-8") as file:
                        file.writelines(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)
        await base.close()
    return figures


def main() -> None:
    """Parse the options and print one row for each recipe and mode."""
    parser = argparse.ArgumentParser(prog="bench.perfect")
    parser.add_argument("--data", type=Path, required=True, help="a dataset folder")
    parser.add_argument("--kb", type=Path, required=True)
    parser.add_argument("--recipes", default=RECIPES)
    parser.add_argument("--modes", default="open,reject")
    parser.add_argument("--limit", type=int, default=25)
    parser.add_argument("--window", type=int, help="the model's context window")
    parser.add_argument("--out", type=Path, help="one JSON line per question, recipe and mode")
    given = parser.parse_args()
    require_path(given.data, "--data")
    require_path(given.kb, "--kb")
    print_result("perfect", asyncio.run(measure(given)), {"questions": given.limit})


if __name__ == "__main__":
    main()
