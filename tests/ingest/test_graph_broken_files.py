"""What is broken or odd in a graph file costs itself, not what stands around it."""

import json
import logging
from pathlib import Path

import pytest

from clew.errors import InputError
from clew.ingest.graphs import delimited as quoted
from clew.ingest.graphs import jsonl
from clew.ingest.graphs import jsonl as array
from clew.ingest.graphs import rdf as turtle
from clew.ingest.graphs import rows as lines
from clew.ingest.graphs.formats import detect_format
from clew.ingest.graphs.import_graph import GraphImport
from clew.ingest.graphs.rows import Link, Node, Row, RowBatch, StartPosition, UnreadableRow
from clew.store.memory import MemoryStore
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import read_content


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def _batches(path: Path) -> list[RowBatch]:
    return list(detect_format(path).read(path, StartPosition()))


def _rows(path: Path) -> list[Row]:
    return [row for batch in _batches(path) for row in batch.rows]


def _bad(rows: list[Row]) -> list[UnreadableRow]:
    return [row for row in rows if isinstance(row, UnreadableRow)]


def _triples(rows: list[Row]) -> list[tuple[str, str, str]]:
    return [(row.head, row.relation, row.tail) for row in rows if isinstance(row, Link)]


def _goes_on_anywhere(path: Path) -> None:
    """Reading again from where any batch ended gives the rest."""
    batches = _batches(path)
    assert len(batches) > 2
    for at, batch in enumerate(batches):
        again = detect_format(path).read(path, StartPosition(batch.position, batch.line))
        rest = [row for one in again for row in one.rows]
        assert rest == [row for one in batches[at + 1 :] for row in one.rows]


# -- N-Triples


@pytest.mark.parametrize(
    "line",
    [
        "<http://x/" + r"\u0410" * 400 + "> <http://p> broken .",
        "<http://x/a> <http://p> " + "_:" * 200_000 + " broken .",
        '<http://x/a> <http://p> "' + r"\n" * 200_000 + '" broken .',
    ],
    ids=["escapes", "blanks", "literal"],
)
def test_a_broken_triple_is_known_at_once(tmp_path: Path, line: str) -> None:
    file = _written(tmp_path / "g.nt", f"{line}\n<http://a> <http://p> <http://b> .\n")
    assert _rows(file) == [
        UnreadableRow(1, "is not a triple"),
        Link("<http://a>", "<http://p>", "<http://b>"),
    ]


def test_escapes_stand_for_characters(tmp_path: Path) -> None:
    file = _written(
        tmp_path / "g.nt",
        r"""<http://x/\u0410b> <http://p> "\uD83D\uDE00 \uD83D \U0001F600 \"x\\" ."""
        "\n_:a.b <http://p> _:c.\n",
    )
    first, second = _triples(_rows(file))
    assert first == ("<http://x/Аb>", "<http://p>", '😀 \ufffd 😀 "x\\')
    assert (second[0][-4:], second[2][-2:]) == (".a.b", ".c")


# -- blank nodes


async def test_blank_nodes_are_those_of_their_file(tmp_path: Path) -> None:
    store = MemoryStore()
    for name in ("a", "b"):
        file = _written(tmp_path / f"{name}.nt", f'_:b0 <http://p> "{name}" .\n')
        await GraphImport(store, tmp_path / "import")(file)
    names = [entity.name for entity, _ in (await read_content(store))["entities"].values()]
    assert len([name for name in names if name.startswith("_:")]) == 2


TURTLE = "@prefix x: <http://x/> .\n" + "".join(
    f'x:P{n} x:address [ x:city "C{n}" ; x:street "S{n}" ] .\n' for n in range(9)
)


def test_blank_nodes_of_turtle_are_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rdflib")
    monkeypatch.setattr(turtle, "BATCH", 4)  # nodes reach from one batch into the next
    file = _written(tmp_path / "g.ttl", TURTLE)
    assert len({head for head, _, _ in _triples(_rows(file))}) == 18
    _goes_on_anywhere(file)


