"""A graph file becomes what its statements would become in any other way; nothing half-done."""

import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import InputError
from clew.index.derive import derive_arrays
from clew.index.view import View
from clew.ingest.graphs import rows as lines
from clew.ingest.graphs.import_graph import GraphImport
from clew.store.memory import MemoryStore
from clew.store.protocol import Addition, Change, Counts, DeriveArrays, Store
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import MARIE, PIERRE, read_content
from clew.testing.fakes import HashEmbed

NAMES = st.sampled_from(
    ["Ada", "ada", "Marie", "Paris", "Radium", "Ünïcode", "שלום", "e\u0301", "a b", "日本"]
)
RELATIONS = st.sampled_from(["knows", "locatedIn", "born_in"])
ROWS = st.lists(st.tuples(NAMES, RELATIONS, NAMES), min_size=1, max_size=40)


def _tsv(path: Path, rows: list[tuple[str, ...]]) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


async def _imported(store: Store, path: Path, folder: Path) -> None:
    await GraphImport(store, folder / "import")(path)


def _opened(folder: Path) -> SqliteStore:
    return SqliteStore(folder, create=True, durable=False)


@settings(max_examples=settings.default.max_examples // 8, deadline=None)
@given(rows=ROWS, before=st.booleans())
async def test_the_bulk_write_leaves_what_the_ordinary_write_leaves(
    rows: list[tuple[str, str, str]], before: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = _tsv(folder / "graph.tsv", rows)
        streamed, ordinary, memory = _opened(folder / "a"), _opened(folder / "b"), MemoryStore()
        stores = (streamed, ordinary, memory)
        if before:
            for store in stores:
                await store.write(Change(add=[MARIE, PIERRE]), derive_arrays)
        await _imported(streamed, file, folder)
        await _imported(memory, file, folder)
        recording = RecordingStore()
        await _imported(recording, file, folder)
        await ordinary.write(Change(add=recording.parts), derive_arrays)
        held = await read_content(streamed)
        assert held == await read_content(ordinary) == await read_content(memory)
        assert await streamed.find_problems() == []
        # Life goes on as usual: an ordinary change on top of each gives the same again.
        change = Change(add=[MARIE, PIERRE], remove=["pierre.txt"] if before else [])
        for store in stores:
            await store.write(change, derive_arrays)
        assert (
            await read_content(streamed)
            == await read_content(ordinary)
            == await read_content(memory)
        )
        assert await streamed.find_problems() == []
        parts = [name for name in await streamed.sources() if name.startswith(file.as_posix())]
        for store in stores:
            bulk = () if store is streamed else None
            await store.write(Change(remove=parts, bulk=bulk), derive_arrays)
        assert (
            await read_content(streamed)
            == await read_content(ordinary)
            == await read_content(memory)
        )
        assert await streamed.find_problems() == []
        for store in (streamed, ordinary):
            await store.close()


class RecordingStore(MemoryStore):
    """A store that keeps the additions of an import as a list."""

    parts: list[Addition]

    async def write(self, change: Change, publish: DeriveArrays) -> Counts:
        self.parts = list(change.bulk or ())
        return await super().write(Change(add=self.parts), publish)


async def test_every_fact_cites_its_row_and_removing_the_file_removes_it_all(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    file = _tsv(tmp_path / "g.tsv", [("Ada", "knows", "Bob"), ("Bob", "born_in", "Paris")])
    done = await base.import_graph(file)
    assert (done.rows, done.counts.entities, done.counts.facts) == (2, 3, 2)
    assert done.embedded == ("relations", "entities", "chunks", "facts")
    async with base.store.snapshot() as now:
        view = View(now.arrays, {})
        ids = [source.document for source in (await base.store.sources()).values()]
        [document] = (await now.documents(ids)).values()
        for key, fact in (await now.facts(view.keys("fact").tolist())).items():
            [place] = (await now.supports("fact", [key]))[key]
            assert document.text[place.start : place.end] == fact.text
    assert await base.verify() == []
    found = await base.search("Where was Bob born?")
    assert "Paris" in found.evidence.chunks[0].text
    counts = await base.remove([file.as_posix()])
    assert (counts.documents, counts.entities, counts.facts) == (0, 0, 0)


async def test_unchanged_costs_nothing_and_changed_replaces(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    rows = [(f"Node {n}", "next_to", f"Node {n + 1}") for n in range(400)]
    file = _tsv(tmp_path / "g.tsv", rows)
    first = await base.import_graph(file)
    again = await base.import_graph(file)
    assert again.unchanged
    assert again.counts.generation == first.counts.generation
    async with base.store.snapshot() as now:
        before = set(View(now.arrays, {}).keys("chunk").tolist())
    file = _tsv(file, [*rows[:200], ("Node 200", "far_from", "Node 0"), *rows[200:-1]])
    changed = await base.import_graph(file)
    assert not changed.unchanged
    assert changed.counts.facts == 400
    async with base.store.snapshot() as now:
        after = set(View(now.arrays, {}).keys("chunk").tolist())
    assert len(after & before) > len(before) / 5  # most parts did not change and were kept
    fresh = _opened(tmp_path / "fresh")
    await _imported(fresh, file, tmp_path)
    assert await read_content(base.store) == await read_content(fresh)
    assert await base.verify() == []
    await fresh.close()
    # An update knows that this file is a graph, and of what format.
    assert (await base.add([file])).unchanged == 1
    added = await base.add([_tsv(file, rows[:3])])
    assert (added.updated, added.counts.facts) == (1, 3)


async def test_the_order_of_rows_does_not_show(tmp_path: Path) -> None:
    rows = [(f"H{n % 37}", "r", f"T{n}") for n in range(300)] * 2
    found = []
    for seed in (1, 2):
        random.Random(seed).shuffle(rows)
        store = MemoryStore()
        await _imported(store, _tsv(tmp_path / "g.tsv", rows), tmp_path)
        found.append(await read_content(store))
    assert found[0] == found[1]


async def test_duplicates_add_up_and_loops_and_parallel_relations_stay(tmp_path: Path) -> None:
    rows = [("A", "r", "B"), ("A", "r", "B"), ("A", "s", "B"), ("A", "r", "A"), ("B", "r", "A")]
    store = MemoryStore()
    await _imported(store, _tsv(tmp_path / "g.tsv", rows), tmp_path)
    facts = [fact for fact, _ in (await read_content(store))["facts"].values()]
    weights = {fact.text: (fact.weight, fact.support) for fact in facts}
    assert weights == {
        "A r B": (2.0, 1), "A s B": (1.0, 1), "A r A": (1.0, 1), "B r A": (1.0, 1)
    }  # fmt: skip


async def test_bad_rows_are_counted_and_the_first_five_told(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    file = tmp_path / "g.txt"
    good = "".join(f"n{n}|r|m{n}\n" for n in range(20))
    file.write_text(good + "one\n" + "a|b|c|d\n" * 3 + "||\n" + "a||c\n" + good, encoding="utf-8")
    done = await base.import_graph(file)
    assert (done.format, done.rows, done.bad) == ("pipe", 40, 6)
    assert [line for line, _ in done.bad_rows] == [21, 22, 23, 24, 25]
    with pytest.raises(InputError, match="line 21"):
        await base.import_graph(_tsv_copy(file, tmp_path / "h.txt"), strict=True)
    assert (await base.store.counts()).facts == 20


def _tsv_copy(file: Path, to: Path) -> Path:
    to.write_bytes(file.read_bytes())
    return to


@pytest.mark.parametrize("raw", [b"", b"\n\n", b"\x00\x01\x02" * 50, b"no graph at all\n" * 9])
async def test_what_is_no_graph_is_one_clear_error(
    base: KnowledgeBase, tmp_path: Path, raw: bytes
) -> None:
    file = tmp_path / "g.tsv"
    file.write_bytes(raw)
    with pytest.raises(InputError, match=r"g\.tsv"):
        await base.import_graph(file)
    assert (await base.store.counts()).generation == 0


async def test_a_large_graph_is_embedded_as_far_as_the_limit_goes(tmp_path: Path) -> None:
    file = _tsv(tmp_path / "g.tsv", [(f"H{n}", "r", f"T{n}") for n in range(50)])
    store = _opened(tmp_path / "kb")
    embed = HashEmbed()
    done = await GraphImport(store, tmp_path / "import", embed, max_embedded=120)(file)
    assert done.embedded == ("relations", "entities", "chunks")
    assert done.not_embedded == ("facts",)
    assert await store.find_problems() == []  # left out on purpose is no fault
    done = await GraphImport(store, tmp_path / "import", embed, max_embedded=10)(
        _tsv(tmp_path / "h.tsv", [(f"I{n}", "r", f"U{n}") for n in range(50)])
    )
    assert done.embedded == ("relations",)
    await store.close()


CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from clew.ingest.graphs import rows
from clew.ingest.graphs.import_graph import GraphImport
from clew.ingest.graphs.staging import GraphStage
from clew.store.sqlite.store import SqliteStore

rows.BATCH = 50
folder, file, stop = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
kept, calls = GraphStage.commit_rows, [0]

def keep(self, nodes, links, progress):
    kept(self, nodes, links, progress)
    calls[0] += 1
    if stop == "read" and calls[0] == 5:
        os.kill(os.getpid(), signal.SIGKILL)

GraphStage.commit_rows = keep
if stop == "write":
    from clew.ingest.graphs import import_graph
    def derive_arrays(tables):
        os.kill(os.getpid(), signal.SIGKILL)
    import_graph.derive_arrays = derive_arrays
asyncio.run(GraphImport(SqliteStore(folder, create=True), folder / "import")(file))
"""


def _child(kb: Path, file: Path, stop: str) -> int:
    words = [sys.executable, "-c", CHILD, str(kb), str(file), stop]
    return subprocess.run(words, check=False).returncode


@pytest.mark.parametrize("stop", [pytest.param("read", marks=pytest.mark.slow), "write"])
async def test_a_killed_import_goes_on_where_it_was(
    tmp_path: Path, stop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _tsv(tmp_path / "g.tsv", [(f"H{n % 90}", "r", f"T{n}") for n in range(1000)])
    kb = tmp_path / "kb"
    assert _child(kb, file, stop) == -signal.SIGKILL
    store = _opened(kb)
    assert (await store.counts()).facts == 0  # nothing half-done is seen
    began: list[int] = []
    original = lines.LineReader.__iter__

    def watched(self: lines.LineReader) -> object:
        began.append(self.start.line)
        return original(self)

    monkeypatch.setattr(lines.LineReader, "__iter__", watched)
    done = await GraphImport(store, kb / "import")(file)
    # The first look is for a header; reading goes on after five batches, or not at all.
    assert began[-1] == 250 if stop == "read" else not [line for line in began if line]
    assert done.rows == 1000
    fresh = _opened(tmp_path / "fresh")
    await _imported(fresh, file, tmp_path)
    assert await read_content(store) == await read_content(fresh)
    assert await store.find_problems() == []
    assert not list((kb / "import").iterdir())
    for one in (store, fresh):
        await one.close()


async def test_an_import_tells_how_far_its_write_is(tmp_path: Path) -> None:
    rows = [(f"Lake {n % 900}", "flows into", f"River {n % 700}") for n in range(2_000)]
    told: list[tuple[str, int, int]] = []
    base = KnowledgeBase(_opened(tmp_path / "kb"), Settings(kb=tmp_path / "kb"), HashEmbed())
    await base.import_graph(
        _tsv(tmp_path / "lakes.tsv", rows), progress=lambda *one: told.append(one)
    )
    await base.close()
    shares = [done for stage, done, total in told if stage == "write" and total == 100]
    assert shares == sorted(shares) and (shares[0], shares[-1]) == (0, 100)
    gaps = [after - before for before, after in zip(shares, shares[1:], strict=False)]
    assert max(gaps) <= 30  # staging, joining, merging, reading and deriving each tell theirs
    assert [one for one in told if one[0] == "collect"][-1][1] > 10
