"""Rows of tables are embedded by their tokens, each run once; everything else is run whole."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import clew
from clew.llm.embed_local import LocalEmbedder
from clew.llm.embed_rows import find_columns

ROW = "Garden hose\nproduct: Garden hose; trade: gardening; price_eur: 22.0; depot: Ghent."
TURNED = "Garden hose\ndepot: Ghent; price_eur: 22.0; trade: gardening; product: Garden hose."
TABLE = """product,trade,material,price_eur
Hand saw,carpentry,steel,24.5
Pipe wrench,plumbing,iron,18.0
Garden hose,gardening,rubber,22.0
Paint roller,decorating,wool,7.5
Stethoscope,medicine,steel,85.0
Climbing rope,mountaineering,nylon,120.0
Sewing machine,tailoring,steel,199.0
Life jacket,sailing,foam,58.0
"""


async def test_a_row_is_the_mean_of_its_tokens_in_any_order(local_embedder: LocalEmbedder) -> None:
    one, turned, alone = await local_embedder([ROW, TURNED, ROW])
    np.testing.assert_allclose(one, turned, atol=1e-6)
    np.testing.assert_array_equal(one, alone)
    np.testing.assert_allclose(np.linalg.norm(one), 1, rtol=1e-5)
    quoted = await local_embedder.embed_quotes([(ROW, [(0, len(ROW))])])
    np.testing.assert_array_equal(quoted, [one, one])
    asked = await local_embedder([ROW, TURNED], role="query")
    assert asked[0] @ asked[1] < 0.999  # a question is run whole, whatever it looks like


@pytest.mark.parametrize(
    "text",
    [
        "The mill stood here: by the river; it burnt down.",
        "Note\nUse it: never twice",
        "Review\nbook: Salt; said: " + "a long sentence about what happens in it, " * 3 + ".",
        "Head\nof a\nline\na: b; c: d.",
    ],
)
def test_a_text_that_is_no_row_of_short_cells_names_no_columns(text: str) -> None:
    assert find_columns(text) == []


def test_the_columns_of_a_row_are_found_in_its_text() -> None:
    assert [ROW[start:end] for start, end in find_columns(ROW)] == [
        "product",
        "trade",
        "price_eur",
        "depot",
    ]


@pytest.mark.parametrize(
    ("wanted", "row"),
    [
        ("something to cut wood", "Hand saw"),
        ("watering the flower bed", "Garden hose"),
        ("listening to a patient's heart", "Stethoscope"),
        ("staying afloat in the water", "Life jacket"),
    ],
)
def test_rows_are_found_by_meaning(tools: clew.Kb, wanted: str, row: str) -> None:
    assert (
        tools.search(wanted, recipe="naive").evidence.chunks[0].text.startswith(f"product: {row};")
    )


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    folder: Path = tmp_path_factory.mktemp("tools")
    (folder / "tools.csv").write_text(TABLE, encoding="utf-8")
    with clew.open(folder / "kb") as base:
        base.add([folder / "tools.csv"])
        yield base
