"""Loaders of data sets over texts: HotpotQA, MuSiQue, FlashRAG's, GraphRAG-Bench and others."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clew.evaluate.loaders.rows import (
    ConvertedDataset,
    Row,
    as_text_list,
    for_each_row,
    read_json_list,
)
from clew.evaluate.metrics.answers import parse_reversion


def load_hotpotqa(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load `hotpot_dev_distractor_v1.json`; `supporting_facts` name passages by title."""

    def take(row: Row, where: str) -> None:
        titles = {}
        for title, sentences in _parse_context(row["context"]):
            titles[title] = found.add_passage(title, _join_sentences(sentences))
        named = dict.fromkeys(_parse_titles(row["supporting_facts"]))
        missing = [title for title in named if title not in titles]
        if missing:
            found.add_problem(where, f"supporting fact {missing[0]!r} is not in the context")
        question = {
            "id": str(row["_id"] if "_id" in row else row["id"]),
            "question": str(row["question"]),
            "answer": str(row["answer"]),
            "type": str(row.get("type", "")),
            "gold": [titles[title] for title in named if title in titles],
        }
        if row.get("evidences"):
            question["gold_triples"] = row["evidences"]
        found.questions.append(question)

    for_each_row(paths, found, take)


def _join_sentences(sentences: Sequence[str]) -> str:
    """Join sentences: those of HotpotQA start with a space, those of 2WikiMultiHopQA do not."""
    text = ""
    for sentence in sentences:
        apart = not text or text[-1].isspace() or sentence[:1].isspace()
        text += sentence if apart else f" {sentence}"
    return text


def _parse_context(context: object) -> list[tuple[str, list[str]]]:
    """Read (title, sentences) from the authors' list of pairs or from Hugging Face's columns."""
    if isinstance(context, dict):
        sentences = context["sentences"] if "sentences" in context else context["content"]
        return list(zip(context["title"], sentences, strict=True))
    if isinstance(context, list):
        return [(str(title), list(sentences)) for title, sentences in context]
    raise TypeError("context is not a list")


def _parse_titles(facts: object) -> list[str]:
    if isinstance(facts, dict):
        return [str(title) for title in facts["title"]]
    if isinstance(facts, list):
        return [str(title) for title, _ in facts]
    raise TypeError("supporting_facts is not a list")


