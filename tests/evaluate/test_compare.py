"""Bootstrap, tables, grids and pages."""

import csv
import gzip
import io
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from clew.errors import ConfigError, InputError
from clew.evaluate.compare import compare, holm_correction, resample
from clew.evaluate.datasets import Question
from clew.evaluate.grid import GridAxes, build_grid, read_grid, register_variants
from clew.evaluate.record import Record
from clew.evaluate.report.page import render_page, save_report
from clew.evaluate.report.svg import ParetoPoint, draw_bar_chart, draw_pareto_plot, pareto_front
from clew.evaluate.report.text import build_table, to_csv, to_markdown
from clew.evaluate.summary import RecipeReport
from clew.recipes.parameters import vary_parameter
from clew.recipes.registry import RECIPES, resolve_recipe
from clew.types import Usage


def test_the_interval_is_that_of_the_binomial() -> None:
    values = np.array([[1.0]] * 70 + [[0.0]] * 30)
    low, high = resample(values, seed=1).confidence_interval()
    half = 1.96 * np.sqrt(0.7 * 0.3 / 100)
    assert low[0] == pytest.approx(0.7 - half, abs=0.01)
    assert high[0] == pytest.approx(0.7 + half, abs=0.01)


def test_pairing_sees_what_separate_intervals_hide() -> None:
    rng = np.random.default_rng(0)
    hard = rng.random(200)
    values = np.stack([hard, hard + 0.02 + 0.001 * rng.standard_normal(200)], axis=1)
    spread = resample(values)
    low, high = spread.confidence_interval()
    assert low[1] < high[0]  # the intervals overlap …
    assert spread.p_value(0, 1) < 0.001  # … and yet every question says the same


def test_equal_recipes_do_not_differ_and_missing_values_do_not_count() -> None:
    same = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    assert resample(same).p_value(0, 1) == 1
    holes = np.array([[1.0, np.nan], [1.0, 0.5], [1.0, 0.5]])
    assert resample(holes).confidence_interval()[0].tolist() == pytest.approx([1.0, 0.5])
    assert resample(np.zeros((0, 2))).means.shape == (1, 2)


def test_the_seed_decides() -> None:
    values = np.random.default_rng(0).random((50, 3))
    assert np.array_equal(resample(values, 500, 7).means, resample(values, 500, 7).means)
    assert not np.array_equal(resample(values, 500, 7).means, resample(values, 500, 8).means)


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.03, 0.04 times 3, 2, 1, never falling.
    assert holm_correction([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])


QUESTIONS = tuple(
    Question(str(n), f"Question <{n}>?", ("x",), ("d",), "ab"[n % 2]) for n in range(60)
)


def report(name: str, right: int, seconds: float) -> RecipeReport:
    records = tuple(
        Record(
            name,
            q.id,
            {"recall@2": float(int(q.id) < right), "f1": 0.5},
            seconds,
            found=("d",),
            evidence=({"doc": "d", "title": "</script>", "score": 1, "text": "<b>bold</b>"},),
            error="broken" if q.id == "59" else "",
        )
        for q in QUESTIONS
    )
    return RecipeReport(name, records, QUESTIONS)


TABLE = compare([report("good", 50, 0.02), report("poor", 20, 0.001), report("also", 50, 0.5)])


def test_the_best_is_bold_and_what_surely_differs_is_marked() -> None:
    good, poor = TABLE.cells["good"]["recall@2"], TABLE.cells["poor"]["recall@2"]
    assert (good.mean, good.best, good.stars, good.n) == (pytest.approx(50 / 60), True, "", 60)
    assert (poor.best, poor.stars) == (False, "**")
    assert TABLE.cells["also"]["recall@2"].best
    text = to_markdown(TABLE)
    assert "| `good` | **0.833** | **0.500** | 60 | 1 | 20 | 20 |" in text
    assert "| `poor` | 0.333** | **0.500** | 60 | 1 | **1.0** | **1.0** |" in text
    against = compare(TABLE.reports, against="poor")
    assert against.cells["good"]["recall@2"].stars == "**"
    assert against.cells["poor"]["recall@2"].stars == ""
    assert "too few to trust" not in text
    few = compare([RecipeReport("r", TABLE.reports[0].records[:9], QUESTIONS)])
    assert "9 questions are too few to trust the marks" in to_markdown(few)


def test_a_recipe_that_could_not_run_is_not_compared() -> None:
    idle = RecipeReport(
        "idle",
        tuple(
            Record("idle", q.id, {"recall@2": 0.0, "f1": 0.0}, error="no tree") for q in QUESTIONS
        ),
        QUESTIONS,
    )
    table = compare([*TABLE.reports, idle])
    assert not idle.any_succeeded and all(one.any_succeeded for one in TABLE.reports)
    assert [cell.stars for cell in table.cells["idle"].values()] == ["", ""]
    # Nor does it count among those that the others' marks are corrected for.
    assert table.cells["poor"]["recall@2"].p == TABLE.cells["poor"]["recall@2"].p


