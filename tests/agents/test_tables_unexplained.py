"""Words that no column, value or table explains: no condition, no order, and less confidence."""

import pytest

import clew
from conftest import one_in_three

VANS = """van_id,van,garage,bought
V1,Robin,Leith,2015
V2,Wren,Leith,2019
V3,Heron,Perth,2022
"""
CREW = """crew_id,name,job,van_id
1,Una Boyd,fitter,V1
2,Ross Kerr,apprentice,V1
3,Iona Fyfe,fitter,V3
4,Neil Gow,plumber,V2
"""
CALLS = """call,van_id,town,date
K1,V1,Fife,2025-02-03
K2,V1,Alloa,2025-02-09
K3,V2,Fife,2025-03-01
K4,V3,Crieff,2025-03-12
K5,V3,Alloa,2025-04-02
"""


@pytest.fixture(scope="module")
def vans(tmp_path_factory: pytest.TempPathFactory) -> clew.Kb:
    folder = tmp_path_factory.mktemp("vans")
    for name, text in (("vans", VANS), ("crew", CREW), ("calls", CALLS)):
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    base = clew.open(folder / "kb")
    base.add(sorted(folder.glob("*.csv")))
    return base


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Who works on Robin?", "Una Boyd, Ross Kerr"),
        ("How many calls did the vans of Leith have?", "3"),
    ],
)
def test_free_words_are_no_condition_and_the_noun_says_what_is_counted(
    vans: clew.Kb, question: str, told: str
) -> None:
    assert vans.ask(question).candidate == told


@pytest.mark.parametrize(
    "question",
    one_in_three(
        [
            "Which town was bombed most?",
            "How many vans were stolen in 2025?",
            "How many vans crashed in 2025?",
            "Who is the lessee?",
        ]
    ),
)
def test_a_deed_that_no_column_tells_of_costs_confidence(vans: clew.Kb, question: str) -> None:
    answer = vans.ask(question)

    assert answer.verdict == "refused" or answer.confidence < 0.5


def test_reject_refuses_what_is_computed_below_the_threshold(vans: clew.Kb) -> None:
    asked = "How many vans were stolen in 2025?"
    open_answer = vans.ask(asked)
    assert open_answer.computed and 0.3 <= open_answer.confidence < 0.5
    refused = vans.ask(asked, mode="reject")
    assert refused.verdict == "refused"
    assert "below 0.50" in refused.missing
    assert refused.confidence == open_answer.confidence
    assert vans.ask(asked, mode="reject", confidence=0.3).candidate == open_answer.candidate
