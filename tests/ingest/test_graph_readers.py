"""Each format of graph files, its quirks, and what is wrong in it."""

from pathlib import Path
from textwrap import dedent

import pytest

from clew.errors import InputError
from clew.ingest.graphs.formats import detect_format
from clew.ingest.graphs.import_graph import GraphImport
from clew.ingest.graphs.rdf import blank_node_prefix
from clew.ingest.graphs.rows import Link, Node, Row, StartPosition, UnreadableRow
from clew.store.memory import MemoryStore
from clew.store.protocol import Addition, Change, Counts, DeriveArrays
from clew.testing.contracts import read_content
from clew.text.names import local_name, relation_to_words


def _written(path: Path, text: str) -> Path:
    path.write_text(dedent(text).lstrip("\n"), encoding="utf-8", newline="")
    return path


def _rows(path: Path, wanted: str | None = None) -> list[Row]:
    return [
        row
        for batch in detect_format(path, wanted).read(path, StartPosition())
        for row in batch.rows
    ]


def _links(rows: list[Row]) -> list[tuple[str, str, str]]:
    return [(row.head, row.relation, row.tail) for row in rows if isinstance(row, Link)]


async def _graph(path: Path, tmp_path: Path) -> tuple[dict[str, object], set[str]]:
    """Entities by name and facts as texts, as they are after an import."""
    store = MemoryStore()
    await GraphImport(store, tmp_path / "import")(path)
    held = await read_content(store)
    entities = {entity.name: entity for entity, _ in held["entities"].values()}
    return entities, {fact.text for fact, _ in held["facts"].values()}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("g.tsv", "a\tr\tb\r\n\r\nb\tr\tc", [("a", "r", "b"), ("b", "r", "c")]),
        ("g.tsv", "a\\tb\tr\tC:\\\\new\\n\n", [("a\tb", "r", "C:\\new")]),
        ("g.csv", 'a,r,"b, the ""second"""\n"two\nlines",r,c\n', None),
        ("g.txt", "\ufeffa|r|b\n", [("a", "r", "b")]),
        ("g.csv", "Subject,Predicate,Object\na,r,b\n", [("a", "r", "b")]),
        ("g.csv", "target,label,source,weight\nb,r,a,2.5\n", [("a", "r", "b")]),
        ("g.txt", "שלום|נמצא ב|ירושלים\n", [("שלום", "נמצא ב", "ירושלים")]),
        ("g.txt", "e\u0301|r|o\u0308\n", [("é", "r", "ö")]),
    ],
)
def test_columns(
    tmp_path: Path, name: str, text: str, expected: list[tuple[str, str, str]] | None
) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8", newline="")
    expected = expected or [("a", "r", 'b, the "second"'), ("two\nlines", "r", "c")]
    assert _links(_rows(file)) == expected


def test_columns_beside_the_triple(tmp_path: Path) -> None:
    file = _written(
        tmp_path / "g.tsv",
        "head\trelation\ttail\tweight\thead_type\ttail_type\tdescription\n"
        "Ada\tknows\tBob\t0.5\tperson\tperson\tsince school\n"
        "Ada\tknows\tCy\tmuch\t\t\t\n",
    )
    assert _rows(file) == [
        Node("Ada", type="person"),
        Node("Bob", type="person"),
        Link("Ada", "knows", "Bob", 0.5, "since school"),
        UnreadableRow(3, "has the weight 'much', which is no number"),
    ]


def test_a_name_with_the_separator_makes_a_bad_row_of_a_pipe_file(tmp_path: Path) -> None:
    file = _written(tmp_path / "g.txt", "a|r|b\nx|y|r|b\na|r|b\n")
    assert _rows(file)[1] == UnreadableRow(2, "has 4 fields, not head, relation and tail")


def test_a_quote_that_never_ends_costs_a_row_not_the_file(tmp_path: Path) -> None:
    rest = "".join(f"a{n},r,b{n}\n" for n in range(20_000))
    file = _written(tmp_path / "g.csv", f'a,r,b\n"never,r,b\n{rest}')
    rows = _rows(file)
    assert rows[1] == UnreadableRow(2, "has a quote that is not closed")
    assert len(_links(rows)) == 20_001


