"""Loaders of HotpotQA, 2WikiMultiHopQA, MuSiQue, and the data sets of FlashRAG."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clew.evaluate.loaders.rows import ConvertedDataset, Row, as_text_list, for_each_row


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
    raise TypeError("context is no list")


def _parse_titles(facts: object) -> list[str]:
    if isinstance(facts, dict):
        return [str(title) for title in facts["title"]]
    if isinstance(facts, list):
        return [str(title) for title, _ in facts]
    raise TypeError("supporting_facts is no list")


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
            found.add_problem(
                where, "no golden answer; the question is kept and nothing can be scored"
            )
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
