"""Recorded extractions: both layouts, broken rows, and where things end up."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import InputError
from clew.extract.openie import Recorded, RecordedDocument, Recording, load_recording
from clew.sync import wait
from clew.types import HEAD, TAIL, Chunk, Document, Extraction


def file_of(folder: Path, *rows: Any) -> Path:
    file = folder / "openie.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def doc(*texts: str, title: str = "", name: str = "7") -> tuple[Document, list[Chunk]]:
    chunks, at = [], 0
    for text in texts:
        chunks.append(Chunk(f"c{at}", "d", at, at + len(text), text, title))
        at += len(text)
    return Document("d", "".join(texts), title, (name,)), chunks


def extract(
    said: RecordedDocument, *texts: str, title: str = "", name: str = "7"
) -> Sequence[Extraction]:
    extractor = Recorded(Recording("f", "m", {"7": said}))
    return wait(extractor(*doc(*texts, title=title, name=name)))


def test_both_layouts(tmp_path: Path) -> None:
    file = file_of(
        tmp_path,
        {"id": 7, "entities": ["Ada", "Paris"], "triples": [["Ada", "born in", "Paris"]]},
        "",
        {
            "id": "x",
            "output": '{"entities": ["Бор"], "triples": [["Бор", "ест", "суп"], ["Бор", "e',
        },
    )
    found = load_recording(file)
    assert found.rows == {
        "7": RecordedDocument(("Ada", "Paris"), (("Ada", "born in", "Paris"),)),
        "x": RecordedDocument(("Бор",), (("Бор", "ест", "суп"),)),
    }
    assert found.bad == ()
    assert found.dropped == {"reply cut off": 1}


def test_a_looping_reply_says_each_thing_once(tmp_path: Path) -> None:
    loop = '{"entities": ["A", ' + '"A", ' * 50 + '"B"], "triples": [' + '["A", "is", "B"], ' * 99
    (said,) = load_recording(file_of(tmp_path, {"id": 1, "output": loop})).rows.values()
    assert said == RecordedDocument(("A", "B"), (("A", "is", "B"),))


def test_malformed_items_are_dropped_and_counted(tmp_path: Path) -> None:
    triples = [["a", "b"], ["a", "b", "c", "d"], ["a", 5, "c"], ["a", " ", "c"], "a b c", None]
    file = file_of(
        tmp_path,
        {"id": 1, "entities": ["Ada", 5, "", None, "Ada"], "triples": [*triples, ["a", "b", "c"]]},
    )
    found = load_recording(file)
    assert found.rows["1"] == RecordedDocument(("Ada",), (("a", "b", "c"),))
    assert found.dropped == {
        "entity that is no name": 3,
        "triple without exactly three parts": 4,
        "triple with a part that is no text": 1,
        "triple with an empty part": 1,
    }


BAD = [
    ("{not json", "is not JSON"),
    ("[1, 2]", "is not a JSON object"),
    ('{"entities": []}', "has no id"),
    ('{"id": null, "entities": []}', "has no id"),
    ('{"id": 1}', "has neither entities and triples nor an output"),
    ('{"id": 1, "entities": "Ada"}', "not a list"),
    ('{"id": 1, "output": "I am sorry."}', "has no usable reply"),
    ("[" * 100_000, "is not JSON"),
]


@pytest.mark.parametrize(("row", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, row: str, reason: str) -> None:
    file = file_of(tmp_path, {"id": 7, "entities": ["Ada"]}, row, {"id": 8, "entities": []})
    found = load_recording(file)
    assert set(found.rows) == {"7", "8"}
    assert [one.line for one in found.bad] == [2]
    assert reason in found.bad[0].reason
    with pytest.raises(InputError, match=rf"openie.jsonl line 2 .*{reason}"):
        load_recording(file, strict=True)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="check the path"):
        load_recording(tmp_path / "none.jsonl")


def test_other_bytes_change_the_stamp(tmp_path: Path) -> None:
    one = Recorded(load_recording(file_of(tmp_path, {"id": 1, "entities": ["Ada"]})))
    same = Recorded(load_recording(file_of(tmp_path, {"id": 1, "entities": ["Ada"]})))
    other = Recorded(load_recording(file_of(tmp_path, {"id": 1, "entities": ["Bob"]})))
    assert repr(one) == repr(same)
    assert repr(one) != repr(other)
    assert "Ada" not in repr(one)


def test_what_was_recorded_stands_where_it_is_said() -> None:
    said = RecordedDocument(("Ada", "London", "1815", "12 km"), (("Ada", "was_born_in", "London"),))
    text = "It rained. Ada was born in London in 1815."
    (found,) = extract(said, text)
    assert [(e.name, e.type) for e in found.entities] == [
        ("Ada", ""),
        ("London", ""),
        ("1815", "date"),
        ("12 km", "number"),
    ]
    (fact,) = found.facts
    assert fact.text == "Ada was born in London"
    assert fact.members == (("Ada", HEAD), ("London", TAIL))
    assert text[slice(*fact.span)] == "Ada was born in London in 1815."


def test_the_title_is_what_the_document_is_about() -> None:
    (found,) = extract(RecordedDocument(("ada (poet)",)), "She wrote.", title="Ada (poet)")
    assert {e.name: e.about for e in found.entities} == {"ada (poet)": 1.0, "Ada": 0.95}


def test_each_thing_goes_into_the_chunk_that_says_it() -> None:
    said = RecordedDocument(
        ("Ada", "Bob", "Nobody"),
        (("Ada", "met", "Bob"), ("Bob", "slept in", "Bath"), ("Nobody", "saw", "Nothing")),
    )
    first, second = extract(said, "Ada wrote. ", "Ada met Bob. Bob slept in Bath.")
    assert [e.name for e in first.entities] == ["Ada", "Nobody", "Nothing"]
    assert [e.name for e in second.entities] == ["Ada", "Bob", "Bath"]
    assert [fact.text for fact in first.facts] == ["Nobody saw Nothing"]
    assert [fact.span for fact in second.facts] == [(11, 23), (24, 42)]


def test_a_document_is_known_by_its_id_or_its_row() -> None:
    for name in ("7", "corpus.jsonl#7"):
        (found,) = extract(RecordedDocument(("Ada",)), "Ada.", name=name)
        assert [e.name for e in found.entities] == ["Ada"]
    extractor = Recorded(Recording("f", "m", {}))
    assert wait(extractor(*doc("Ada.", title="Ada")))[0].entities[0].name == "Ada"
    assert extractor.dropped == {"document without a record": 1}


NAMES = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


@given(st.lists(NAMES), st.lists(st.tuples(NAMES, NAMES, NAMES)), st.lists(NAMES, max_size=3))
def test_spans_lie_in_their_chunks(
    names: list[str], triples: list[tuple[str, str, str]], texts: list[str]
) -> None:
    document, chunks = doc(*texts)
    extractor = Recorded(Recording("f", "m", {"7": RecordedDocument(tuple(names), tuple(triples))}))
    found = wait(extractor(document, chunks))
    assert len(found) == len(chunks)
    for chunk, one in zip(chunks, found, strict=True):
        spans = [span for e in one.entities for span in e.spans] + [f.span for f in one.facts]
        assert all(chunk.start <= start <= end <= chunk.end for start, end in spans)
        known = {e.name for e in one.entities}
        assert all(name in known for fact in one.facts for name, _ in fact.members)
