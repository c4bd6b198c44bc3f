"""Names are found whole, and openers, pronouns, units and values are no part of them."""

import pytest

from clew.extract.rules import Offline
from clew.ingest.chunk import BySentences
from clew.ingest.readers.source import make_document
from clew.types import LITERAL_TYPES


async def find(text: str, title: str = "") -> dict[str, str]:
    document = make_document(text, title)
    found = await Offline()(document, BySentences(size=4000)(document))
    return {entity.name: entity.type for one in found for entity in one.entities if entity.spans}


@pytest.mark.parametrize(
    ("text", "name", "part"),
    [
        ("Author: Berit Solheim\n\nRun `weave`.", "Berit Solheim", "Solheim"),
        ("Editor\n:   Tahir Aslan\n\nRun `weave`.", "Tahir Aslan", "Aslan"),
        ("Weaving notes\n\nRosa Quint\n\nRun `weave`.", "Rosa Quint", "Quint"),
        ("Run `weave`. Rosa Quint maintains it.", "Rosa Quint", "Quint"),
        ("Owner: Rosa Quint\n\nRun `weave`. Quint keeps it.", "Rosa Quint", "Rosa"),
    ],
)
async def test_who_is_named_once_keeps_the_given_name(text: str, name: str, part: str) -> None:
    found = await find(text)
    assert name in found and part not in found


async def test_an_order_or_an_adverb_before_a_name_is_no_part_of_it() -> None:
    text = "Run `loom`. It waits 1300 ms. Luckily Tessel reads it. Click Apply. Tessel is new."
    found = await find(text)
    assert {"Tessel", "Apply"} <= set(found)
    assert not {"Luckily", "Luckily Tessel", "Click Apply", "Click"} & set(found)
    assert found["1300 ms"] == "number"


async def test_a_year_before_a_word_stays_a_year() -> None:
    found = await find("The mill of Orla burnt in 1911 people say. In 1920 a new one was built.")
    assert found["1911"] == found["1920"] == "date"


async def test_a_word_that_mostly_begins_sentences_is_no_name_where_one_is_missed() -> None:
    opened = "Returns the size. It returns. " * 4
    found = await find(f"{opened}\nUse `size`, k = 1 Returns nothing to Osmia or Halta.")
    assert "Returns" not in found and {"Osmia", "Halta"} <= set(found)


async def test_german_pronouns_and_objects_are_no_part_of_names() -> None:
    text = (
        "Bitte lesen Sie die Hinweise von Arne Petersen aus Flensburg. Danach prüft Silke Maurer "
        "den Kessel. Wenn der Druck steigt, rufen Sie Silke Maurer an. Der Graf Otto von der "
        "Marwitz wohnt hier nicht mehr, und das ist auch gut so."
    )
    found = {name for name, kind in (await find(text)).items() if kind not in LITERAL_TYPES}
    assert {"Arne Petersen", "Flensburg", "Silke Maurer"} <= found
    assert any(name.endswith("Otto von der Marwitz") for name in found)
    assert not {name for name in found if "Sie" in name or " den " in name or "Druck" in name}


async def test_a_value_behind_a_short_option_is_no_option() -> None:
    found = await find("Run `plot`:\n\n```\nplot -Tpng -oleaf.png --dry-run\n```\n")
    assert found["-Tpng"] == found["--dry-run"] == "flag" and "-oleaf" not in found