def test_the_lowest_cost_is_marked_where_costs_differ_and_are_told() -> None:
    calls = Usage(calls=1, prompt_tokens=90, completion_tokens=10)
    paid = RecipeReport("paid", (Record("paid", "1", {"f1": 1.0}, 0.2, calls),))
    free = RecipeReport("free", (Record("free", "1", {"f1": 1.0}, 0.2),))
    silent = RecipeReport(
        "silent", (Record("silent", "1", {"f1": 1.0}),), about={"from": "x.jsonl"}
    )
    table = compare([paid, free, silent])
    titles, rows = build_table(table)
    assert titles[-4:] == ["p50 ms", "p95 ms", "calls", "tokens"]
    # Both that tell a time took as long; the one that tells nothing is no better for it.
    assert [row[-4:] for row in rows] == [
        ["200", "200", "1.0", "100"],
        ["200", "200", "**0.0**", "**0**"],
        ["", "", "", ""],
    ]
    page = render_page(table, "T")
    assert "<td class=best>0.0</td>" in page and "<td class=best>200</td>" not in page


def test_a_recipe_to_compare_with_must_be_there() -> None:
    with pytest.raises(ConfigError, match="'nobody' to compare with; available: good, poor, also"):
        compare(TABLE.reports, against="nobody")


def test_csv_holds_every_figure() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(TABLE))))
    assert [row["recipe"] for row in rows] == ["good", "poor", "also"]
    assert float(rows[0]["recall@2 low"]) < 50 / 60 < float(rows[0]["recall@2 high"])
    assert rows[1]["failed"] == "1"


def test_the_page_needs_nothing_from_elsewhere_and_runs_no_text() -> None:
    page = render_page(TABLE, "T & T", ["about <this>"])
    assert not re.search(r"(?:src|href)=|@import|url\(|https?://(?!www\.w3\.org)", page)
    assert page.count("<script") == 2 and page.count("</script>") == 2
    assert "<b>bold" not in page and "about &lt;this&gt;" in page
    assert "$" not in page
    facts = json.loads(re.search(r'id="facts">(.*?)</script>', page)[1])  # type: ignore[index]
    assert facts["total"] == 60
    assert facts["passages"] == [{"doc": "d", "text": "<b>bold</b>", "title": "</script>"}]
    assert facts["questions"][0]["runs"][0]["evidence"] == [[0, 1]]
    assert "<svg" in page and "by type" in page


def test_a_placeholder_in_a_title_stays_as_it_is() -> None:
    page = render_page(TABLE, "$FACTS @FACTS@", ["$TABLE"])
    assert "<h1>$FACTS @FACTS@</h1>" in page and '<p class="soft">$TABLE</p>' in page
    assert page.count('"questions"') == 1


def test_a_long_run_shows_the_questions_that_tell_recipes_apart() -> None:
    page = render_page(TABLE, "T", questions_shown=5)
    facts = json.loads(re.search(r'id="facts">(.*?)</script>', page)[1])  # type: ignore[index]
    values = [[r["values"]["recall@2"] for r in q["runs"]] for q in facts["questions"]]
    assert values == [[1.0, 0.0, 1.0]] * 5


def test_everything_is_saved(tmp_path: Path) -> None:
    save_report(TABLE, tmp_path / "deep" / "out", {"dataset": "d"}, ["line"])
    names = {path.name for path in (tmp_path / "deep" / "out").iterdir()}
    assert names == {"table.json", "table.csv", "table.md", "report.html", "records.jsonl.gz"}
    packed = (tmp_path / "deep" / "out" / "records.jsonl.gz").read_bytes()
    assert len(gzip.decompress(packed).splitlines()) == 180


def test_the_front_holds_what_nothing_beats() -> None:
    points = [ParetoPoint(n, x, y, y, y, "") for n, x, y in (("a", 1, 1), ("b", 2, 3), ("c", 3, 2))]
    assert [point.name for point in pareto_front(points)] == ["a", "b"]
    assert draw_bar_chart([], "x") == ""


def test_a_comparison_of_nothing_is_empty() -> None:
    empty = compare([RecipeReport("r", ())])
    assert "`r`" in to_markdown(empty)
    assert "<html" in render_page(empty, "nothing")


