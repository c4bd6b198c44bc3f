"""What speaks for each answer about documents, to fit the confidence of quotes.

`python -m bench.documents.rows --rows FILE [--corpus NAME|all] [--split dev] [--kb-root DIR]` asks
every question as it is, and again with the passages hidden that hold its gold span: then what is
quoted is near and no answer. `python -m bench.confidence fit-quotes` fits to these rows.
"""

import argparse
import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.documents.__main__ import QUESTIONS, build_corpus
from bench.documents.corpora import CORPORA, PACKAGE_FILES, PAGES
from bench.documents.scoring import (
    UNANSWERABLE,
    DocumentQuestion,
    covers,
    load_questions,
    mentions,
    quotes_answer,
)
from bench.hidden import hide
from clew.engine import KnowledgeBase


def holds_gold(question: DocumentQuestion, text: str) -> bool:
    """Tell whether a passage has a gold span, or the values of the gold row."""
    if question.cells:
        return all(mentions(text, cell) for cell in question.cells)
    return any(covers(text, span) for span in question.spans)


def list_recipes(question: DocumentQuestion) -> Iterator[tuple[str, str | None]]:
    """Yield how a question is asked: as it is, and with its answer hidden if it has one."""
    yield "plain", None
    if question.kind != UNANSWERABLE:
        yield "hidden", hide(partial(holds_gold, question))


async def describe_question(kb: KnowledgeBase, question: DocumentQuestion) -> list[dict[str, Any]]:
    """Ask a question in both ways; an answer is right if it quotes or names the gold."""
    rows = []
    for wording, recipe in list_recipes(question):
        answer = await kb.ask(question.question, recipe=recipe)
        right = question.kind != UNANSWERABLE and quotes_answer(question, answer)
        rows.append(
            {
                "set": question.corpus,
                "wording": wording,
                "id": question.id,
                "question": question.question,
                "short": answer.candidate,
                "right": right,
                "confidence": answer.confidence,
                "signals": dict(answer.signals),
            }
        )
    return rows


async def main() -> None:
    """Ask the questions of the corpora and append a line for each answer."""
    parser = argparse.ArgumentParser(prog="python -m bench.documents.rows", description=__doc__)
    parser.add_argument("--corpus", default="all", help=f"all, or {', '.join(CORPORA)}")
    parser.add_argument("--split", choices=["dev", "held"], default="dev")
    parser.add_argument("--kb-root", type=Path, default=Path(".bench/documents"))
    parser.add_argument("--files", type=Path, default=PACKAGE_FILES, help="where packages install")
    parser.add_argument("--subset", type=int, default=PAGES, help="files of a corpus")
    parser.add_argument("--rows", type=Path, required=True)
    given = parser.parse_args()
    given.rebuild = False
    for name in list(CORPORA) if given.corpus == "all" else given.corpus.split(","):
        kb = await build_corpus(name, given)
        try:
            asked = [q for q in load_questions(QUESTIONS, name) if q.split == given.split]
            with given.rows.open("a", encoding="utf-8") as file:
                for question in asked:
                    for row in await describe_question(kb, question):
                        file.write(json.dumps(row, ensure_ascii=False) + "\n")
        finally:
            await kb.close()
        print(f"{name}: {len(asked)} questions", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
