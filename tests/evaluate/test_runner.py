"""Running: failures counted, interrupted runs taken up, graph questions, others' records."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.config import Price
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.evaluate.compare import compare
from clew.evaluate.datasets import Question, load_dataset
from clew.evaluate.external_runs import read_external_reports
from clew.evaluate.grid import Grid, GridAxes, build_grid
from clew.evaluate.judges import Judge
from clew.evaluate.measure import (
    MeasureOptions,
    MeasureResult,
    default_metrics,
    measure,
    select_questions,
)
from clew.evaluate.record import Record, read_run_log
from clew.evaluate.report.text import build_table, format_legend, to_csv
from clew.evaluate.runner import RecipeRunner, rank_answers
from clew.evaluate.scoring import RecipeOutput, Scorer
from clew.evaluate.summary import RecipeReport, describe_dropped_metrics
from clew.testing.fakes import ScriptedChat
from clew.types import Evidence, NamedEntity, Route, Usage

ASKED = (
    Question("q1", "Where was Ilse Brandvik born?", ("Hallowmere",), ("ilse",), "one"),
    Question("q2", "Where was the designer of Marrow Bridge born?", ("Hallowmere",), ("ilse",)),
    Question("q3", "When did Ilse Brandvik die?", ("1921",), ("ilse", "poet"), "one"),
)


def only_file(folder: Path) -> Path:
    [file] = folder.iterdir()
    return file


async def test_a_failing_question_counts_as_nothing_found(valley: KnowledgeBase) -> None:
    questions = [ASKED[0], Question("bad", " ", ("x",), ("ilse",))]
    run = RecipeRunner(valley, ["recall@2", "subem", "refusal"], answers=True)
    report = await run.run_recipe("clew", questions)
    summary = report.summary()
    assert (summary["recall@2"], summary["n"], summary["failed"]) == (0.5, 2, 1)
    assert (summary["subem"], summary["refusal"]) == (0.5, 0.5)
    assert "empty" in report.records[1].error


async def test_statements_of_a_summary_are_counted_in_its_text_and_in_passages(
    valley: KnowledgeBase,
) -> None:
    stated = ("Ilse Brandvik was born in Hallowmere.", "Ilse Brandvik flew balloons over Peru.")
    summary = Question("s", "Summarize the life of Ilse Brandvik.", gold=("ilse",))
    asked = [replace(summary, statements=stated), ASKED[0]]
    metrics = ["statements@1", "statements@5", "statement-recall"]
    report = await RecipeRunner(valley, metrics, answers=True).run_recipe("clew", asked)
    first, other = report.records
    assert first.values["statements@5"] == 0.5 >= first.values["statements@1"]
    assert 0 <= first.values["statement-recall"] <= 0.5
    assert not {*metrics} & {*other.values}  # a question without statements has none


async def test_the_records_of_a_run_that_was_cut_short_are_taken_over(
    valley: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RecipeRunner(valley, ["recall@2"], folder=tmp_path / "runs")
    asked: list[str] = []
    search = KnowledgeBase.search

    async def counted(self: KnowledgeBase, question: str, **how: Any) -> Any:
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(question)
        return await search(self, question, **how)

    monkeypatch.setattr(KnowledgeBase, "search", counted)
    with pytest.raises(KeyboardInterrupt):
        await run.run_recipe("clew", ASKED)
    file = only_file(tmp_path / "runs")
    with file.open("a") as journal:
        journal.write('{"recipe": "clew", "question": "q3", "val')  # as a kill leaves it
    assert [r.question for r in read_run_log(file)[0]] == ["q1", "q2"]
    asked.clear()
    report = await run.run_recipe("clew", ASKED)
    assert asked == [ASKED[2].text]
    assert [record.question for record in report.records] == ["q1", "q2", "q3"]
    # A complete run is measured anew; so is one under other settings, or one asked to be fresh.
    assert read_run_log(file)[1]
    monkeypatch.setattr(KnowledgeBase, "search", search)
    again = await run.run_recipe("clew", ASKED)
    assert [r.values for r in again.records] == [r.values for r in report.records]


async def test_another_question_or_metric_is_not_taken_over(
    valley: KnowledgeBase, tmp_path: Path
) -> None:
    run = RecipeRunner(valley, ["recall@2"], folder=tmp_path / "runs")
    await run.run_recipe("clew", ASKED[:1])
    file = only_file(tmp_path / "runs")
    text = file.read_text().replace('{"complete": true}\n', "")
    file.write_text(text.replace('"seconds": ', '"seconds": 77'))
    kept = await run.run_recipe("clew", ASKED[:1])
    assert kept.records[0].seconds > 77
    for changed, questions in (
        (run, [replace(ASKED[0], answers=("other",))]),
        (replace(run, metrics=["recall@5"]), ASKED[:1]),
        (replace(run, metrics=["mrr"]), ASKED[:1]),
        (replace(run, fresh=True), ASKED[:1]),
    ):
        file.write_text(text.replace('"seconds": ', '"seconds": 77'))
        assert (await changed.run_recipe("clew", questions)).records[0].seconds < 77


async def test_many_at_once_give_what_one_by_one_gives(valley: KnowledgeBase) -> None:
    one = await RecipeRunner(valley, ["recall@2", "mrr"], at_once=1).run_recipe("clew", ASKED)
    many = await RecipeRunner(valley, ["recall@2", "mrr"], at_once=3).run_recipe("clew", ASKED)
    assert [(r.question, r.values, r.found) for r in one.records] == [
        (r.question, r.values, r.found) for r in many.records
    ]


def test_costs_count_remembered_calls_as_if_they_were_made() -> None:
    paid = Usage(calls=1, prompt_tokens=800, completion_tokens=200, money=0.002)
    held = Usage(cached_calls=1, cached_prompt_tokens=800, cached_completion_tokens=200)
    records = (
        Record("r", "1", {"f1": 1.0}, seconds=1.0, usage=paid),
        Record("r", "2", {"f1": 0.0}, seconds=3.0, usage=held),
    )
    costs = RecipeReport("r", records, price=Price(prompt=1.0, completion=6.0)).costs()
    assert (costs["calls"], costs["cached_calls"], costs["tokens"]) == (2, 1, 2000)
    assert costs["money"] == pytest.approx(0.004)
    assert costs["money_per_1k_queries"] == pytest.approx(2.0)
    # A cached reply takes no time: only the question that asked the model tells how long it takes.
    assert (costs["seconds_per_query"], costs["seconds_p50"]) == (1.0, 1.0)
    assert (costs["timed_questions"], costs["cached_questions"]) == (1, 1)


def test_times_of_cached_replies_are_marked_and_never_the_best() -> None:
    held, paid = Usage(cached_calls=1), Usage(calls=1)
    fast = tuple(Record("fast", str(n), {"f1": 1.0}, seconds=0.1, usage=held) for n in range(2))
    slow = tuple(Record("slow", str(n), {"f1": 1.0}, seconds=5.0, usage=paid) for n in range(2))
    mixed = (replace(fast[0], recipe="mixed"), replace(slow[1], recipe="mixed", seconds=3.0))
    reports = [RecipeReport(some[0].recipe, some) for some in (fast, slow, mixed)]
    table = compare(reports, rounds=100)
    titles, rows = build_table(table)
    times = {row[0]: row[titles.index("p50 ms")] for row in rows}
    assert times == {"`fast`": "100 (cached)", "`slow`": "5000", "`mixed`": "**3000 (of 1)**"}
    assert "time says nothing" in format_legend(table)
    assert "time says nothing" not in format_legend(compare(reports[1:2], rounds=100))


async def test_refusals_have_precision_and_recall_and_every_metric_its_number() -> None:
    questions = [Question(str(n), "?", answerable=n > 1) for n in range(5)]
    verdicts = ["refused", "answered", "refused", "refused", "answered"]
    scorer = Scorer(["refusal", "refusal-precision", "refusal-recall"])
    records = []
    for question, verdict in zip(questions, verdicts, strict=True):
        outcome = RecipeOutput(refused=verdict == "refused", answered=True)
        values = (await scorer.score(question, outcome)).values
        records.append(Record("r", question.id, values, verdict=verdict))
    report = RecipeReport("r", tuple(records), questions)
    summary = report.summary()
    # Three were refused, one of them rightly; two should have been.
    assert summary["refusal-precision"] == pytest.approx(1 / 3, abs=1e-4)
    assert (summary["refusal-recall"], summary["refusal"]) == (0.5, 0.4)
    assert (summary["n"], summary["refused"]) == (5, 3)
    assert (summary["refusal-precision.n"], summary["refusal-recall.n"]) == (3, 2)
    titles, [row] = build_table(compare([report]))
    shown = dict(zip(titles, row, strict=True))
    assert shown["refusal-precision"] == "**0.333 (n=3)**"
    assert "refusal-recall low" in to_csv(compare([report]))


def test_graph_questions_are_answered_by_where_paths_end() -> None:
    question = Question("1", "who directed films starring Ann Lee", ("Bob",), entities=("Ann Lee",))
    routes = tuple(
        Route(entities, ("starred",) * (len(entities) - 1), 1.0)
        for entities in (("Ann Lee", "Film"), ("Ann Lee", "Film", "Bob"), ("Ann Lee",))
    )
    entities = (NamedEntity("1", "Ann Lee", "", 1.0), NamedEntity("2", "Cid", "", 0.5))
    assert rank_answers(Evidence(paths=routes, entities=entities), question) == ("Film", "Bob")
    assert rank_answers(Evidence(entities=entities), question)[0] == "Cid"


def test_the_usual_metrics_are_those_with_gold() -> None:
    assert default_metrics(ASKED, False) == ["recall@2", "recall@5", "recall@10", "recall@20"]
    assert default_metrics(ASKED, True)[-4:] == ["em", "f1", "subem", "subem-short"]
    graph = [Question("1", "who", ("B",), entities=("A",))]
    assert default_metrics(graph, False) == ["hits@1", "hits@10", "answer-mrr"]
    summary = [Question("1", "Summarize it.", statements=("It rained.",))]
    assert default_metrics(summary, True) == ["statement-recall"]


def test_a_sample_is_drawn_by_the_seed_and_keeps_the_order() -> None:
    questions = tuple(Question(str(n), "?") for n in range(100))
    wanted = MeasureOptions(build_grid(["clew"]), sample=10, seed=3)
    drawn = select_questions(questions, wanted)
    assert drawn == select_questions(questions, wanted)
    assert drawn != select_questions(questions, replace(wanted, seed=4))
    assert [int(q.id) for q in drawn] == sorted(int(q.id) for q in drawn)
    with pytest.raises(ConfigError, match="no question can be used"):
        select_questions((), wanted)


async def test_the_whole_story_builds_and_reuses(base: KnowledgeBase, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [{"id": "a", "title": "Tarn", "text": "The Tarn is a river."}, {"id": "b", "text": "x."}]
    questions: Sequence[dict[str, Any]] = [{"question": "What is the Tarn?", "gold": ["a"]}]
    for name, lines in (("corpus.jsonl", rows), ("questions.jsonl", questions)):
        (folder / name).write_text("\n".join(map(json.dumps, lines)))
    wanted = MeasureOptions(build_grid(["bm25"]))
    done = await measure(base, load_dataset(folder), wanted)
    told = done.to_dict()
    assert told["recipes"]["bm25"]["recall@2"] == 1
    assert (told["build"]["reused"], told["build"]["documents"]) == (False, 2)
    assert told["build"]["seconds_per_1k_tokens"] > 0
    again = (await measure(base, load_dataset(folder), wanted)).to_dict()
    assert again["build"]["reused"]
    assert again["build"]["corpus_tokens"] == told["build"]["corpus_tokens"]
    mixed = await measure(
        base, load_dataset(folder), MeasureOptions(build_grid(["bm25"]), ["mrr", "em"])
    )
    assert mixed.problems[0] == "em: needs answers; add --answers"
    both = MeasureOptions(build_grid(["bm25"]), ["mrr", "em", "reversion"], answers=True)
    problems = (await measure(base, load_dataset(folder), both)).problems
    assert "reversion: no question has gold for it" in problems
    with pytest.raises(ConfigError, match="em needs answers; add --answers"):
        await measure(base, load_dataset(folder), MeasureOptions(build_grid(["bm25"]), ["em"]))
    shallow = MeasureOptions(build_grid(["bm25"]), ["recall@5"], k=2)
    with pytest.raises(ConfigError, match="recall@5 needs 5 passages, but -k is 2"):
        await measure(base, load_dataset(folder), shallow)


async def test_questions_are_not_measured_on_the_documents_of_another_set(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    sets: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
        "rivers": ([{"id": 1, "title": "Tarn", "text": "The Tarn is a river."}], {"gold": [1]}),
        "poets": ([{"id": 1, "title": "Reeve", "text": "Reeve was a poet."}], {"gold": [1]}),
        "towns": ([{"id": "t", "title": "Vessen", "text": "A town."}], {"gold": ["t"]}),
        "longer": ([{"id": 1, "text": "The Tarn is a river."}], {"gold": [1]}),
    }
    for name, (rows, gold) in sets.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
        question = {"question": f"What of {name}?", **gold}
        (tmp_path / name / "questions.jsonl").write_text(json.dumps(question))

    async def run(name: str) -> MeasureResult:
        wanted = MeasureOptions(build_grid(["bm25"]))
        return await measure(base, load_dataset(tmp_path / name), wanted)

    assert (await run("rivers")).problems == ()
    assert (await run("rivers")).problems == ()
    with pytest.raises(ConfigError, match=r"poets.*others under the same ids, such as '1'.*--kb"):
        await run("poets")
    assert "under its id: gold documents are not found" in (await run("towns")).problems[0]
    # The same text, but titles were not given: these are its documents.
    assert (await run("longer")).problems == ()


async def test_a_metric_by_a_judge_that_is_not_there_is_refused_before_the_run(
    valley: KnowledgeBase, tmp_path: Path
) -> None:
    row = {"id": "q1", "question": "Where was Ilse Brandvik born?", "answer": "Hallowmere"}
    (tmp_path / "questions.jsonl").write_text(json.dumps(row))
    (tmp_path / "peers.jsonl").write_text(
        json.dumps({"recipe": "peer", "id": "q1", "answer": "Hallowmere"})
    )
    dataset, metrics = load_dataset(tmp_path), ["em", "accuracy"]
    with pytest.raises(ConfigError, match="accuracy needs a judge, but no model is set"):
        await measure(valley, dataset, MeasureOptions(build_grid(["clew"]), metrics, answers=True))
    # Records need no run: what cannot be told is named once and left out.
    records = [tmp_path / "peers.jsonl"]
    done = await measure(valley, dataset, MeasureOptions(Grid((), {}), metrics), records=records)
    assert done.to_dict()["recipes"]["peer"]["em"] == 1
    assert done.to_dict()["recipes"]["peer"]["unscored"] == 0
    [problem] = done.problems
    assert problem.startswith("accuracy: needs a judge")


async def test_refusals_are_told_wherever_something_cannot_be_answered(
    valley: KnowledgeBase, tmp_path: Path
) -> None:
    rows = [
        {"id": "q1", "question": "Where was Ilse Brandvik born?", "answer": "Hallowmere"},
        {"id": "q2", "question": "Who sold the moon?", "answerable": False},
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    wanted = MeasureOptions(build_grid(["clew"], GridAxes(["reject"])), ["em"], answers=True)
    done = await measure(valley, load_dataset(tmp_path), wanted)
    summary = done.reports[0].summary()
    assert "refusal-recall" in summary
    assert "refusal-recall" in compare(done.reports).metrics


async def test_records_of_other_packages_are_scored_by_our_metrics(tmp_path: Path) -> None:
    rows = [
        {"package": "peer", "method": "local", "id": "q1", "passages": ["x", "ilse"], "seconds": 2},
        {"recipe": "peer local", "question": "q2", "found": ["x"], "values": {"recall@2": 9}},
        {"recipe": "peer local", "id": "elsewhere", "found": []},
        {"found": []},
    ]
    file = tmp_path / "peers.jsonl"
    file.write_text("\n".join([*map(json.dumps, rows), "{torn"]))
    [report], problems = await read_external_reports(file, ASKED, Scorer(["recall@2"]))
    assert report.recipe == "peer local"
    assert [r.values["recall@2"] for r in report.records] == [1.0, 0.0, 0.0]
    assert report.records[0].seconds == 2
    assert report.summary()["failed"] == 1  # q3 is missing: it counts, and is told
    assert [problem.split(":")[1] for problem in problems[:2]] == ["5", "4"]
    assert problems[2:] == [
        "peers.jsonl: 1 rows are ignored: their questions are not in this run "
        "(the first: 'elsewhere')"
    ]


async def test_what_a_package_did_not_answer_counts_as_wrong(tmp_path: Path) -> None:
    rows = [
        {"recipe": "peer", "id": "q1", "found": "ilse", "answer": "Hallowmere"},
        {"recipe": "peer", "id": "q2", "found": ["ilse"], "answer": ""},
        {"recipe": "finder", "id": "q1", "found": ["ilse"]},
    ]
    file = tmp_path / "peers.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    verdicts = ScriptedChat(['{"correct": true, "reason": ""}'])
    scorer = Scorer(["em", "recall@2", "accuracy"], Judge(verdicts))
    [peer, finder], problems = await read_external_reports(file, ASKED, scorer)
    assert [r.values["em"] for r in peer.records] == [1.0, 0.0, 0.0]
    assert [r.values["accuracy"] for r in peer.records] == [1.0, 0.0, 0.0]
    assert [r.values["recall@2"] for r in peer.records] == [1.0, 1.0, 0.0]
    assert peer.summary()["failed"] == 1  # the missing one
    assert "em" not in finder.metric_names() and not problems  # it only looked
    verdicts.requests.clear()
    (_, finder), problems = await read_external_reports(file, ASKED, scorer, answers=True)
    assert [r.values["em"] for r in finder.records] == [0.0, 0.0, 0.0]
    assert problems == ["peers.jsonl: finder has no answers; each question counts as wrong"]


async def test_rows_that_cannot_be_used_are_named_and_count_as_failed(tmp_path: Path) -> None:
    rows = [
        {"recipe": "peer", "id": "q1", "found": 5, "answer": "Hallowmere"},
        {"recipe": "peer", "id": "q2", "found": ["ilse"], "answer": "Hallowmere"},
        {"recipe": "peer", "id": "q2", "found": ["x"], "answer": "Hallowmere", "usage": None},
        {"recipe": "peer", "id": "q3", "seconds": "long"},
        [1],
    ]
    file = tmp_path / "peers.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    [report], problems = await read_external_reports(file, ASKED, Scorer(["em", "recall@2"]))
    assert [r.values for r in report.records] == [
        {"em": 0.0, "recall@2": 0.0},
        {"em": 1.0, "recall@2": 0.0},
        {"em": 0.0, "recall@2": 0.0},
    ]
    assert report.summary()["failed"] == 2
    said = {problem.split(": ")[0]: problem for problem in problems}
    assert set(said) == {f"peers.jsonl:{n}" for n in (1, 3, 4, 5)}
    assert "'found' is the number 5" in said["peers.jsonl:1"]
    assert "'seconds' is 'long'" in said["peers.jsonl:4"]


async def test_what_needs_passages_is_not_told_from_records(tmp_path: Path) -> None:
    rows = [
        {"recipe": "peer", "id": "q1", "answer": "Ilse", "values": {"grounded": 0.5}},
        {"recipe": "peer", "id": "q2", "answer": "Ilse"},
        {"recipe": "peer", "id": "q3", "verdict": "refused"},
    ]
    file = tmp_path / "peers.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    [report], _ = await read_external_reports(file, ASKED, Scorer(["grounded", "refusal"]))
    assert [r.values.get("grounded") for r in report.records] == [0.5, None, None]
    reasons = [list(r.unscored) for r in report.records]
    assert reasons == [[], ["grounded"], []]  # a refusal claims nothing


async def test_a_missing_question_is_nought_under_what_the_rows_themselves_tell(
    tmp_path: Path,
) -> None:
    own = {"grounded": 0.5, "a-score": 6.0, "a-score.coherence": 7.0}
    rows = [{"recipe": "peer", "id": "q1", "answer": "Ilse", "values": own}]
    file = tmp_path / "peers.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    [report], _ = await read_external_reports(
        file, ASKED[:2], Scorer(["grounded", "a-score", "em"])
    )
    assert report.records[0].values == own | {"em": 0.0}
    assert report.records[1].values == dict.fromkeys([*own, "em"], 0.0)


async def test_no_metric_looks_deeper_than_what_was_fetched(valley: KnowledgeBase) -> None:
    metrics = ["recall@1", "recall@2", "ndcg@2"]
    report = await RecipeRunner(valley, metrics, k=1).run_recipe("bm25", ASKED)
    assert report.metric_names() == ["recall@1"]
    assert describe_dropped_metrics([report, replace(report, recipe="also")]) == [
        "recall@2, ndcg@2: left out for bm25, also: only 1 passages were fetched; use -k 2"
    ]
    assert (
        await RecipeRunner(valley, metrics, k=2).run_recipe("bm25", ASKED)
    ).metric_names() == metrics
    # Agents fetch as many as they are made to; more than there is nobody can.
    deep = await RecipeRunner(valley, ["recall@2", "recall@500"], answers=True).run_recipe(
        "clew", ASKED
    )
    assert deep.metric_names()[0] == "recall@2"
    assert default_metrics(ASKED, False, 5) == ["recall@2", "recall@5"]
    assert default_metrics(ASKED, False, 1) == ["recall@1"]
