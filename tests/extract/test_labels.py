"""Words before a colon at a line's start, and names that a line break divides."""

from test_offline import about, extract, names

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
