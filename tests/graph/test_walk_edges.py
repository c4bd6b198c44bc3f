"""The edges of a walk: compiled loops and numpy find the same, in the same order."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from clew import kernels
from clew.graph.csr import Csr, build_csr
from clew.graph.walk_edges import CompiledEdges, PlainEdges, WalkColumns, prepare_edges
from clew.kernels import load_kernels

CHUNKS, FACTS, ENTITIES = 60, 200, 80


def random_csr(numbers: np.random.Generator, rows: int, columns: int, edges: int) -> Csr:
    source, target = numbers.integers(0, rows, edges), numbers.integers(0, columns, edges)
    return build_csr(rows, source, target, numbers.integers(0, 3, edges).astype(np.float32) / 2)


@pytest.fixture
def columns() -> WalkColumns:
    numbers = np.random.default_rng(3)
    chunk_fact, fact_entity, chunk_entity = (
        random_csr(numbers, *sizes)
        for sizes in ((CHUNKS, FACTS, 240), (FACTS, ENTITIES, 500), (CHUNKS, ENTITIES, 400))
    )
    links = {
        "chunk_fact": chunk_fact,
        "fact_chunk": chunk_fact.transpose(FACTS),
        "fact_entity": fact_entity,
        "entity_fact": fact_entity.transpose(ENTITIES),
        "chunk_entity": chunk_entity,
        "entity_chunk": chunk_entity.transpose(ENTITIES),
        "owners": random_csr(numbers, ENTITIES, CHUNKS, 90),
    }
    about = numbers.random(len(chunk_entity.columns)).astype(np.float32)
    namesake = np.minimum(np.arange(ENTITIES), numbers.integers(0, ENTITIES, ENTITIES))
    return WalkColumns(links, numbers.random(ENTITIES) < 0.2, namesake, about)


def compile_edges(folder: Path, columns: WalkColumns) -> CompiledEdges:
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("no C compiler")
    source = Path(kernels.__file__).with_suffix(".c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "lib.so", source], check=True)
    compiled = load_kernels(folder / "lib.so")
    assert compiled is not None
    return CompiledEdges(columns, compiled)


def test_compiled_and_plain_edges_are_the_same(tmp_path: Path, columns: WalkColumns) -> None:
    compiled, plain = compile_edges(tmp_path, columns), PlainEdges(columns)
    compiled.room = 2  # there is more than fits at first
    rows = np.array([3, 17, 3, 59])
    for known in (np.zeros(0, np.int64), np.unique(columns.namesake[::4])):
        for found, expected in (
            (compiled.find_mentions(rows, known, 0.45), plain.find_mentions(rows, known, 0.45)),
            (
                compiled.find_subjects(rows, known, 0.5, 6),
                plain.find_subjects(rows, known, 0.5, 6),
            ),
        ):
            assert len(expected[0])
            np.testing.assert_array_equal(np.stack(found), np.stack(expected))


def test_arrays_of_another_kind_are_read_by_numpy(columns: WalkColumns) -> None:
    other = WalkColumns(columns.links, columns.literal, columns.namesake[::-1], columns.about)
    assert isinstance(prepare_edges(other), PlainEdges)