def load_musique(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load `musique_ans_v1.0_dev.jsonl` or `musique_full…` (with unanswerable questions)."""

    def take(row: Row, where: str) -> None:
        places = {}
        gold = []
        for paragraph in row["paragraphs"]:
            doc = found.add_passage(str(paragraph["title"]), str(paragraph["paragraph_text"]))
            places[paragraph["idx"]] = doc
            if paragraph.get("is_supporting"):
                gold.append(doc)
        answerable = bool(row.get("answerable", True))
        question: dict[str, Any] = {
            "id": str(row["id"]),
            "question": str(row["question"]),
            "answer": str(row["answer"]),
            "aliases": as_text_list(row.get("answer_aliases")),
            "type": str(row["id"]).split("__")[0],
            "gold": gold,
            "decomposition": [
                {
                    "question": step["question"],
                    "answer": step["answer"],
                    "gold": places.get(step.get("paragraph_support_idx")),
                }
                for step in row.get("question_decomposition") or ()
            ],
        }
        if not answerable:
            question["answerable"] = False
            question["id"] += "~unanswerable"  # the full set uses each id twice
            del question["answer"], question["aliases"]
        found.questions.append(question)

    for_each_row(paths, found, take)


def load_flashrag(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load FlashRAG's JSON lines (NQ, PopQA, TriviaQA …); rows with `contents` are the corpus."""

    def take(row: Row, where: str) -> None:
        if "contents" in row:
            title, _, text = str(row["contents"]).partition("\n")
            found.corpus.append(
                {"id": row["id"], "title": title.strip('" '), "text": text or title}
            )
            return
        answers = as_text_list(row["golden_answers"])
        if not answers:
            found.add_problem(where, "no golden answer; the question is kept, unscored")
        more = row.get("metadata") or row.get("meta_data") or {}
        found.questions.append(
            {
                "id": str(row["id"]),
                "question": str(row["question"]),
                # Golden answers are aliases of one answer, not a list of several.
                "answers": answers[:1],
                "aliases": answers[1:],
                "type": str(more.get("type", more.get("prop", ""))),
            }
        )

    for_each_row(paths, found, take)


_OPTION = re.compile(
    r"(?:^|\n|\s)\(?([A-H])\s*[.．、:：)]\s*(.+?)(?=(?:\n|\s)\(?[A-H]\s*[.．、:：)]|$)", re.S
)
_BLANK = re.compile(r"_{2,}|＿+|[（(]\s*[)）]|…{2,}|\.{4,}")
_QUESTION_TYPES = {
    "FB": "fill in",
    "MC": "choice",
    "MS": "choices",
    "OE": "open",
    "TF": "true or false",
}


def split_options(text: str) -> tuple[str, dict[str, str]]:
    """Split a question from the options written below it; none if they are not A, B, …"""
    matches = list(_OPTION.finditer(text))
    letters = "".join(match[1] for match in matches)
    if len(matches) < 2 or letters != "ABCDEFGH"[: len(letters)]:
        return text, {}
    options = {match[1]: " ".join(match[2].split()) for match in matches}
    return text[: matches[0].start()].strip(), options


def load_graphrag_bench(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load textbooks (`MC.jsonl` …: `Question`, `Answer`, `Rationale`), or novels and medicine.

    The latter have `question`, `answer`, `evidence`, and `source`, the `corpus_name` of the text
    (`context`) that answers them.
    """
    books: dict[str, list[int]] = {}

    def take(row: Row, where: str) -> None:
        if "context" in row and "question" not in row:
            name = str(row.get("corpus_name", ""))
            books.setdefault(name, []).append(found.add_passage(name, str(row["context"])))
            return
        old = "Question" in row
        text, options = split_options(str(row["Question"] if old else row["question"]))
        own = row.get("Options") or row.get("options")
        if isinstance(own, dict):
            options = {str(key): str(value) for key, value in own.items()}
        kind = (
            _QUESTION_TYPES.get(Path(where).name.split(".")[0], "")
            if old
            else str(row.get("question_type", ""))
        )
        question: dict[str, Any] = {
            "id": str(row.get("id", where)),
            "question": text,
            "answers": as_text_list(row["Answer"] if old else row["answer"]),
            "type": kind,
            "evidence": as_text_list(row.get("Rationale") if old else row.get("evidence")),
        }
        if options:
            question["options"] = options
        if old and row.get("Level-1 Topic"):
            question["topic"] = row["Level-1 Topic"]
        if not old and row.get("source"):
            question["source"] = str(row["source"])
        found.questions.append(question)

    for_each_row(paths, found, take)
    _assign_gold_sources(found, books)


def _assign_gold_sources(found: ConvertedDataset, books: Mapping[str, Sequence[int]]) -> None:
    """Set each question's gold to its source text; done last, since files come in any order."""
    named = [question for question in found.questions if "source" in question]
    for name in dict.fromkeys(question["source"] for question in named):
        if name not in books:
            found.add_problem(
                f"source {name!r}", "no text has this corpus_name; its questions have no gold"
            )
    for question in named:
        question["gold"] = list(dict.fromkeys(books.get(question["source"], ())))


def load_anonyrag(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load `annoyrag_eng_qa.parquet` and `…_text_chunks.parquet` (or JSON of the same rows).

    An answer that lists `PERSON#200——name` is a reversion task, one that begins with a letter and
    has options in its question is multiple choice.
    """

    def take(row: Row, where: str) -> None:
        plain = {str(key).lower(): value for key, value in row.items()}
        if "question" not in plain:
            text = next(
                plain[key] for key in ("text", "chunk", "content", "context") if key in plain
            )
            found.add_passage(str(plain.get("title", "")), str(text))
            return
        answer = str(plain["answer"])
        text, options = split_options(str(plain["question"]))
        question: dict[str, Any] = {
            "id": str(plain.get("id", where)),
            "question": text,
            "answer": answer,
            "type": "choice" if options else "reversion",
        }
        originals = parse_reversion(answer)
        if options:
            question["options"] = options
        elif originals:
            question["originals"] = {mark: [name] for mark, name in originals.items()}
        else:
            found.add_problem(where, "neither options nor originals; kept as a plain question")
            question["type"] = str(plain.get("type", ""))
        found.questions.append(question)

    for_each_row(paths, found, take)


def load_seedbench(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load `1-1.json` … (`instruction`, `question`, `answer`, `task_type`; `segment`: corpus)."""

    def take(row: Row, where: str) -> None:
        if "segment" in row:
            found.add_passage(str(row.get("subcategory", "")), str(row["segment"]))
            return
        text, options = split_options(str(row["question"]))
        # The instruction says whether one letter, several, or words are expected.
        instruction = str(row.get("instruction") or "").strip()
        question: dict[str, Any] = {
            "id": where,
            "question": f"{instruction}\n{text}" if instruction else text,
            "answers": _join_blank_answers(text, as_text_list(row["answer"])),
            "type": str(row.get("task_type", "")),
        }
        if options:
            question["options"] = options
        found.questions.append(question)

    for_each_row(paths, found, take)


def _join_blank_answers(text: str, answers: list[str]) -> list[str]:
    """Join the answers if the text has one blank for each of them."""
    several = 1 < len(answers) == len(_BLANK.findall(text))
    return ["; ".join(answers)] if several else answers


def load_ultradomain(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load `mix.jsonl`, `legal.jsonl` …: `input` is the question, `context` its book."""

    def take(row: Row, where: str) -> None:
        meta = row.get("meta") or {}
        title = str(meta.get("title", "")) if isinstance(meta, dict) else ""
        gold = found.add_passage(title, str(row["context"]))
        found.questions.append(
            {
                "id": str(row.get("_id", where)),
                "question": str(row["input"]),
                "answers": as_text_list(row.get("answers")),
                "type": str(row.get("label") or row.get("dataset") or ""),
                "gold": [gold],
            }
        )

    for_each_row(paths, found, take)


_CONTEXTS_FILE = "contexts"
"""Part of the name of HyperGraphRAG's files of texts."""


def load_hypergraphrag(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load a domain of HyperGraphRAG: `*contexts.json` (a list of texts) and `questions.json`.

    `context` of a question is its gold knowledge; the texts that contain it are its gold.
    """
    texts = [path for path in paths if _CONTEXTS_FILE in path.name]
    for path in texts:
        rows = read_json_list(path)
        for number, text in enumerate(rows, start=1):
            if isinstance(text, str):
                found.add_passage("", text)
            else:
                found.add_problem(f"{path.name}:{number}", "is not a text")

    def take(row: Row, where: str) -> None:
        evidence = as_text_list(row.get("context"))
        pieces = [piece.strip() for piece in evidence if piece.strip()]
        gold = [
            passage["id"]
            for passage in found.corpus
            if any(piece in passage["text"] for piece in pieces)
        ]
        hops = row.get("nhop")
        found.questions.append(
            {
                "id": str(row.get("id", where)),
                "question": str(row["question"]),
                "answers": as_text_list(row["golden_answers"]),
                "type": "" if hops is None else f"{hops}-hop",
                "gold": gold,
                "evidence": pieces,
            }
        )

    for_each_row([path for path in paths if path not in texts], found, take)


def load_multihop_rag(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load `corpus.json` (news articles) and `MultiHopRAG.json`, whose null queries have no answer.

    Evidence names its article by title; the facts themselves are the gold knowledge in words.
    """
    articles: dict[str, int] = {}
    asked: list[tuple[Row, str]] = []

    def take(row: Row, where: str) -> None:
        if "body" in row:
            articles[str(row["title"])] = found.add_passage(str(row["title"]), str(row["body"]))
        else:
            asked.append((row, where))

    for_each_row(paths, found, take)
    for row, where in asked:
        evidence = row.get("evidence_list") or []
        if "query" not in row or "answer" not in row:
            found.add_problem(where, "no 'query' or 'answer'")
            continue
        titles = dict.fromkeys(str(piece.get("title", "")) for piece in evidence)
        question: dict[str, Any] = {
            "id": where,
            "question": str(row["query"]),
            "answer": str(row["answer"]),
            "type": str(row.get("question_type") or ""),
            "gold": [articles[title] for title in titles if title in articles],
            "evidence": [str(piece["fact"]) for piece in evidence if piece.get("fact")],
        }
        if question["type"] == "null_query":
            question |= {"answerable": False}
            del question["answer"]
        found.questions.append(question)