def test_turtle_says_what_ntriples_say(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rdflib = pytest.importorskip("rdflib")
    xsd = "http://www.w3.org/2001/XMLSchema#"
    values = [("1.9e6", "double"), ("007", "integer"), ("-0050-01-01", "date"), ("", "string")]
    text = "".join(f'<http://a> <http://p> "{v}"^^<{xsd}{kind}> .\n' for v, kind in values)
    with caplog.at_level(logging.WARNING):
        one, other = (_batches(_written(tmp_path / f"g.{end}", text)) for end in ("nt", "ttl"))
    assert not caplog.records
    assert _triples(one[0].rows) == _triples(other[0].rows)
    assert [tail for _, _, tail in _triples(other[0].rows)] == ["1.9e6", "007", "-0050-01-01"]
    assert one[0].count_good() == other[0].count_good() == 3
    assert len(_bad(one[0].rows)) == len(_bad(other[0].rows)) == 1
    assert rdflib.NORMALIZE_LITERALS  # a setting of the whole process, put back


# -- CSV


@pytest.mark.parametrize("stray", ['x,r,"zed', '"x,r,zed', '"x,r,zed"', 'x","y', '"'])
def test_a_stray_quote_costs_its_line(tmp_path: Path, stray: str) -> None:
    good = [(f"a{n}", "r", f"b{n}") for n in range(50)]
    told = [",".join(row) for row in good]
    told[30] = 'a30,r,"b30"'  # closes what was open, were it not for what stands before it
    for header, first in (("", 6), ("head,relation,tail\n", 7)):
        text = "\n".join([*told[:5], stray, *told[5:]])
        rows = _rows(_written(tmp_path / "g.csv", f"{header}{text}\n"))
        assert _triples(rows) == good
        assert [bad.line for bad in _bad(rows)] == [first]


def test_fields_over_several_lines_stay(tmp_path: Path) -> None:
    text = 'head,relation,tail,text\na,r,b,"one\ntwo ""x""\n\nfour"\n"c\nd",r,e,\n"f"g,r,h,\n'
    rows = _rows(_written(tmp_path / "g.csv", text))
    assert _triples(rows) == [("a", "r", "b"), ("c\nd", "r", "e"), ("fg", "r", "h")]
    assert not _bad(rows)


def test_a_record_without_end_is_given_up_after_some_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quoted, "MAX_RECORD_LINES", 10)
    text = 'x","y\n' * 30 + "a,r,b\n"  # each line closes one quote and opens another
    rows = _rows(_written(tmp_path / "g.csv", text))
    assert [bad.line for bad in _bad(rows)] == list(range(1, 31))
    assert _triples(rows) == [("a", "r", "b")]


def test_reading_goes_on_after_a_stray_quote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "BATCH", 3)
    told = "".join(f'"a{n}\nb",r,c\n' for n in range(6))
    file = tmp_path / "g.csv"
    file.write_bytes(f'{told}x,r,"y\n{told}'.encode() + b"\xff,r,b\nd,r,e\n")
    assert [bad.line for bad in _bad(_rows(file))] == [13, 26]
    _goes_on_anywhere(file)


# -- JSON arrays

ROWS = [
    {"head": "a", "relation": "r", "tail": "b"},
    ["c", "r", 7],
    {"id": "a", "name": "Ada"},
    {"head": "e, ]}", "relation": "x\u2028y", "tail": 'f"\n'},
]
READ = [Link("a", "r", "b"), Link("c", "r", "7"), Node("a", "Ada"), Link("e, ]}", "x\ny", 'f"')]


@pytest.mark.parametrize("indent", [None, 1], ids=["one line", "many lines"])
@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
def test_an_array_is_read_item_by_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indent: int | None, piece: int
) -> None:
    text = json.dumps(ROWS, indent=indent, ensure_ascii=False)
    file = _written(tmp_path / "g.json", f"\ufeff {text}\n")
    assert _rows(file) == READ
    monkeypatch.setattr(jsonl, "is_array", lambda _: True)  # which a short look does not tell
    monkeypatch.setattr(array, "PIECE", piece)
    monkeypatch.setattr(jsonl, "BATCH", 1)
    assert _rows(file) == READ
    _goes_on_anywhere(file)


def test_an_array_counts_its_items_and_tells_their_lines(tmp_path: Path) -> None:
    text = '[\n["a", "r", "b"],\n{"head": "c"},\n\n{"head": "d", "relation": "r", "tail": "e"}]'
    [batch] = _batches(_written(tmp_path / "g.json", text))
    assert batch.count_good() == 2
    assert _bad(batch.rows) == [UnreadableRow(3, "has no relation")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[\n["a", "r", "b"],\n{"head": }]', "contains invalid JSON in line 3"),
        ('[\n["a", "r", "b"]\n["a", "r", "b"]]', "has no ',' in line 3"),
        ('[["a", "r", "b"]', "has no ',' in line 1"),
        ('[\n["a", "r", "b"]\n] x', "goes on after its end in line 3"),
    ],
)
def test_a_broken_array_is_refused_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError, match=f"{told}; correct it, or write one object per line"):
        _rows(_written(tmp_path / "g.json", text))


