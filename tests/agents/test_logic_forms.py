"""Logic forms: what is a valid plan, and what the operators compute."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.core.plan import Join, Plan
from clew.agents.logic.compute import (
    Item,
    Uncomputable,
    apply_aggregate,
    apply_combine,
    apply_compare,
    apply_filter,
    apply_get,
    apply_sort,
    compute_difference,
)
from clew.agents.logic.forms import (
    Aggregate,
    Combine,
    Compare,
    Filter,
    Get,
    LogicPlan,
    RawStep,
    Retrieve,
    Sort,
    needs_all_items,
    validate_plan,
)
from clew.agents.planning.compare_answers import answers_equal, combine_answers
from clew.agents.rograg import to_logic_plan
from clew.text.dates import days_between, is_before, parse_date, years_between
from clew.text.quantities import Quantity, parse_quantity


def step(op: str, *args: str) -> RawStep:
    return RawStep(op=op, args=list(args))


FIND = step("retrieve", "Marrow Bridge", "designer")


def test_a_plan_becomes_typed_operators() -> None:
    plan = validate_plan(
        [
            FIND,
            step("retrieve", "?", "designer", "#1"),
            step("filter", "#2", ">", "100 m"),
            step("Sort", "#3", "desc"),
            step("get", "#4", "1"),
            step("count", "#2"),
            step("compare", "#5", "#6", "larger"),
        ]
    )
    assert plan.valid
    assert plan.steps == (
        Retrieve("Marrow Bridge", "designer"),
        Retrieve("?", "designer", "#1"),
        Filter(2, ">", "100 m"),
        Sort(3, falling=True),
        Get(4, 1),
        Aggregate(2, "count"),
        Compare(5, 6, "larger"),
    )
    assert [needs_all_items(plan, number) for number in range(1, 8)] == [
        # The first too: what is filtered and counted is looked up for each of its items.
        *(True, True, True, False, False, False, False)
    ]


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([], "no steps"),
        ([step("teleport", "#1")], "no such operator"),
        ([FIND, step("count", "#2")], "#2 is no earlier step"),
        ([FIND, step("count", "Paris")], "must be a reference"),
        ([FIND, step("count")], "0 arguments"),
        ([FIND, step("filter", "#1", "~", "x")], "'~' is none of"),
        ([FIND, step("get", "#1", "last")], "no place in a list"),
        ([FIND, step("get", "#1", "²")], "no place in a list"),
        ([FIND, step("get", "#1", "9" * 5000)], "no place in a list"),
        ([FIND, step("get", "#²")], "must be a reference"),
        ([FIND, step("retrieve", "Ash", "home of #3")], "#3 is no earlier step"),
        ([FIND, step("filter", "#1", "=", "#4")], "#4 is no earlier step"),
        ([step("retrieve", "#1", "designer")], "#1 is no earlier step"),
        ([step("retrieve", "?", "designer")], "both unknown"),
        ([FIND, step("compare", "#1", "#1", "prettier")], "'prettier' is none of"),
        ([FIND] * 20, "more than 8"),
    ],
)
def test_what_cannot_run_is_named(steps: list[RawStep], problem: str) -> None:
    plan = validate_plan(steps)
    assert not plan.valid
    assert problem in "; ".join(plan.problems)


@given(
    st.lists(
        st.builds(
            RawStep,
            op=st.sampled_from(["retrieve", "count", "sort", "filter", "get", "compare", "x", ""]),
            args=st.lists(
                st.sampled_from(["#1", "#2", "#9", "?", "a", "", "=", "asc"]), max_size=4
            ),
        ),
        max_size=9,
    )
)
def test_any_plan_is_either_valid_or_explained(steps: list[RawStep]) -> None:
    plan = validate_plan(steps)
    assert plan.valid or plan.problems


OPERATORS = (
    "retrieve filter sort count sum mean max min compare intersect union difference get".split()
)
ARGUMENTS = st.one_of(
    st.sampled_from(["#1", "#2", "#8", "#0", "#-1", "#²", "#٣", "²", "?", "=", "desc", "larger"]),
    st.text(max_size=12),
    st.integers().map(str),
)


@given(
    st.lists(
        st.builds(
            RawStep,
            op=st.sampled_from(OPERATORS) | st.text(max_size=8),
            args=st.lists(ARGUMENTS, max_size=4),
        ),
        max_size=10,
    )
)
def test_whatever_a_model_writes_is_typed_or_explained(steps: list[RawStep]) -> None:
    plan = validate_plan(steps)
    assert plan.valid or plan.problems
    for number, one in enumerate(plan.steps if plan.valid else (), start=1):
        behind = one.refs if isinstance(one, Retrieve) else []
        assert all(1 <= ref < number for ref in behind)


def items(*texts: str) -> tuple[Item, ...]:
    return tuple(Item(text, f"owner of {text}") for text in texts)


def texts(found: tuple[Item, ...]) -> list[str]:
    return [item.text for item in found]


def test_filters() -> None:
    some = items("120 m", "0.3 km", "90 m", "unknown", "5 kg")
    assert texts(apply_filter(Filter(1, ">", "100 m"), some)) == ["120 m", "0.3 km"]
    assert texts(apply_filter(Filter(1, "<=", "90 m"), some)) == ["90 m"]
    assert texts(apply_filter(Filter(1, "=", "300 metres"), some)) == ["0.3 km"]
    dates = items("3 May 1888", "1921", "soon")
    assert texts(apply_filter(Filter(1, "before", "1900"), dates)) == ["3 May 1888"]
    assert texts(apply_filter(Filter(1, "after", "1900"), dates)) == ["1921"]
    assert texts(apply_filter(Filter(1, "contains", "MAY"), dates)) == ["3 May 1888"]


def test_sorting_by_date_by_amount_and_by_name() -> None:
    assert texts(apply_sort(Sort(1), items("1921", "3 May 1888", "44 BC"))) == [
        *("44 BC", "3 May 1888", "1921")
    ]
    assert texts(apply_sort(Sort(1, falling=True), items("2 km", "300 m", "1 mile"))) == [
        *("2 km", "1 mile", "300 m")
    ]
    assert texts(apply_sort(Sort(1), items("pear", "Apple"))) == ["Apple", "pear"]


def test_aggregates() -> None:
    def value(how: str, *some: str) -> str:
        return apply_aggregate(Aggregate(1, how), items(*some))[0].text  # type: ignore[arg-type]

    assert value("count", "Ash", "Elm", "ash") == "2"
    assert value("count") == "0"
    assert value("sum", "1.5 km", "500 m") == "2 km"
    assert value("mean", "2", "4", "9") == "5"
    assert value("max", "2 km", "300 m") == "2 km"
    assert value("min", "1921", "3 May 1888") == "3 May 1888"


@pytest.mark.parametrize("how", ["sum", "mean", "max", "min"])
def test_what_cannot_be_computed_says_why(how: str) -> None:
    with pytest.raises(Uncomputable, match="no values to take"):
        apply_aggregate(Aggregate(1, how), ())  # type: ignore[arg-type]  # a division by zero, for mean
    with pytest.raises(Uncomputable, match="is not a number"):
        apply_aggregate(Aggregate(1, how), items("3", "many"))  # type: ignore[arg-type]
    with pytest.raises(Uncomputable, match="units"):
        apply_aggregate(Aggregate(1, how), items("3 km", "3 kg"))  # type: ignore[arg-type]


def test_sets_by_loose_names() -> None:
    left, right = items("The Tarn", "Orm"), items("tarn", "Elbe")
    assert texts(apply_combine(Combine(1, 2, "intersect"), left, right)) == ["The Tarn"]
    assert texts(apply_combine(Combine(1, 2, "difference"), left, right)) == ["Orm"]
    assert texts(apply_combine(Combine(1, 2, "union"), left, right)) == ["The Tarn", "Orm", "Elbe"]


def test_comparing_names_the_owner() -> None:
    earlier = Compare(1, 2, "earlier")
    assert apply_compare(earlier, items("1946"), items("1961"))[0].text == "owner of 1946"
    assert (
        apply_compare(Compare(1, 2, "same"), items("Norway"), items("Norwegian"))[0].text == "yes"
    )
    assert apply_compare(Compare(1, 2, "larger"), items("2 km"), items("900 m"))[0].text == (
        "owner of 2 km"
    )
    with pytest.raises(Uncomputable, match="cannot decide"):
        apply_compare(earlier, items("1961"), items("May 1961"))
    with pytest.raises(Uncomputable, match="equal"):
        apply_compare(Compare(1, 2, "larger"), items("2 km"), items("2000 m"))
    with pytest.raises(Uncomputable, match="not found"):
        apply_compare(earlier, (), items("1961"))


def test_differences_with_units_and_dates() -> None:
    assert compute_difference("112 cm", "1.05 m") == "7 cm"
    assert compute_difference("3 May 1888", "1 May 1921") == "32 years (12,050 days)"
    assert compute_difference("1888", "1921") == "33 years"
    assert compute_difference("44 BC", "14 AD") == "57 years"
    with pytest.raises(Uncomputable):
        compute_difference("3 km", "3 kg")


def test_getting_a_place() -> None:
    assert texts(apply_get(Get(1, 2), items("a", "b"))) == ["b"]
    assert texts(apply_get(Get(1), items("a", "b"))) == ["a", "b"]
    with pytest.raises(Uncomputable):
        apply_get(Get(1, 3), items("a", "b"))


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("20 March 851", (851, 3, 20)),
        ("March 20, 1851", (1851, 3, 20)),
        ("on the 3rd of May, 1888", (1888, 5, 3)),
        ("born c. 1888, died 1921", (1888, 0, 0)),
        ("May 1961", (1961, 5, 0)),
        ("1946-02-03", (1946, 2, 3)),
        ("44 BC", (-44, 0, 0)),
        ("15 March 44 BC", (-44, 3, 15)),
        ("公元前44年3月15日", (-44, 3, 15)),
        ("1888年5月", (1888, 5, 0)),
        ("3rd century", (201, 0, 0)),
        ("99 balloons, 3.5 litres, 12,500 people", None),
        ("", None),
    ],
)
def test_dates_are_read_from_words(text: str, order: tuple[int, int, int] | None) -> None:
    assert parse_date(text) == order


@pytest.mark.parametrize(
    ("text", "amount", "dimension"),
    [
        ("1,234.5 km", 1_234_500.0, "length"),
        ("six feet? no: 6 feet", 1.8288, "length"),
        ("3 million people", 3_000_000.0, ""),
        ("$5 billion", 5e9, "money $"),
        ("12 %", 0.12, "share"),
        ("2 square kilometres", 2e6, "area"),
        ("3万人", 30_000.0, ""),
        ("twelve", 12.0, ""),
        ("-4", -4.0, ""),
    ],
)
def test_amounts_are_read_with_their_units(text: str, amount: float, dimension: str) -> None:
    found = parse_quantity(text)
    assert found is not None
    assert found.amount == pytest.approx(amount)
    assert found.dimension == dimension


def test_amounts_are_written_in_the_unit_they_were_said_in() -> None:
    assert str(Quantity(1500.0, "length", "km")) == "1.5 km"
    assert parse_quantity("nothing at all") is None


def test_ages_and_order() -> None:
    assert years_between((1888, 5, 3), (1921, 5, 2)) == 32
    assert years_between((1888, 5, 3), (1921, 5, 3)) == 33
    assert days_between((2000, 2, 28), (2000, 3, 1)) == 2
    assert days_between((2000, 2, 0), (2000, 3, 1)) is None
    assert is_before((1961, 0, 0), (1961, 5, 0)) is None
    assert is_before((-44, 0, 0), (14, 0, 0)) is True


def test_joins() -> None:
    life = Join("longer life", ((1, 2), (3, 4)), ("Ash", "Elm"))
    dates = {1: "1900", 2: "1950", 3: "1920", 4: "1999"}
    assert combine_answers(life, dates) == "Elm"
    assert combine_answers(life, {**dates, 4: "unknown"}) == ""
    assert (
        combine_answers(Join("earlier", ((1,), (2,)), ("Ash", "Elm")), {1: "1950", 2: "1920"})
        == "Elm"
    )
    assert (
        combine_answers(Join("larger", ((1,), (2,)), ("Ash", "Elm")), {1: "5 km", 2: "5 kg"}) == ""
    )
    assert (
        combine_answers(Join("same", ((1,), (2,)), ("Ash", "Elm")), {1: "Iran", 2: "Georgia"})
        == "no"
    )
    assert combine_answers(Join("same", ((1,), (2,)), ("Ash", "Elm")), {1: "Iran"}) == ""


def test_what_means_the_same() -> None:
    assert answers_equal("American", "American film")
    assert answers_equal("Norwegian", "Norway")
    assert not answers_equal("Iran", "Iraq")
    assert not answers_equal("", "Iran")


def test_a_plan_in_words_becomes_a_logic_form() -> None:
    plan = Plan(
        ("When was Ash born?", "When did Ash die?", "When was Elm born?", "When did Elm die?"),
        Join("longer life", ((1, 2), (3, 4)), ("Ash", "Elm")),
    )
    assert to_logic_plan(plan).steps[4:] == (
        Compare(1, 2, "difference"),
        Compare(3, 4, "difference"),
        Compare(5, 6, "larger"),
    )
    assert isinstance(to_logic_plan(Plan(("Who?",))), LogicPlan)
