"""Loaders of KGQA data sets: MetaQA, WebQSP, CWQ, GrailQA, WebQuestions."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clew.evaluate.loaders.rows import (
    ConvertedDataset,
    Row,
    as_text_list,
    for_each_row,
    read_lines,
    relative_paths,
)

_BRACKETED_ENTITY = re.compile(r"\[([^\]]+)\]")
_DESCRIPTION = re.compile(r'\(description\s+(?:"((?:[^"\\]|\\.)*)"|([^()\s][^()]*?))\)')
_TOPIC_URL = re.compile(r"/view/en/(.+)$")
_PARAPHRASE_FOLDER = "ntm"  # MetaQA's folder of questions paraphrased by a translation model
_HOPS = re.compile(r"(\d)[-_]?hop")


def load_metaqa(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load `qa_dev.txt` (question, tab, answers by `|`), its `…qtype.txt`, and `kb.txt`."""
    places = relative_paths(paths)
    question_files = [path for path in paths if _is_metaqa_question_file(path, found, places[path])]
    plain = [path for path in question_files if path.resolve().parent.name != _PARAPHRASE_FOLDER]
    for path in question_files:
        if plain and path not in plain:
            # Paraphrases of the same questions would count everything twice.
            found.add_problem(
                places[path],
                f"machine paraphrases ({_PARAPHRASE_FOLDER}) are left out; "
                "give only that folder to use them",
            )
        else:
            _load_metaqa_file(path, places[path], found)


def _is_metaqa_question_file(path: Path, found: ConvertedDataset, place: str) -> bool:
    """Whether a file holds questions; `kb.txt` is added as the graph, other kb files are not."""
    if path.name == "kb.txt":
        found.graphs.append(path)
    elif path.name.startswith("kb"):
        found.add_problem(place, "neither questions nor the graph; left out")
    return not path.name.startswith("kb") and "qtype" not in path.name


def _load_metaqa_file(path: Path, place: str, found: ConvertedDataset) -> None:
    hops = _HOPS.findall(path.resolve().as_posix())
    lines, types = list(read_lines(path)), _read_metaqa_types(path)
    if types and len(types) != len(lines):
        found.add_problem(
            place, f"{len(lines)} questions but {len(types)} types; types are ignored"
        )
        types = []
    for at, (number, line) in enumerate(lines):
        where = f"{place}:{number}"
        text, tab, answers = line.partition("\t")
        if not tab or not answers.strip():
            found.add_problem(where, "no answer after a tab")
            continue
        question: dict[str, Any] = {
            "id": where,
            "question": _BRACKETED_ENTITY.sub(r"\1", text).strip(),
            "entities": _BRACKETED_ENTITY.findall(text),
            "answers": [one.strip() for one in answers.split("|") if one.strip()],
            "type": types[at] if types else "",
        }
        if hops:
            question["hops"] = int(hops[-1])
        if not question["entities"]:
            found.add_problem(where, "no [entity] in the question; entities will be linked")
        found.questions.append(question)


def _read_metaqa_types(path: Path) -> list[str]:
    """Read the question types, line by line, from beside the file or its folder."""
    for folder in (path.resolve().parent, path.resolve().parent.parent):
        kinds = folder / f"{path.stem}_qtype.txt"
        if kinds.is_file():
            return [line.strip() for _, line in read_lines(kinds)]
    return []


def load_webqsp(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load `WebQSP.test.json`: answers of all parses; questions without one are reported."""

    def take(row: Row, where: str) -> None:
        answers, topics = [], []
        for parse in row["Parses"]:
            topics += as_text_list(parse.get("TopicEntityName"))
            for answer in parse.get("Answers") or ():
                answers.append(str(answer.get("EntityName") or answer["AnswerArgument"]))
        if not answers:
            found.add_problem(where, "no parse has an answer; the question is kept, unscored")
        found.questions.append(
            {
                "id": str(row["QuestionId"]),
                "question": str(row.get("RawQuestion") or row["ProcessedQuestion"]),
                "entities": list(dict.fromkeys(topics)),
                "answers": list(dict.fromkeys(answers)),
            }
        )

    for_each_row(paths, found, take, key="Questions")


def load_cwq(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load `ComplexWebQuestions_dev.json`; the test file as first published has no answers."""

    def take(row: Row, where: str) -> None:
        # An answer without a name has only its aliases.
        primary = [as_text_list(one.get("answer") or None) for one in row.get("answers") or ()]
        names = [
            list(dict.fromkeys([*first, *as_text_list(one.get("aliases"))]))
            for first, one in zip(primary, row.get("answers") or (), strict=True)
        ]
        answers = {group[0]: group[1:] for group in names if group}
        if not answers:
            found.add_problem(where, "no answer; the question is kept, unscored")
        found.questions.append(
            {
                "id": str(row["ID"]),
                "question": str(row["question"]),
                "answers": list(answers),
                "aliases": list(answers.values()),
                "type": str(row.get("compositionality_type", "")),
            }
        )

    for_each_row(paths, found, take)


def load_grailqa(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load `grailqa_v1.0_dev.json`: topic entities are the entity nodes of the graph query."""

    def take(row: Row, where: str) -> None:
        answers = [
            str(one.get("entity_name") or one["answer_argument"]) for one in row.get("answer") or ()
        ]
        nodes = (row.get("graph_query") or {}).get("nodes") or ()
        starts = [
            str(node["friendly_name"])
            for node in nodes
            if node.get("node_type") == "entity" and not node.get("question_node")
        ]
        if not answers:
            found.add_problem(where, "no answer; the question is kept, unscored")
        found.questions.append(
            {
                "id": str(row["qid"]),
                "question": str(row["question"]),
                "entities": starts,
                "answers": list(dict.fromkeys(answers)),
                "type": str(row.get("level") or row.get("function") or ""),
                "hops": int(row.get("num_edge") or 0),
            }
        )

    for_each_row(paths, found, take)


def load_webquestions(paths: Sequence[Path], found: ConvertedDataset) -> None:
    """Load `webquestions.examples.test.json`: answers are a Lisp list of descriptions."""

    def take(row: Row, where: str) -> None:
        descriptions = _DESCRIPTION.findall(str(row["targetValue"]))
        answers = [(quoted or bare).replace('\\"', '"').strip() for quoted, bare in descriptions]
        if not answers:
            found.add_problem(
                where, "no description in targetValue; the question is kept, unscored"
            )
        topic = _TOPIC_URL.search(str(row.get("url", "")))
        found.questions.append(
            {
                "id": where,
                "question": str(row["utterance"]),
                "entities": [topic[1].replace("_", " ")] if topic else [],
                "answers": answers,
            }
        )

    for_each_row(paths, found, take)