def test_arrays_a_line_are_lines(tmp_path: Path) -> None:
    text = '["a", "r", "b"]\n[["c", "r", "d"], {"id": "x"}, [[["y"]]]]\n[{"a": 1}, "r", "b"]\n[]\n'
    assert _rows(_written(tmp_path / "g.jsonl", text)) == [
        Link("a", "r", "b"),
        Link("c", "r", "d"),
        Node("x"),
        UnreadableRow(2, "is neither an object nor an array of three"),
        UnreadableRow(3, "has neither ends nor an id"),
        *[UnreadableRow(3, "is neither an object nor an array of three")] * 2,
        UnreadableRow(4, "is neither an object nor an array of three"),
    ]
    many = '[["a", "r", "b"]]\n[["c", "r", "d"], ["e", "r", "f"]]\n'
    assert len(_triples(_rows(_written(tmp_path / "h.jsonl", many)))) == 3


# -- GraphML, Neo4j


def test_a_node_that_holds_a_graph_is_a_node(tmp_path: Path) -> None:
    text = """<graphml><key id="n" for="node" attr.name="name"/><graph><data key="n">all</data>
      <node id="g"><data key="n">Group</data>
        <graph><data key="n">inner</data><node id="a"><data key="n">Ada</data></node>
          <edge source="a" target="g" label="in"/></graph>
        <data key="size">1</data></node>
      <node id="b"/></graph></graphml>"""
    assert _rows(_written(tmp_path / "g.graphml", text)) == [
        Node("a", "Ada"),
        Link("a", "in", "g"),
        Node("g", "Group", attributes={"size": "1"}),
        Node("b"),
    ]


def test_neo4j_arrays_labels_and_empty_files(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    _written(folder / "a_empty.csv", "")
    _written(
        folder / "people.csv",
        ":ID,name,aliases:string[],scores:int[],note,:LABEL\n"
        '1,Bob,Robert;Bobby,1;2,"a;b",Person;Author;Editor\n2,Ann,,3,,Person\n',
    )
    assert _rows(folder) == [
        Node("1", "Bob", "Person", "", ("Robert", "Bobby"),
             {"scores": '["1", "2"]', "note": "a;b", "labels": "Author, Editor"}),
        Node("2", "Ann", "Person", attributes={"scores": "3"}),
    ]  # fmt: skip
    (folder / "people.csv").unlink()
    with pytest.raises(InputError, match="no CSV file"):
        detect_format(folder)
        _rows(folder)


def test_further_labels_of_other_exports_are_kept(tmp_path: Path) -> None:
    said = {"type": "node", "id": "7", "labels": ["City", "Port"], "properties": {"name": "Rome"}}
    expected = [Node("7", "Rome", "City", attributes={"labels": "Port"})]
    assert _rows(_written(tmp_path / "g.jsonl", json.dumps(said))) == expected
    text = '<graphml><graph><node id="7" labels=":City:Port"><data key="name">Rome</data></node>'
    assert _rows(_written(tmp_path / "g.graphml", f"{text}</graph></graphml>")) == expected


# -- weights


async def test_weights_never_add_up_to_infinity(tmp_path: Path) -> None:
    stores = MemoryStore(), SqliteStore(tmp_path / "kb", create=True, durable=False)
    for store in stores:
        for name, weight in (("g", "1e308"), ("h", "1e308"), ("i", "-1e308")):
            row = f"a{name == 'i'}\tr\tb\t{weight}\n"
            file = _written(tmp_path / f"{name}.tsv", row * 2)
            await GraphImport(store, tmp_path / "import")(file)
        facts = [fact for fact, _ in (await read_content(store))["facts"].values()]
        assert {fact.text: fact.weight for fact in facts} == {
            "aFalse r b": 1e308, "aTrue r b": -1e308
        }  # fmt: skip
    await stores[1].close()


def test_a_line_of_brackets_costs_one_line(tmp_path: Path) -> None:
    path = _written(tmp_path / "g.jsonl", "[" * 100_000 + '\n["A", "r", "B"]\n')
    rows = _rows(path)
    assert len(_bad(rows)) == 1
    assert _triples(rows) == [("A", "r", "B")]
