"""Offline extraction: names of any script, spans that hold, facts with their subject.

Words before a colon at a line's start, and names that a line break divides.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.extract.rules import Offline
from clew.ingest.chunk import CHUNKERS
from clew.sync import wait
from clew.text.unicode import digest
from clew.types import SUBJECT, Document, Extraction


def extract(text: str, title: str = "") -> Extraction:
    document = Document(digest(title, text), text, title, ("d",))
    chunks = CHUNKERS["sentences"](document)
    found = wait(Offline()(document, chunks))
    return Extraction(
        tuple(e for one in found for e in one.entities),
        tuple(f for one in found for f in one.facts),
    )


def names(text: str, title: str = "") -> set[str]:
    return {entity.name for entity in extract(text, title).entities}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He met Marie Curie in Paris.", {"Marie Curie", "Paris"}),
        ("In 1990 the University of Oxford opened it.", {"1990", "University of Oxford"}),
        (
            "She read J. R. R. Tolkien and Ursula K. Vernon.",
            {"J. R. R. Tolkien", "Ursula K. Vernon"},
        ),
        ('He wrote "the slow train" there.', {"the slow train"}),
        ("Она встретила Льва Толстого в Москве.", {"Льва Толстого", "Москве"}),
        ("Her friend Ludwig van Beethoven came.", {"Ludwig van Beethoven"}),
        ("It happened on 11 November 1918 near Compiègne.", {"11 November 1918", "Compiègne"}),
        ("It is 35 km long.", {"35 km"}),
        ("他读过《红楼梦》。", {"红楼梦"}),
    ],
)
def test_names_of_many_kinds(text: str, expected: set[str]) -> None:
    assert expected <= names(text)


def test_common_words_at_the_start_are_no_names() -> None:
    assert names("The town was old. However it grew. There he lived.") == set()


def test_what_the_title_names_is_the_subject_of_every_sentence() -> None:
    found = extract("She was born in Hallowmere. It rained.", "Ilse Brandvik")
    assert [fact.members for fact in found.facts] == [
        (("Ilse Brandvik", SUBJECT), ("Hallowmere", "member")),
        (("Ilse Brandvik", SUBJECT),),
    ]
    assert next(e.about for e in found.entities if e.name == "Ilse Brandvik") == 1.0


def test_without_a_title_the_first_sentence_names_the_subject() -> None:
    found = extract("Ilse Brandvik was an engineer. She was born in Hallowmere.")
    assert found.facts[1].members[0] == ("Ilse Brandvik", SUBJECT)


def test_a_surname_stands_for_the_full_name_said_before() -> None:
    found = extract("Anton Reeve met Clara Lindqvist. Later Lindqvist left Reeve.")
    spans = {entity.name: len(entity.spans) for entity in found.entities}
    assert (spans["Anton Reeve"], spans["Clara Lindqvist"]) == (2, 2)


@given(st.text(max_size=300), st.text(max_size=20))
def test_any_text_gives_spans_within_it(text: str, title: str) -> None:
    found = extract(text, title)
    for entity in found.entities:
        assert entity.name.strip()
        for start, end in entity.spans:
            assert 0 <= start < end <= len(text)
    for fact in found.facts:
        assert text[slice(*fact.span)] == fact.text
        assert fact.members


def about(text: str, title: str = "") -> dict[str, float]:
    return {e.name: e.about for e in extract(text, title).entities if e.about}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Marrow Bridge (1850), on the Tarn, is old.", {"Marrow Bridge"}),
        ("Ilse Brandvik, also known as Greta Holm, was an engineer.", {"Greta Holm"}),
        ("Salt or Brine is a film.", {"Salt or Brine", "Salt", "Brine"}),
        ("A Quiet Shore is a novel.", {"A Quiet Shore"}),
        ("His Last Bridge is a film.", {"His Last Bridge"}),
        ('"Changed It" is a song.', {"Changed It"}),
        ("In its first year the Quay Prize was small.", {"Quay Prize"}),
    ],
)
def test_what_the_first_sentence_defines(text: str, expected: set[str]) -> None:
    assert expected <= set(about(text))


def test_a_side_name_weighs_less_than_the_head() -> None:
    found = about("Ilse Brandvik, also known as Greta, was an engineer.")
    assert found["Ilse Brandvik"] == 0.9
    assert found["Greta"] == 0.6


def test_the_head_phrase_outweighs_a_weaker_hint_of_the_title() -> None:
    assert about("Pellworth is a town.", "Pellworth, Vessen")["Pellworth"] == 0.9


def test_a_rank_after_a_comma_belongs_to_the_name() -> None:
    found = names("She met Albert III, Duke of Bavaria, and Anna, a nurse.")
    assert {"Albert III", "Albert III, Duke of Bavaria", "Anna"} <= found
    assert "Duke of Bavaria" not in found


def test_a_date_after_a_dash_is_no_part_of_a_name() -> None:
    found = names("She (1 May 1900 in Vessen – 14 February 1950 in Ulm) wrote.")
    assert {"Vessen", "Ulm"} <= found
    assert not any("–" in name for name in found)


def test_the_subject_is_seen_whole() -> None:
    found = extract("Brother Rat and a Baby is a film. Brother Rat and a Baby ran long.")
    spans = {entity.name: len(entity.spans) for entity in found.entities}
    assert spans["Brother Rat and a Baby"] == 2
    assert "Brother Rat" not in spans


def test_a_word_the_text_also_writes_small_is_no_name_at_a_start() -> None:
    text = "It is so. Names are matched by keys. The names meet. Oslo wrote to Bergen."
    found = names(text)
    assert "Names" not in found
    assert {"Oslo", "Bergen"} <= found


FIELDS = (
    "Summary: Quillet draws maps for people who walk a lot\n"
    "Classifier: Development Status :: 5 - Production/Stable and used\n"
    "Classifier: Operating System :: Something else that is Production/Stable\n"
    "Requires-Python: three and more, which every machine of today has anyway\n"
    "**Keywords:** maps, walking\n"
    "- Author: Ilse Brandvik, Hallowmere\n"
)


def test_field_words_are_no_names_and_part_the_lines() -> None:
    found = names(FIELDS)
    assert {"Ilse Brandvik", "Hallowmere", "Quillet", "Production/Stable"} <= found
    labels = {"Summary", "Classifier", "Requires-Python", "Keywords", "Author"}
    assert not found & labels
    assert not any(label in name for name in found for label in labels)


def test_a_field_word_is_not_what_a_text_is_about() -> None:
    assert about("Metadata-Version: two\nSummary: It draws.", "quillet") == {"quillet": 1.0}
    assert set(about("Summary: Ilse Brandvik is an engineer.\nVersion: two")) == {"Ilse Brandvik"}
    assert "Metadata-Version" in about("Metadata-Version: two and more of them.")  # a single line


def test_a_field_word_that_is_a_name_elsewhere_is_one_there() -> None:
    found = extract("Author: Bo Lund\n\nHe asked Author for help.")
    spans = next(entity.spans for entity in found.entities if entity.name == "Author")
    assert len(spans) == 1


def test_who_speaks_in_turn_is_named() -> None:
    talk = "Anna: I moved to Oslo\nlast year.\nBoris: Why?\nAnna: For work.\nBoris: I see.\n"
    assert {"Anna", "Boris", "Oslo"} <= names(talk)


def test_a_name_of_several_words_before_a_colon_stays() -> None:
    assert "Ilse Brandvik" in names("The people of the valley\n\n- Ilse Brandvik: an engineer\n")


def test_a_name_that_a_line_break_divides_is_written_on_one_line() -> None:
    text = "It was in the spring of that year that she first met Marie\nCurie in the old town."
    found = extract(text)
    assert [text[a:b] for e in found.entities if e.name == "Marie Curie" for a, b in e.spans] == [
        "Marie\nCurie"
    ]
    assert not any("\n" in entity.name for entity in found.entities)
    opening = "The Society of Friends of the Old Bridge at Upper\nSarn is small."
    assert not any("\n" in name for name in about(opening))
