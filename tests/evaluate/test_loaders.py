"""Every published format, by a tiny sample written for these tests in the original's shape."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.errors import ConfigError, InputError
from clew.evaluate.datasets import Dataset, load_dataset
from clew.evaluate.loaders.convert import LOADERS, convert
from clew.evaluate.loaders.text_qa import split_options

HOTPOT = {
    "_id": "h1",
    "question": "In which town was the builder of the Ost Mill born?",
    "answer": "Marn",
    "type": "bridge",
    "level": "easy",
    "supporting_facts": [["Ost Mill", 0], ["Ann Ray", 1]],
    "context": [
        ["Ost Mill", ["Ost Mill was built by Ann Ray.", " It burnt down."]],
        ["Ann Ray", ["Ann Ray was a miller.", " She was born in Marn."]],
        ["Marn", ["Marn is a town."]],
    ],
}
MUSIQUE = {
    "id": "2hop__1_2",
    "question": "In which town was the builder of the Ost Mill born?",
    "answer": "Marn",
    "answer_aliases": ["the town of Marn"],
    "answerable": True,
    "paragraphs": [
        {"idx": 0, "title": "Ost Mill", "paragraph_text": "Built by Ray.", "is_supporting": True},
        {"idx": 1, "title": "Ann Ray", "paragraph_text": "Of Marn.", "is_supporting": True},
        {"idx": 2, "title": "Else", "paragraph_text": "Nothing.", "is_supporting": False},
    ],
    "question_decomposition": [
        {"id": 1, "question": "Who built Ost Mill?", "answer": "Ray", "paragraph_support_idx": 0},
        {"id": 2, "question": "Where was #1 born?", "answer": "Marn", "paragraph_support_idx": 1},
    ],
}
WEBQSP = {
    "Version": "1.0",
    "Questions": [
        {
            "QuestionId": "WebQTest-1",
            "RawQuestion": "who built the ost mill?",
            "ProcessedQuestion": "who built the ost mill",
            "Parses": [
                {
                    "ParseId": "p0",
                    "TopicEntityName": "Ost Mill",
                    "TopicEntityMid": "m.01",
                    "InferentialChain": ["building.builder"],
                    "Answers": [
                        {"AnswerType": "Entity", "AnswerArgument": "m.2", "EntityName": "Ann Ray"},
                        {"AnswerType": "Value", "AnswerArgument": "1901", "EntityName": None},
                    ],
                }
            ],
        },
        {"QuestionId": "WebQTest-2", "RawQuestion": "nobody knows", "Parses": []},
    ],
}
CWQ = {
    "ID": "c1",
    "webqsp_ID": "WebQTest-1",
    "question": "Which town was home to the builder of the Ost Mill?",
    "machine_question": "x",
    "sparql": "SELECT",
    "compositionality_type": "composition",
    "answers": [{"answer_id": "m.9", "answer": "Marn", "aliases": ["Marn town"]}],
}
GRAIL = {
    "qid": 210,
    "question": "which mill did ann ray build?",
    "answer": [
        {"answer_type": "Entity", "answer_argument": "m.1", "entity_name": "Ost Mill"},
        {"answer_type": "Value", "answer_argument": "7"},
    ],
    "function": "none",
    "num_node": 2,
    "num_edge": 1,
    "level": "i.i.d.",
    "graph_query": {
        "nodes": [
            {"nid": 0, "node_type": "class", "friendly_name": "Mill", "question_node": 1},
            {"nid": 1, "node_type": "entity", "friendly_name": "Ann Ray", "question_node": 0},
        ],
        "edges": [],
    },
}
WEBQ = {
    "url": "http://www.freebase.com/view/en/ost_mill",
    "targetValue": '(list (description "Ann Ray") (description Marn))',
    "utterance": "who built ost mill?",
}
TEXTBOOK = {
    "Question": "Which of these is a mill?\nA. Ost\nB. Marn\nC. Ray\nD. Tarn",
    "Level-1 Topic": "Milling",
    "Level-2 Topic": "Mills",
    "Rationale": "Ost is the mill.",
    "Answer": "A",
}
NOVEL = {
    "id": "Novel-1",
    "source": "Novel-7",
    "question": "Who built it?",
    "answer": "Ann Ray",
    "question_type": "Fact Retrieval",
    "evidence": ["Ann Ray built it."],
}
CHOICE = {
    "question": "Who built [LOCATION#3]?\nA. [PERSON#1]\nB. [PERSON#2]\nC. [PERSON#3]",
    "answer": "B. (Ann Ray, Ost Mill)",
}
REVERSION = {
    "question": "Q: Who built [LOCATION#3]?\nA: [PERSON#2]\nTell the originals.",
    "answer": "PERSON#2——Ann Ray\nLOCATION#3——Ost Mill",
}
SEED = {
    "instruction": "Answer by one letter.",
    "question": "Which gene makes it tall?\nA. Os1\nB. Os2\nC. Os3\nD. Os4",
    "answer": "B",
    "task_type": "key_single_choice",
}
ULTRA = {
    "input": "What do millers do?",
    "answers": ["They mill."],
    "context": "A long book on mills.",
    "length": 5,
    "dataset": "agriculture",
    "label": "agriculture",
    "_id": "u1",
    "meta": {"title": "On Mills", "authors": "Ann Ray"},
}


@pytest.fixture
def converted(tmp_path: Path) -> Callable[..., Dataset]:
    """Write files, convert them, and load what was written."""

    def work(form: str, **files: Any) -> Dataset:
        folder = tmp_path / "original"
        folder.mkdir()
        for name, content in files.items():
            stem, _, suffix = name.rpartition("_")
            text = content
            if suffix == "json":
                text = json.dumps(content)
            elif suffix == "jsonl":
                text = "\n".join(r if isinstance(r, str) else json.dumps(r) for r in content)
            (folder / f"{stem}.{suffix}").write_text(text, encoding="utf-8")
        taken = convert(form, [folder], tmp_path / "out")
        dataset = load_dataset(tmp_path / "out")
        assert len(dataset.questions) == taken.questions
        return Dataset(dataset.name, dataset.questions, dataset.corpus, taken.problems)

    return work


def test_2wiki_sentences_do_not_run_into_each_other(converted: Callable[..., Dataset]) -> None:
    bare = ["He is a director.", "In 1995 he left. ", "He sang."]
    row = HOTPOT | {"context": [["Ann Ray", bare]], "supporting_facts": [["Ann Ray", 0]]}
    found = converted("2wiki", dev_json=[row])
    assert found.corpus is not None
    text = json.loads(found.corpus.read_text())["text"]
    assert text == "He is a director. In 1995 he left. He sang."


@pytest.mark.parametrize("form", ["hotpotqa", "2wiki"])
def test_hotpotqa_and_2wiki(converted: Callable[..., Dataset], form: str) -> None:
    wiki = HOTPOT | {"_id": "h2", "evidences": [["Ost Mill", "builder", "Ann Ray"]]}
    lost = HOTPOT | {"_id": "h3", "supporting_facts": [["Elsewhere", 0]]}
    found = converted(form, dev_json=[HOTPOT, wiki, lost, {"question": "?"}])
    assert [q.id for q in found.questions] == ["h1", "h2", "h3"]
    first = found.questions[0]
    assert (first.answers, first.gold, first.type) == (("Marn",), ("0", "1"), "bridge")
    assert found.problems == (
        "dev.json:3: supporting fact 'Elsewhere' is not in the context",
        "dev.json:4: no 'context'",
    )
    assert found.corpus is not None
    rows = [json.loads(line) for line in found.corpus.read_text().splitlines()]
    assert rows[1]["text"] == "Ann Ray was a miller. She was born in Marn."
    assert len(rows) == 3  # the same passages are not written twice


def test_hotpotqa_in_columns_as_the_hub_keeps_it(converted: Callable[..., Dataset]) -> None:
    columns = HOTPOT | {
        "supporting_facts": {"title": ["Ann Ray"], "sent_id": [1]},
        "context": {"title": ["Ost Mill", "Ann Ray"], "sentences": [["A."], ["B."]]},
    }
    assert converted("hotpotqa", dev_json=[columns]).questions[0].gold == ("1",)


def test_musique(converted: Callable[..., Dataset]) -> None:
    hopeless = MUSIQUE | {"answerable": False}
    found = converted("musique", dev_jsonl=[MUSIQUE, hopeless, "{broken"])
    one, other = found.questions
    assert (one.answers, one.gold, one.type) == (("Marn", "the town of Marn"), ("0", "1"), "2hop")
    assert (other.id, other.answerable, other.answers) == ("2hop__1_2~unanswerable", False, ())
    assert found.problems[0].startswith("dev.jsonl:3: not JSON")


@pytest.mark.parametrize("form", ["nq", "popqa", "triviaqa"])
def test_flashrag(converted: Callable[..., Dataset], form: str) -> None:
    rows = [
        {"id": "test_0", "question": "who built it", "golden_answers": ["Ann Ray", "A. Ray"]},
        {"id": "test_1", "question": "who?", "golden_answers": [], "metadata": {"prop": "builder"}},
    ]
    corpus = [{"id": "7", "contents": '"Ost Mill"\nBuilt by Ann Ray.'}]
    found = converted(form, test_jsonl=rows, wiki_jsonl=corpus)
    assert found.questions[0].answers == ("Ann Ray", "A. Ray")
    assert found.questions[0].answer_groups() == (("Ann Ray", "A. Ray"),)
    assert found.questions[1].type == "builder"
    assert "no golden answer" in found.problems[0]
    assert found.corpus is not None
    row = json.loads(found.corpus.read_text())
    assert row == {"id": "7", "title": "Ost Mill", "text": "Built by Ann Ray."}


def test_webqsp(converted: Callable[..., Dataset]) -> None:
    one, other = (found := converted("webqsp", WebQSP_json=WEBQSP)).questions
    assert (one.text, one.entities) == ("who built the ost mill?", ("Ost Mill",))
    assert one.answers == ("Ann Ray", "1901")
    assert other.answers == ()
    assert "no parse has an answer" in found.problems[0]


def test_cwq_grailqa_and_webquestions(tmp_path: Path) -> None:
    expected: dict[str, tuple[object, tuple[str, ...], tuple[str, ...]]] = {
        "cwq": (CWQ, ("Marn", "Marn town"), ()),
        "grailqa": (GRAIL, ("Ost Mill", "7"), ("Ann Ray",)),
        "webquestions": (WEBQ, ("Ann Ray", "Marn"), ("ost mill",)),
    }
    for form, (row, answers, entities) in expected.items():
        file = tmp_path / f"{form}.json"
        file.write_text(json.dumps([row]))
        convert(form, [file], tmp_path / form)
        [question] = load_dataset(tmp_path / form).questions
        assert (question.answers, question.entities) == (answers, entities)
        assert question.aliases == ((answers,) if form == "cwq" else ())


def test_graphrag_bench_of_both_kinds(converted: Callable[..., Dataset]) -> None:
    corpus = {"corpus_name": "Novel-7", "context": "Ann Ray built it."}
    found = converted("graphrag-bench", MC_jsonl=[TEXTBOOK], Novel_json=[NOVEL], text_json=[corpus])
    book, novel = sorted(found.questions, key=lambda q: q.type != "choice")
    assert book.text == "Which of these is a mill?"
    assert book.options == {"A": "Ost", "B": "Marn", "C": "Ray", "D": "Tarn"}
    assert book.evidence == ("Ost is the mill.",)
    assert (novel.type, novel.evidence) == ("Fact Retrieval", ("Ann Ray built it.",))
    assert (novel.gold, book.gold, found.problems) == (("0",), (), ())


def test_a_novel_that_was_not_given_is_named_once(converted: Callable[..., Dataset]) -> None:
    found = converted("graphrag-bench", Novel_json=[NOVEL, NOVEL | {"id": "Novel-2"}])
    assert found.problems == (
        "source 'Novel-7': no text has this corpus_name; its questions have no gold",
    )
    assert [one.gold for one in found.questions] == [(), ()]


def test_anonyrag(converted: Callable[..., Dataset]) -> None:
    chunks = [{"text": "[PERSON#2] built [LOCATION#3]."}]
    found = converted("anonyrag", qa_json=[CHOICE, REVERSION], chunks_json=chunks)
    choice, reversion = found.questions
    assert choice.options is not None and choice.options["B"] == "[PERSON#2]"
    assert reversion.originals == {"PERSON#2": ("Ann Ray",), "LOCATION#3": ("Ost Mill",)}
    assert found.corpus is not None


def test_anonyrag_in_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "annoyrag_eng_qa.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([CHOICE, REVERSION]), file)
    assert convert("anonyrag", [file], tmp_path / "out").questions == 2


def test_seedbench(converted: Callable[..., Dataset]) -> None:
    segments = [{"subcategory": "Genes", "segment": "Os2 makes rice tall."}]
    found = converted("seedbench", one_json=[SEED], segments_jsonl=segments)
    [question] = found.questions
    assert question.options is not None and len(question.options) == 4
    assert (question.answers, question.type) == (("B",), "key_single_choice")
    assert question.text == "Answer by one letter.\nWhich gene makes it tall?"


def test_seedbench_files_of_one_name_and_blanks(tmp_path: Path) -> None:
    two = {"question": "It is ____ and ____.", "answer": ["Os1", "Os2"], "task_type": "fill"}
    one = {"question": "It is ____.", "answer": ["Os1", "OsA"], "task_type": "fill"}
    for folder, row in (("one", one), ("two", two)):
        (tmp_path / "seed" / folder).mkdir(parents=True)
        (tmp_path / "seed" / folder / "1-3.json").write_text(json.dumps([row]))
    convert("seedbench", [tmp_path / "seed"], tmp_path / "out")
    found = {q.id: q.answers for q in load_dataset(tmp_path / "out").questions}
    assert found == {"one/1-3.json:1": ("Os1", "OsA"), "two/1-3.json:1": ("Os1; Os2",)}


def test_ultradomain(converted: Callable[..., Dataset]) -> None:
    more = ULTRA | {"_id": "u2", "input": "And bakers?"}
    found = converted("ultradomain", agriculture_jsonl=[ULTRA, more])
    assert [q.gold for q in found.questions] == [("0",), ("0",)]
    assert found.questions[0].type == "agriculture"


def test_hypergraphrag(converted: Callable[..., Dataset]) -> None:
    texts = ["Rice needs water. It grows in paddies.", "Wheat is sown in autumn."]
    asked = {
        "question": "What does rice need?",
        "golden_answers": ["WATER"],
        "context": ["Rice needs water."],
        "nhop": 2,
    }
    found = converted(
        "hypergraphrag", agriculture_contexts_json=[*texts, 5], questions_json=[asked]
    )
    [question] = found.questions
    assert (question.answers, question.gold, question.type) == (("WATER",), ("0",), "2-hop")
    assert question.evidence == ("Rice needs water.",)


def test_multihop_rag(converted: Callable[..., Dataset]) -> None:
    articles = [
        {"title": "Bank fails", "body": "The bank failed in May.", "url": "u1", "source": "A"},
        {"title": "Bank sold", "body": "It was sold in June.", "url": "u2", "source": "B"},
    ]
    piece = {"title": "Bank fails", "fact": "The bank failed in May.", "url": "u1"}
    rows = [
        {
            "query": "Did both A and B write about the bank?",
            "answer": "Yes",
            "question_type": "comparison_query",
            "evidence_list": [piece, piece | {"title": "Bank sold", "fact": "It was sold."}],
        },
        {
            "query": "What did C say?",
            "answer": "Insufficient information.",
            "question_type": "null_query",
            "evidence_list": [],
        },
        {"query": "no answer here"},
    ]
    found = converted("multihop-rag", MultiHopRAG_json=rows, corpus_json=articles)
    first, null = found.questions
    assert (first.answers, first.gold, first.type) == (("Yes",), ("0", "1"), "comparison_query")
    assert first.evidence == ("The bank failed in May.", "It was sold.")
    assert (null.answerable, null.answers) == (False, ())


def test_options_are_only_what_is_lettered_in_order() -> None:
    assert split_options("Pick: A) one B) two")[1] == {"A": "one", "B": "two"}
    assert split_options("Vitamin B. is good")[1] == {}
    assert split_options("水稻？\nA. 甲\nB. 乙")[1] == {"A": "甲", "B": "乙"}


def test_every_data_set_that_the_papers_use_has_a_loader() -> None:
    wanted = (
        "hotpotqa musique 2wiki nq popqa triviaqa metaqa webqsp cwq grailqa webquestions "
        "graphrag-bench anonyrag seedbench ultradomain hypergraphrag multihop-rag"
    )
    assert set(wanted.split()) == set(LOADERS)


def test_what_cannot_be_converted_is_one_sentence(tmp_path: Path) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text("[]")
    with pytest.raises(InputError, match="no question of the format hotpotqa"):
        convert("hotpotqa", [empty], tmp_path / "out")
    with pytest.raises(ConfigError, match="unknown format 'squad'; known: hotpotqa"):
        convert("squad", [empty], tmp_path / "out")
    with pytest.raises(InputError, match="does not exist"):
        convert("hotpotqa", [tmp_path / "nowhere"], tmp_path / "out")
