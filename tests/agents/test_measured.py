"""A number answers a question for a measure only where it is one of that measure."""

import pytest

from clew.agents.reading.measured import find_asked_quantity, find_measured, measures_other
from clew.engine import KnowledgeBase
from clew.types import Passage
from conftest import OpenFilled, document, stream

HARL = "It is 340 metres long and 16 metres wide."
PAGES = {
    "Harl Bridge": f"Harl Bridge crosses the Sund. {HARL} It was opened in 1921.",
    "Tove Bridge": "Tove Bridge is 980 feet long. It has three lanes.",
    "Skarn": "Skarn is a mountain of 1,210 metres.",
    "Pump K4": "The K4 is a pump. It weighs 31 kg and delivers 90 litres per minute.",
}


@pytest.mark.parametrize(
    ("question", "sentence", "number", "other"),
    [
        ("How wide is Harl Bridge?", HARL, "340", True),
        ("How wide is Harl Bridge?", HARL, "16", False),
        ("How long is Harl Bridge?", HARL, "16", True),
        ("How wide is Skarn?", "Skarn is a mountain of 1,210 metres.", "1,210", True),
        ("How high is Skarn?", "Skarn is a mountain of 1,210 metres.", "1,210", False),
        ("How high is Skarn?", "Skarn is 210 m higher than Bole.", "210", True),
        ("What is the depth of Lake Bo?", "Lake Bo has a depth of 40 m.", "40", False),
        ("What is the area of Lake Bo?", "Lake Bo has a depth of 40 m.", "40", True),
        ("How fast is the K4?", "It delivers 90 litres per minute.", "90", True),
        ("How many lanes has Harl Bridge?", HARL, "340", False),
        ("How high is Harl Bridge?", "Its towers are 61 metres high.", "61", True),
        ("How high are the towers of N?", "Its towers are 61 metres high.", "61", False),
        ("How high is Harl Bridge?", "Its height is 61 metres.", "61", False),
        ("Wie breit ist die Brücke?", "Sie ist 230 Meter lang und 14 Meter breit.", "230", True),
        ("Wie breit ist die Brücke?", "Sie ist 230 Meter lang und 14 Meter breit.", "14", False),
        ("Wie hoch ist der Turm?", "Er hat eine Höhe von 118 Metern.", "118", False),
        ("Wie hoch ist die Miete?", "Die Miete beträgt 500 Euro.", "500", False),
        ("石桥有多宽？", "桥长320米，宽12米。", "320", True),
        ("石桥有多宽？", "桥长320米，宽12米。", "12", False),
    ],
)
def test_what_a_number_measures_is_said_beside_it(
    question: str, sentence: str, number: str, other: bool
) -> None:
    assert measures_other(question, sentence, sentence.index(number)) is other


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("How wide is it?", "width"),
        ("What is the total width of the gate?", "width"),
        ("How many people live on the high street?", ""),
        ("Who built the long wall?", ""),
        ("石桥有多宽？", "width"),
    ],
)
def test_a_measure_is_asked_by_its_adjective_or_noun(question: str, asked: str) -> None:
    found = find_asked_quantity(question)
    assert (found.name if found else "") == asked


def test_a_measure_is_found_on_the_page_of_its_thing() -> None:
    text = "Die Havelbrücke steht in Lindau. Sie ist 230 Meter lang und 14 Meter breit."
    page = Passage("a", "a", "Havelbrücke", 1.0, text, 0, len(text))
    found = find_measured("Wie breit ist die Havelbrücke?", ["die Havelbrücke"], [page])
    assert found is not None and text[slice(*found[1])] == "14 Meter"
    assert find_measured("Wie tief ist die Havelbrücke?", ["die Havelbrücke"], [page]) is None
    assert find_measured("Wie breit ist die Saarbrücke?", ["die Saarbrücke"], [page]) is None


async def fill(base: KnowledgeBase) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))


@pytest.fixture
async def bridges(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_filled(fill)


async def test_a_width_is_not_answered_with_a_length(bridges: KnowledgeBase) -> None:
    right = await bridges.ask("How wide is Harl Bridge?", mode="open", k=8)
    assert right.candidate == "16 metres"
    wrong = await bridges.ask("How wide is Tove Bridge?", mode="open", k=8)
    assert wrong.confidence < 0.5 and not wrong.candidate.startswith("980")