def test_no_name_in_a_plot_lies_on_a_dot_or_another_name() -> None:
    spots = [(480, 0.933), (500, 0.937), (630, 0.944), (760, 0.941), (765, 0.941), (770, 0.94)]
    points = [
        ParetoPoint(f"recipe-{at} (open)", x, y, 0.8, 1.0, "#000")
        for at, (x, y) in enumerate(spots)
    ]
    page = draw_pareto_plot(points, "tokens per question", "accuracy")
    dots = [
        (float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', page)
    ]
    names = re.findall(r'class="name" x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]+)<', page)
    boxes = []
    for x, y, anchor, name in names:
        wide = 6.8 * len(name)
        left = float(x) - wide * (anchor == "end")
        boxes.append((left, left + wide, float(y) - 10, float(y) + 2))
    assert len(boxes) == len(dots) == 6
    for left, right, top, bottom in boxes:
        assert 0 <= left and right <= 640
        assert not any(
            left < x + 5 and x - 5 < right and top < y + 5 < bottom + 10 for x, y in dots
        )
    for at, (left, right, top, bottom) in enumerate(boxes):
        for other in boxes[at + 1 :]:
            assert right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top


# -- grids


@dataclass(frozen=True)
class Inner:
    width: int = 1


@dataclass(frozen=True)
class Outer:
    parts: tuple[Inner, ...] = (Inner(), Inner())
    width: int = 5


def test_a_number_is_varied_wherever_its_step_stands() -> None:
    assert vary_parameter(Outer(), "Inner.width", 3) == Outer((Inner(3), Inner(3)))
    assert vary_parameter((Outer(),), "Outer.width", 3)[0].width == 3
    with pytest.raises(ConfigError, match=r"no parameter 'Inner\.height'"):
        vary_parameter(Outer(), "Inner.height", 3)


def test_a_grid_file_becomes_rows(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(
        'recipes = ["naive"]\nk = [5, 10]\n[[vary]]\nrecipe = "naive"\n'
        'set = { "Dense.top_k" = [7, 9] }\n'
    )
    grid = read_grid(file)
    assert [case.label for case in grid.cases] == [
        "naive k=5",
        "naive k=10",
        "naive[Dense.top_k=7] k=5",
        "naive[Dense.top_k=7] k=10",
        "naive[Dense.top_k=9] k=5",
        "naive[Dense.top_k=9] k=10",
    ]
    with register_variants(grid.variants):
        steps = resolve_recipe(grid.cases[2].recipe).retrieve.steps
        assert "top_k=7" in repr(steps)
    assert not any("top_k" in name for name in RECIPES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("recipes = [", "is not valid TOML"),
        ("recipe = ['clew']", "unknown key 'recipe'"),
        ("recipes = []", "has no recipe"),
        ("recipes = ['clew']\nmodes = ['maybe']", "unknown mode 'maybe'"),
        ("recipes = ['nope']", "'nope'"),
        ("recipes = 'naive'", "`recipes` is 'naive'; give a list"),
        ("recipes = [3]", "3 under `recipes` is not a name"),
        ("recipes = ['naive']\nk = ['x']", "'x' under `k` is not a whole number"),
        ("recipes = ['naive']\nk = 5", "`k` is 5; give a list"),
        ("recipes = ['naive']\nk = [-1]", "-1 under `k`"),
        ("recipes = ['naive']\nvary = 'x'", "`vary` is 'x'; give a list"),
        ("recipes = ['naive']\nvary = ['x']", "'x' under `vary` is not a table"),
        ("[[vary]]\nset = {}", "has no `recipe`"),
        ("[[vary]]\nrecipe = 'naive'\nsets = {}", "unknown key 'sets'"),
        (
            "[[vary]]\nrecipe = 'naive'\nset = { 'Dense.top_k' = [5, 'many'] }",
            "Dense.top_k: must be an integer",
        ),
        (
            "[[vary]]\nrecipe = 'naive'\nset = { 'Dense.top_k' = -2 }",
            "Dense.top_k: must not be negative",
        ),
        (
            "[[vary]]\nrecipe = 'naive'\nset = { 'Chain.steps' = ['x'] }",
            "Chain.steps: must be a list",
        ),
    ],
)
def test_bad_grids_are_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(text)
    with pytest.raises((ConfigError, InputError), match=re.escape(said)):
        read_grid(file)


def test_a_grid_may_be_yaml(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    file = tmp_path / "grid.yaml"
    file.write_text("recipes: [naive]\nvary:\n  - recipe: naive\n    set: {Dense.top_k: [7, 9]}\n")
    assert [case.label for case in read_grid(file).cases] == [
        "naive",
        "naive[Dense.top_k=7]",
        "naive[Dense.top_k=9]",
    ]
    file.write_text("recipes: [naive\n")
    with pytest.raises(InputError, match="is not valid YAML"):
        read_grid(file)
    file.write_text("- naive\n")
    with pytest.raises(InputError, match="is not a mapping"):
        read_grid(file)


def test_without_pyyaml_a_yaml_grid_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    (tmp_path / "grid.yml").write_text("recipes: [naive]\n")
    with pytest.raises(ConfigError, match="pip install pyyaml"):
        read_grid(tmp_path / "grid.yml")


def test_what_only_answers_depend_on_is_run_once_without_them(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text('recipes = ["clew", "naive"]\nk = [5, 20]\nmodes = ["open", "reject"]\n')
    assert len(read_grid(file).cases) == 8
    assert read_grid(file).note == ""
    grid = read_grid(file, answers=False)
    assert [(case.label, case.k) for case in grid.cases] == [("clew", 20), ("naive", 20)]
    assert "add --answers" in grid.note
    assert build_grid(["clew"], answers=False).note == ""


def test_both_modes_are_two_rows() -> None:
    labels = [case.label for case in build_grid(["clew"], GridAxes(["open", "reject"])).cases]
    assert labels == ["clew (open)", "clew (reject)"]
