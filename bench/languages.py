"""Ask small documents in other languages what they say and what they do not, and fit confidence.

`python -m bench.languages ask --kbs DIR --rows FILE [--beside FILE…]` asks the questions of
`languages.toml` of each document alone, of all together, and of all beside other files;
`report --rows FILE` counts what is told and right, and `fit --rows FILE --out FILE` fits the
confidence of answers that are found by words alone, and prints how documents that were left out do.
"""

import argparse
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import clew
from bench.machine import read_jsonl
from clew.agents.answering.word_signals import BY_WORDS
from clew.agents.core.confidence import (
    DEFAULT_THRESHOLD,
    LogisticModel,
    fit_logistic,
    format_models,
    load_shipped_models,
)

Rows = Sequence[Mapping[str, Any]]
KIND = "words"
SIGNALS = (
    "beside",
    "fits",
    "lacks",
    "lead",
    "misfit",
    "named",
    "place",
    "said",
)
_RIDGE = 1.0


def read_pages() -> list[dict[str, Any]]:
    """Return the documents with their questions."""
    held: list[dict[str, Any]] = tomllib.loads(
        (Path(__file__).parent / "languages.toml").read_text("utf-8")
    )["page"]
    return held


def ask_pages(kbs: Path, beside: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each question of each knowledge base."""
    pages = read_pages()
    folder = kbs / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{page['language']}{number}.md" for number, page in enumerate(pages)]
    for file, page in zip(files, pages, strict=True):
        file.write_text(page["text"] + "\n", encoding="utf-8")
    corpora = {f"alone {n}": ([file], [n]) for n, file in enumerate(files)}
    corpora["together"] = (files, list(range(len(pages))))
    if beside:
        corpora["beside"] = ([*files, *map(Path, beside)], list(range(len(pages))))
    for name, (some, numbers) in corpora.items():
        fresh = not (kbs / name.replace(" ", "-")).exists()
        with clew.open(kbs / name.replace(" ", "-")) as kb:
            if fresh:
                kb.add([str(file) for file in some])
            for number in numbers:
                for row in _ask_page(kb, pages[number]):
                    yield {"corpus": name.split()[0], "page": number, **row}


def _ask_page(kb: Any, page: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for question, expected in [*page["asked"], *((one, None) for one in page["missing"])]:
        answer = kb.ask(question)
        quotes = [one.quote for one in answer.citations]
        right = answer.verdict == "answered" and expected is not None
        if right:
            texts = [answer.candidate] if answer.candidate else quotes
            right = any(expected in text for text in texts)
        yield {
            "language": page["language"],
            "question": question,
            "asked": expected is not None,
            "right": right,
            "confidence": answer.confidence,
            "kind": answer.kind,
            "signals": dict(answer.signals),
            "answer": answer.answer,
        }


def report(rows: Rows) -> None:
    """Print by corpus and language how many are right, told, and right of those told."""
    for corpus in dict.fromkeys(row["corpus"] for row in rows):
        for language in (*dict.fromkeys(row["language"] for row in rows), ""):
            some = [r for r in rows if r["corpus"] == corpus and language in ("", r["language"])]
            told = [row for row in some if row["confidence"] >= DEFAULT_THRESHOLD]
            asked, right = sum(r["asked"] for r in some), sum(r["right"] for r in some)
            good = sum(row["right"] for row in told)
            print(
                f"{corpus:9} {language or 'all':4} answerable {asked:3} right {right:3} "
                f"told {len(told):3} of them right {good:3}"
            )


def fit(rows: Rows, out: Path) -> None:
    """Fit the confidence of what is found by words, and report pages that were left out."""
    own = [row for row in rows if row["signals"].get(BY_WORDS)]
    again = []
    for page in dict.fromkeys(row["page"] for row in own):
        model = _fit([row for row in own if row["page"] != page])
        left = [row for row in own if row["page"] == page]
        again += [{**row, "confidence": model(row["signals"])} for row in left]
    print("left out:")
    report(again)
    model = _fit(own)
    print(model)
    out.write_text(format_models({**load_shipped_models(), KIND: model}) + "\n", "utf-8")


def _fit(rows: Rows) -> LogisticModel:
    table = [{name: row["signals"].get(name, 0.0) for name in SIGNALS} for row in rows]
    return fit_logistic(table, [row["right"] for row in rows], None, _RIDGE)


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("ask", "report", "fit"))
    parser.add_argument("--kbs", type=Path)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--beside", nargs="*", default=[])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.command == "ask":
        rows = list(ask_pages(args.kbs, args.beside))
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        args.rows.write_text("\n".join(lines) + "\n", "utf-8")
        report(rows)
    elif args.command == "report":
        report(list(read_jsonl(args.rows)))
    else:
        fit(list(read_jsonl(args.rows)), args.out)


if __name__ == "__main__":
    main()