def test_bytes_that_are_no_text_cost_a_row(tmp_path: Path) -> None:
    file = tmp_path / "g.txt"
    file.write_bytes(b"a|r|b\n" * 50 + b"\xff\xfe|r|b\n" + b"c|r|d\n")
    rows = _rows(file)
    assert rows[50] == UnreadableRow(51, "is not UTF-8 text")
    assert len(_links(rows)) == 51


XSD, RDF = "http://www.w3.org/2001/XMLSchema#", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
NTRIPLES = r"""
# a comment
<http://x.org/Ada_Lovelace> <http://www.w3.org/2000/01/rdf-schema#label> "Ada Lovelace"@en .
<http://x.org/Ada_Lovelace> <http://www.w3.org/2000/01/rdf-schema#label> "Ада"@ru .
<http://x.org/Ada_Lovelace> <{RDF}type> <http://x.org/Person> .
<http://x.org/Ada_Lovelace> <http://x.org/birthPlace> <http://x.org/London> .
<http://x.org/Ada_Lovelace> <http://x.org/birthDate> "1815-12-10"^^<{XSD}date> .
<http://x.org/Ada_Lovelace> <http://x.org/motto> "a \"quoted\" \u00e9\n" .
<http://x.org/London> <http://x.org/near> _:b1 <http://x.org/graph> .
<http://x.org/London> <http://x.org/near> nothing .
<http://x.org/London> <http://x.org/near> "\UFFFFFFFF" .
""".replace("{RDF}", RDF).replace("{XSD}", XSD)


async def test_ntriples(tmp_path: Path) -> None:
    file = _written(tmp_path / "g.nt", NTRIPLES)
    assert [row.line for row in _rows(file) if isinstance(row, UnreadableRow)] == [9, 10]
    entities, facts = await _graph(file, tmp_path)
    ada = entities["Ada Lovelace"]
    assert ada.type == "Person"
    assert ada.aliases == ("http://x.org/Ada_Lovelace", "Ада")
    assert ada.attributes == {"id": "http://x.org/Ada_Lovelace"}
    assert entities["1815-12-10"].type == "date"
    assert facts == {
        "Ada Lovelace birth place London",
        "Ada Lovelace birth date 1815-12-10",
        'Ada Lovelace motto a "quoted" é',
        f"London near {blank_node_prefix(file)}b1",
    }


async def test_turtle(tmp_path: Path) -> None:
    pytest.importorskip("rdflib")
    file = _written(
        tmp_path / "g.ttl",
        """
        @prefix x: <http://x.org/> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        x:Ada rdfs:label "Ada" ; a x:Person ; x:knows x:Bob, x:Cy ; x:age 36 .
        """,
    )
    entities, facts = await _graph(file, tmp_path)
    assert facts == {"Ada knows Bob", "Ada knows Cy", "Ada age 36"}
    assert (entities["Ada"].type, entities["36"].type) == ("Person", "number")
    broken = _written(tmp_path / "b.ttl", "@prefix x: <http://x.org/> .\nx:Ada x:knows .\n")
    with pytest.raises(InputError, match="not Turtle"):
        _rows(broken)


async def test_nodes_of_the_same_name_stay_apart(tmp_path: Path) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    file = _written(
        tmp_path / "g.nt",
        f"""
        <http://w/Q90> {label} "Paris" .
        <http://w/Q167646> {label} "Paris" .
        <http://w/Q90> <http://w/in> <http://w/France> .
        <http://w/Q167646> <http://w/abducts> <http://w/Helen> .
        """,
    )
    store = MemoryStore()
    done = await GraphImport(store, tmp_path / "import")(file)
    assert done.shared_names == 1
    entities, facts = await _graph(file, tmp_path)
    assert facts == {"Paris (Q90) in France", "Paris (Q167646) abducts Helen"}
    assert "Paris" in entities["Paris (Q90)"].aliases


GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="label" attr.type="string"/>
  <key id="d1" for="node" attr.name="kind" attr.type="string"><default>thing</default></key>
  <key id="d2" for="node" attr.name="born" attr.type="int"/>
  <key id="d3" for="edge" attr.name="relation" attr.type="string"/>
  <key id="d4" for="edge" attr.name="weight" attr.type="double"/>
  <key id="d5" for="edge" attr.name="since" attr.type="int"/>
  <graph edgedefault="directed">
    <node id="n0"><data key="d0">Ada &amp; co</data>
      <data key="d1">person</data><data key="d2">1815</data></node>
    <node id="n1"><data key="d0">Bob</data></node>
    <node><data key="d0">nobody</data></node>
    <edge source="n0" target="n1"><data key="d3">knows</data>
      <data key="d4">2.5</data><data key="d5">1830</data></edge>
    <edge source="n1" target="n0"/>
  </graph>
</graphml>
"""


async def test_graphml(tmp_path: Path) -> None:
    file = _written(tmp_path / "g.graphml", GRAPHML)
    rows = _rows(file)
    assert [row.line for row in rows if isinstance(row, UnreadableRow)] == [13]
    link = next(row for row in rows if isinstance(row, Link))
    assert (link.weight, link.description) == (2.5, "since: 1830")
    entities, facts = await _graph(file, tmp_path)
    assert facts == {"Ada & co knows Bob", "Bob related to Ada & co"}
    assert entities["Ada & co"].attributes == {"born": "1815", "id": "n0"}
    assert (entities["Ada & co"].type, entities["Bob"].type) == ("person", "thing")


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE g [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><graphml>&b;</graphml>',
        '<!DOCTYPE g SYSTEM "file:///etc/passwd"><graphml/>',
        "<graphml><graph><node id='a'>",
    ],
)
def test_hostile_xml_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        _rows(_written(tmp_path / "g.graphml", text))


async def test_neo4j_admin_folder(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    _written(
        folder / "movies.csv",
        """
        movieId:ID(Movie),title,year:int,:LABEL
        1,"Salt, the film",2010,Movie;Film
        2,Sugar,,Movie
        """,
    )
    _written(folder / "people.csv", "personId:ID(Person),name,:LABEL\n1,Ada,Person\n")
    _written(
        folder / "roles.csv",
        ":START_ID(Person),role,:END_ID(Movie),:TYPE\n1,lead,1,ACTED_IN\n1,,2,DIRECTED\n,,2,X\n",
    )
    rows = _rows(folder)
    assert [row.line for row in rows if isinstance(row, UnreadableRow)] == [4]
    entities, facts = await _graph(folder, tmp_path)
    assert facts == {"Ada ACTED IN Salt, the film", "Ada DIRECTED Sugar"}
    salt = entities["Salt, the film"]
    assert (salt.type, salt.attributes["year"]) == ("Movie", "2010")


async def test_neo4j_apoc_csv(tmp_path: Path) -> None:
    file = _written(
        tmp_path / "all.csv",
        """
        "_id","_labels","name","age","_start","_end","_type","since"
        "0",":Person","Ada","36",,,,
        "1",":Person","Bob","",,,,
        ,,,,"0","1","KNOWS","1830"
        """,
    )
    assert detect_format(file).name == "neo4j"
    entities, facts = await _graph(file, tmp_path)
    assert facts == {"Ada KNOWS Bob"}
    assert entities["Ada"].type == "Person"


def test_json_lines(tmp_path: Path) -> None:
    file = _written(
        tmp_path / "g.jsonl",
        """
        ["a", "r", "b"]
        {"subject": "a", "predicate": "r", "object": "c", "weight": 2, "since": 1830}
        {"id": "a", "name": "Ada", "type": "person", "born": 1815}
        {"type": "node", "id": "7", "labels": ["City"], "properties": {"name": "Paris"}}
        {"type": "relationship", "label": "IN", "start": {"id": "a"}, "end": {"id": "7"}}
        {"head": "a", "tail": "b"}
        {broken
        42
        """,
    )
    assert _rows(file) == [
        Link("a", "r", "b"),
        Link("a", "r", "c", 2.0, "since: 1830"),
        Node("a", "Ada", "person", attributes={"born": "1815"}),
        Node("7", "Paris", "City"),
        Link("a", "IN", "7"),
        UnreadableRow(6, "has no relation"),
        UnreadableRow(7, "is not JSON"),
        UnreadableRow(8, "is neither an object nor an array of three"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|r|b\nc|r|d\n", "pipe"),
        ("a\tr\tb\n", "tsv"),
        ("a,r,b\n", "csv"),
        ("<http://a> <http://r> <http://b> .\n", "ntriples"),
        ("@prefix x: <http://x.org/> .\n", "turtle"),
        ('<?xml version="1.0"?>\n<graphml/>', "graphml"),
        ('{"head": "a"}\n', "jsonl"),
    ],
)
def test_formats_are_known_by_their_looks(tmp_path: Path, text: str, expected: str) -> None:
    assert detect_format(_written(tmp_path / "graph.dat", text)).name == expected


def test_what_cannot_be_told_is_asked_for(tmp_path: Path) -> None:
    file = _written(tmp_path / "graph.dat", "just some words\n")
    with pytest.raises(InputError, match="--format"):
        detect_format(file)
    with pytest.raises(InputError, match="unknown graph format"):
        detect_format(file, "gexf")


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        ("starred_actors", "starred actors"),
        ("birthPlace", "birth place"),
        ("hasURL", "has URL"),
        ("KNOWS", "KNOWS"),
        ("http://x.org/ns#hasPart", "has part"),
        ("married to", "married to"),
        ("well-known for", "well-known for"),
        ("release-year", "release year"),
        ("/film/film/directed_by", "film film directed by"),
        ("___", "___"),
        ("誕生日", "誕生日"),
    ],
)
def test_relations_in_words(relation: str, expected: str) -> None:
    assert relation_to_words(relation) == expected


@pytest.mark.parametrize(
    ("iri", "expected"),
    [
        ("http://dbpedia.org/resource/Paris_%28film%29", "Paris (film)"),
        ("urn:isbn:123", "123"),
        ("plain text: no iri", "plain text: no iri"),
    ],
)
def test_names_of_bare_iris(iri: str, expected: str) -> None:
    assert local_name(iri) == expected


def test_reading_can_begin_anywhere_a_batch_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clew.ingest.graphs import graphml
    from clew.ingest.graphs import rows as lines

    monkeypatch.setattr(lines, "BATCH", 3)
    monkeypatch.setattr(graphml, "BATCH", 3)
    text = "".join(f'"a\n{n}",r,b{n}\n' for n in range(10))
    nodes = "".join(f'<node id="n{n}"/>' for n in range(10))
    files = [
        _written(tmp_path / "g.csv", text),
        _written(tmp_path / "g.graphml", f"<graphml><graph>{nodes}</graph></graphml>"),
    ]
    for file in files:
        read = detect_format(file).read
        batches = list(read(file, StartPosition()))
        for at, batch in enumerate(batches):
            rest = [
                row for b in read(file, StartPosition(batch.position, batch.line)) for row in b.rows
            ]
            assert rest == [row for b in batches[at + 1 :] for row in b.rows]


async def test_parts_and_chunks_are_bounded(tmp_path: Path) -> None:
    class RecordingStore(MemoryStore):
        async def write(self, change: Change, publish: DeriveArrays) -> Counts:
            parts.extend(change.bulk or ())
            return await super().write(Change(), publish)

    parts: list[Addition] = []
    file = tmp_path / "g.tsv"
    file.write_text("".join(f"hub\tr\ttail {n}\n" for n in range(5_000)), encoding="utf-8")
    await GraphImport(RecordingStore(), tmp_path)(file)
    named = [part.document.names for part in parts]
    assert named == [(f"{file.as_posix()}#{n}",) for n in (1, 2, 3)]
    for part in parts:
        for chunk in part.chunks:
            assert chunk.text == part.document.text[chunk.start : chunk.end]
            assert chunk.text.count("\n") < 16
