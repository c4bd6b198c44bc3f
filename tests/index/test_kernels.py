"""The compiled kernels give what numpy gives, and without them everything still works."""

import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import clew
from clew import kernels
from clew.config import Settings
from clew.doctor import run_checks
from clew.graph.csr import build_csr
from clew.graph.pagerank import approximate_pagerank
from clew.graph.pagerank_push import allocate_slots
from clew.graph.transition import build_transition_graph
from clew.index.cosines import RowCosines, score_rows
from clew.index.estimates import Estimates, compare_nearest, estimate_cosines
from clew.kernels import Kernels, load_kernels
from clew.retrieve.copies import find_pairs
from clew.retrieve.rank import top_positions
from clew.sorted_columns import bisect_column
from clew.store import sign_bits
from clew.store.checksums import checksum_vectors
from clew.store.sign_bits import BLOCK_ROWS, count_distances, make_sign_bits, pack_signs
from clew.testing.hashed_kb import open_hashed

SOURCE = Path(kernels.__file__).with_suffix(".c")
QUESTION = "Who designed the Marrow Bridge?"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    """The kernels of this source, whether or not they were compiled at installation."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("kernels") / "lib.so"
    flags = ["-O3", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, "-o", library, SOURCE], check=True)
    found = load_kernels(library)
    assert found is not None
    return found


@pytest.mark.parametrize("width", [1, 31, 384, 401])
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_dot_products_of_rows(compiled: Kernels, width: int, kind: type[np.floating]) -> None:
    numbers = np.random.default_rng(width)
    matrix = (numbers.standard_normal((50, width)) / 20).astype(kind)
    matrix[7, 0] = 3e-7  # below what 16 bits hold with all their digits
    vectors = numbers.standard_normal((2, width)).astype(np.float32)
    rows = np.array([7, 49, 0, 7, 13])
    found = compiled.dot_rows(matrix, rows, vectors)
    np.testing.assert_allclose(
        found, vectors @ matrix[rows].astype(np.float32).T, rtol=1e-5, atol=1e-6
    )


def test_rows_outside_of_the_matrix_are_refused(compiled: Kernels) -> None:
    matrix, vector = np.ones((3, 8), np.float32), np.ones((1, 8), np.float32)
    for row in (-1, 3):
        with pytest.raises(IndexError, match="outside"):
            compiled.dot_rows(matrix, np.array([0, row]), vector)
    with pytest.raises(IndexError, match="outside"):
        compiled.dot_rows(matrix, np.array([0]), np.ones((1, 9), np.float32))
    assert compiled.dot_rows(matrix, np.zeros(0, np.int64), vector).shape == (1, 0)


def test_cosines_without_kernels_are_the_same(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.random.default_rng(5)
    vectors = numbers.standard_normal((900, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = np.append(numbers.permutation(900)[:300], -1)
    for matrix in (vectors, vectors.astype(np.float16), vectors[::2], np.asfortranarray(vectors)):
        some = rows[rows < len(matrix)]
        found = []
        for use in (compiled, None):
            monkeypatch.setattr(kernels, "COMPILED", use)
            found.append(score_rows(matrix, some, vectors[3]))
        np.testing.assert_allclose(*found, atol=1.1e-5)
        assert found[0][-1] == -1


@pytest.mark.parametrize("width", [70, 384, 2100])
def test_differing_bits_without_kernels_are_the_same(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    numbers = np.random.default_rng(6)
    vectors = numbers.standard_normal((BLOCK_ROWS + 2100, width)).astype(np.float16)
    blocks = pack_signs(vectors[:BLOCK_ROWS])[None]
    for bits in (make_sign_bits(vectors, blocks), make_sign_bits(vectors[:100])):
        found = []
        for use in (compiled, None):
            monkeypatch.setattr(kernels, "COMPILED", use)
            found.append(bits.distances(vectors[5].astype(np.float32)))
        np.testing.assert_array_equal(*found)
        assert found[0][5] == 0 < found[0][6]
        asked = vectors[[5, 6, 7]].astype(np.float32)
        for use, number in ((compiled, 3), (compiled, 2), (None, 2)):
            monkeypatch.setattr(kernels, "COMPILED", use)
            together = bits.distances_from(asked[:number])
            alone = [bits.distances(one) for one in asked[:number]]
            np.testing.assert_array_equal(together, alone)


def test_rows_that_are_counted_without_kernels_are_the_same(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_bits, "COUNTED_ROWS", 500)
    numbers = np.random.default_rng(8)
    vectors = numbers.standard_normal((2 * BLOCK_ROWS + 900, 96)).astype(np.float16)
    stored = 2 * BLOCK_ROWS
    blocks = np.stack([pack_signs(vectors[at : at + BLOCK_ROWS]) for at in (0, BLOCK_ROWS)])
    rows = np.append(numbers.permutation(stored + 900), -1)
    samples, counts = [], []
    for use in (compiled, None):
        monkeypatch.setattr(kernels, "COMPILED", use)
        bits = make_sign_bits(vectors, blocks)
        samples.append(bits.find_sample(rows))
        distances = bits.distances_of(vectors[7].astype(np.float32), rows)
        counts += [count_distances(distances, 96, some) for some in (samples[-1], None)]
    assert samples[0] is not None
    assert 300 < len(samples[0]) < 1000
    assert rows[samples[0]].max() >= stored > rows[samples[0]].min()
    np.testing.assert_array_equal(*samples)
    np.testing.assert_array_equal(counts[:2], counts[2:])
    assert counts[1].sum() == stored + 900  # the last row has no vector
    with pytest.raises(IndexError, match="outside"):
        compiled.sample_rows((blocks, blocks[0, :, :0]), np.array([stored]), 1, 63)
    for kinds, at in ((96, 0), (98, 7)):
        with pytest.raises(IndexError, match="outside"):
            compiled.count_each(np.full(7, 97, np.uint16), np.array([at]), kinds)


def test_places_in_columns_without_kernels_are_the_same(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.random.default_rng(12)
    wanted = numbers.integers(-5, 1200, 70)
    for kind in (np.int32, np.int64):
        table = np.sort(numbers.integers(0, 900, (500, 3)), axis=0).astype(kind)
        first = numbers.integers(0, 400, 70)
        within = first, first + numbers.integers(0, 100, 70)
        found = []
        for use in (compiled, None):
            monkeypatch.setattr(kernels, "COMPILED", use)
            for column in (table[:, 1], table[:0, 1], np.ascontiguousarray(table[:, 2])):
                for right in (False, True):
                    places = bisect_column(column, wanted, right=right)
                    side = "right" if right else "left"
                    np.testing.assert_array_equal(places, column.searchsorted(wanted, side))
            found.append(bisect_column(table[:, 0], wanted, within, right=True))
        np.testing.assert_array_equal(*found)
        assert len({*found[0].tolist()}) > 20
    with pytest.raises(IndexError, match="places outside of 500"):
        compiled.bisect(table[:, 0], wanted[:1], (np.array([400]), np.array([501])), right=False)


def test_estimates_without_kernels_are_the_same(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.random.default_rng(9)
    vectors = numbers.standard_normal((3000, 96)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = np.concatenate([numbers.integers(0, 3000, 4000), [-1, -1]])  # some twice, some never
    bits, asked = make_sign_bits(vectors), vectors[5]

    def compare(at: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.where(rows[at] < 0, -1, vectors[rows[at]] @ asked).astype(np.float32)

    found, near = [], []
    for use in (compiled, None):
        monkeypatch.setattr(kernels, "COMPILED", use)
        near.append(bits.nearest_positions(asked, rows, 100))
        found.append(estimate_cosines(bits, rows, asked, 100, compare))
    np.testing.assert_array_equal(*near)
    np.testing.assert_array_equal(found[0].values, found[1].values)
    np.testing.assert_array_equal(found[0].known, found[1].known)
    assert 100 <= len(near[0]) < 400
    assert found[0].values[-1] == -1 < found[0].values[:-2].min()
    assert set(np.flatnonzero(rows == 5)) <= set(near[0].tolist())


def test_what_is_asked_of_estimates_without_kernels_is_the_same(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.random.default_rng(11)
    vectors = numbers.standard_normal((600, 96)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = np.append(numbers.permutation(600), [-1, -1])
    asked = numbers.integers(0, len(rows), 80)  # some twice
    for matrix in (vectors, vectors.astype(np.float16)):
        found = []
        for use in (compiled, None):
            monkeypatch.setattr(kernels, "COMPILED", use)
            compare = RowCosines(matrix, rows, vectors[5])
            estimates = compare_nearest(make_sign_bits(matrix), rows, vectors[5], 20, compare)
            assert (estimates.settle is None) == (use is None)
            found += [estimates.at(np.append(asked, 600)), estimates.values, estimates.known]
        np.testing.assert_allclose(found[0], found[3], atol=1.1e-5)
        np.testing.assert_allclose(found[1], found[4], atol=1.1e-5)
        np.testing.assert_array_equal(found[2], found[5])
        assert found[0][-1] == -1
    settle = RowCosines(vectors, rows, vectors[5])
    monkeypatch.setattr(kernels, "COMPILED", compiled)
    some = settle.prepare(np.zeros(602, np.bool_), np.zeros(602, np.float32))
    assert some is not None
    for wrong in (-1, 602):
        with pytest.raises(IndexError, match="outside"):
            some(np.array([wrong]))


def test_the_first_within_bounds(compiled: Kernels) -> None:
    distances = np.random.default_rng(13).integers(0, 300, 1000).astype(np.uint16)
    within = np.flatnonzero((distances >= 250) & (distances <= 280))
    for most in (5, 40, 1000):
        found = compiled.find_between(distances, (250, 280), most)
        np.testing.assert_array_equal(found, within[:most])


def test_distances_of_rows_that_are_not_there_are_refused(compiled: Kernels) -> None:
    held = np.array([4, 7], np.uint16)
    np.testing.assert_array_equal(
        compiled.take_distances(held, np.array([1, -1, 0]), 99), [7, 99, 4]
    )
    with pytest.raises(IndexError, match="outside"):
        compiled.take_distances(held, np.array([0, 2]), 99)


def test_there_is_room_for_all_that_are_near(compiled: Kernels) -> None:
    distances = np.tile(np.array([3, 9, 200], np.uint16), 500)
    for room in (1, 5000):
        found = compiled.find_within(distances, 9, room)
        np.testing.assert_array_equal(found, np.flatnonzero(distances <= 9))


@pytest.mark.parametrize("most", [1, 40, 5000])
def test_likely_passages_are_those_that_numpy_chooses(compiled: Kernels, most: int) -> None:
    numbers = np.random.default_rng(most)
    passages = np.sort(numbers.permutation(2000)[:700])
    words = [numbers.integers(0, 3, 2000).astype(np.float32) for _ in range(3)]
    fits = numbers.integers(0, 4, 2000).astype(np.float32) / 4  # many are equal
    origin = int(passages[50])
    codes = numbers.permutation(2000)
    at, said = compiled.choose_likely((passages, origin), codes, words[:2], 3.7, fits, most)
    others = passages[passages != origin]
    sums = (words[0][others] + words[1][others]) / np.float32(3.7)
    best = np.lexsort((codes[others], -(sums + fits[others])))[:most]
    np.testing.assert_array_equal(at, others[best])
    np.testing.assert_array_equal(said, sums[best])
    none = compiled.choose_likely((passages[:0], origin), codes, words, 1.0, fits, most)
    assert len(none[0]) == len(none[1]) == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_rankings_without_kernels_are_the_same(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch, weighted: bool
) -> None:
    numbers = np.random.default_rng(7)
    one, other = numbers.integers(0, 5000, (2, 20_000))
    weight = numbers.random(20_000).astype(np.float32) if weighted else np.ones(20_000, np.float32)
    both = np.concatenate([one, other]), np.concatenate([other, one]), np.tile(weight, 2)
    graph = build_transition_graph(build_csr(5100, *both))
    slots = allocate_slots(len(graph))
    seeds = {3: 1.0, 4000: 2.0, 5050: 0.5}  # the last has no edges
    for budget in (200, 30_000):
        found = []
        for use in (compiled, None):
            monkeypatch.setattr(kernels, "COMPILED", use)
            found.append(approximate_pagerank(graph, slots, seeds, 100, budget=budget))
        np.testing.assert_array_equal(found[0].nodes, found[1].nodes)
        np.testing.assert_allclose(found[0].scores, found[1].scores)
        assert found[0].touched == found[1].touched > 3


def test_a_library_that_is_none(tmp_path: Path) -> None:
    assert load_kernels(tmp_path / "missing.so") is None
    (tmp_path / "text.so").write_text("no library")
    assert load_kernels(tmp_path / "text.so") is None


async def test_the_demo_is_searched_without_kernels(
    compiled: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = await open_hashed(Settings(kb=tmp_path / "kb", extractor="offline"), create=True)
    await base.add(Path(clew.__file__).parent / "demo_corpus")
    found = []
    for use in (compiled, None):
        monkeypatch.setattr(kernels, "COMPILED", use)
        results = await base.search(QUESTION, k=5)
        found.append([(passage.id, passage.score) for passage in results.evidence.chunks])
    await base.close()
    assert len(found[0]) == 5
    assert [one for one, _ in found[0]] == [one for one, _ in found[1]]
    assert [score for _, score in found[0]] == pytest.approx([score for _, score in found[1]])


async def test_doctor_tells_whether_kernels_are_there(
    compiled: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = []
    for use in (compiled, None):
        monkeypatch.setattr(kernels, "COMPILED", use)
        checks = {check.name: check for check in await run_checks(Settings(kb=tmp_path / "kb"))}
        states.append(checks["compiled loops"].state)
    assert states == ["ok", "missing"]


@pytest.mark.parametrize("count", [1, 7, 40, 3000])
def test_best_positions_with_and_without_kernels(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    numbers = np.random.default_rng(count)
    scores = numbers.integers(0, 9, count).astype(np.float32)  # most are ties
    keys = numbers.integers(0, 50, count)
    for k in (1, 5, count // 2, count):
        found = []
        for use in (compiled, None):
            monkeypatch.setattr(kernels, "COMPILED", use)
            found.append(top_positions(scores, keys, k))
        np.testing.assert_array_equal(*found)


def test_what_is_asked_for_is_compared_once(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    for use in (compiled, None):
        monkeypatch.setattr(kernels, "COMPILED", use)
        asked: list[int] = []

        def compare(at: NDArray[np.int64], asked: list[int] = asked) -> NDArray[np.float32]:
            asked += at.tolist()
            return at.astype(np.float32)

        known = np.zeros(9, np.bool_)
        held = Estimates(np.full(9, -1, np.float32), known, compare)
        assert held.at(np.array([5, 2, 5])).tolist() == [5, 2, 5]
        assert held.at(np.array([2, 8])).tolist() == [2, 8]
        assert sorted(asked) == [2, 5, 8]


def test_groups_of_rows_are_compared_with_their_own_vectors(compiled: Kernels) -> None:
    numbers = np.random.default_rng(11)
    vectors = numbers.standard_normal((3, 48)).astype(np.float32)
    for kind in (np.float16, np.float32):
        matrix = (numbers.standard_normal((20, 48)) * 9).astype(kind)
        rows = np.array([3, 3, 19, 0, 7])
        found = compiled.score_groups(matrix, rows, [2, 2, 5], vectors)
        assert found is not None
        expected = [compiled.dot_rows(matrix, rows[:2], vectors[:1])[0]]
        expected.append(compiled.dot_rows(matrix, rows[2:], vectors[2:])[0])
        np.testing.assert_array_equal(found, np.round(np.concatenate(expected), 5))
        assert compiled.score_groups(matrix, np.array([-1]), [1], vectors[:1]) is None
        with pytest.raises(IndexError, match="outside"):
            compiled.score_groups(matrix, np.array([20]), [1], vectors[:1])


@pytest.mark.parametrize("width", [1, 7, 128, 192])
def test_sums_of_words(compiled: Kernels, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(width).integers(0, 256, (40, 4 * width), np.uint8)
    rows[3] = 255
    monkeypatch.setattr(kernels, "COMPILED", None)
    plain = checksum_vectors(np.zeros((40, 2), np.uint64), rows)
    monkeypatch.setattr(kernels, "COMPILED", compiled)
    assert checksum_vectors(np.zeros((40, 2), np.uint64), rows).tolist() == plain.tolist()
    with pytest.raises(ValueError, match="a weight for each place"):
        compiled.sum_words(rows.view(np.uint32), np.ones(width + 1, np.uint64))


@pytest.mark.parametrize("count", [0, 1, 33, 1000])
def test_totals_and_mixed_scores_are_those_of_numpy_to_the_last_digit(
    compiled: Kernels, count: int
) -> None:
    numbers = np.random.default_rng(count)
    reached, best, relevance, fit = numbers.standard_normal((4, count)).astype(np.float32)
    total = np.maximum(reached, best) + np.float32(0.6) * best
    total += np.float32(0.3) * relevance + np.float32(0.5) * fit
    found = compiled.sum_totals(reached, best, (relevance, fit), (0.6, 0.3, 0.5))
    mixed = compiled.mix_evenly(reached, best, (-0.2, 1.3, 0.7))
    low, span, most = np.array([-0.2, 1.3, 0.7], np.float32)
    if platform.machine() == "x86_64":
        np.testing.assert_array_equal(found, total)
    np.testing.assert_allclose(found, total, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mixed, (reached - low) / span / 2 + best / most / 2, rtol=1e-5)
    with pytest.raises(ValueError, match="other elements"):
        compiled.sum_totals(
            reached, best, (relevance, np.append(fit, fit.dtype.type(1))), (1, 1, 1)
        )


def test_the_best_of_very_many_are_found_by_a_floor(compiled: Kernels) -> None:
    numbers = np.random.default_rng(3)
    for scores in (numbers.random(70_001), np.zeros(70_001), -np.arange(70_001.0)):
        given, keys = scores.astype(np.float32), numbers.permutation(70_001)
        wanted = np.lexsort((keys, -given))
        for k in (1, 6, 400, 540, 600):
            np.testing.assert_array_equal(compiled.find_top(given, keys, k), wanted[:k])


def test_votes_without_kernels_are_the_same(compiled: Kernels) -> None:
    numbers = np.random.default_rng(3)
    links = build_csr(40, numbers.integers(0, 40, 900), numbers.integers(0, 70, 900))
    elements, votes = numbers.integers(0, 40, 15), numbers.random(15)  # some twice
    found, expected = np.zeros(70), np.zeros(70)
    compiled.add_votes((links.starts, links.columns), (elements, votes), found)
    at, edge = links.edges_of(elements)
    np.add.at(expected, links.columns[edge], votes[at])
    np.testing.assert_array_equal(found, expected)
    assert np.count_nonzero(found) > 50


async def test_pairs_that_may_be_copies_without_kernels_are_the_same(
    compiled: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = (
        "The bridge at Oslen was opened by Ada Lindberg in the spring. It has three arches. ",
        "Ravens nest below old slates; nobody counted them before Ivo Brandt of Vessen did so. ",
    )
    texts = [f"{said[at % 2] * (1 + at % 3)}Report {at} of Kell {at // 9}." for at in range(40)]
    folder = tmp_path / "texts"
    folder.mkdir()
    for at, text in enumerate(texts):
        (folder / f"{at}.txt").write_text(text)
    base = await open_hashed(Settings(kb=tmp_path / "kb", extractor="offline"), create=True)
    await base.add(folder)
    places = np.random.default_rng(3).permutation(40)[:30]
    async with base.store.snapshot() as snapshot:
        for crowd in (2, 60):  # the second is more than there are: it tells only what is near
            found = []
            for use in (compiled, None):
                monkeypatch.setattr(kernels, "COMPILED", use)
                ctx = await base.context(snapshot, "Who opened the bridge?")
                found.append(find_pairs(ctx, places, crowd))
            np.testing.assert_array_equal(*found)
            assert 0 < np.count_nonzero(found[0]) < 30 * 29
    await base.close()


def test_the_best_fact_of_passages_without_kernels_is_the_same(
    compiled: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.random.default_rng(8)
    vectors = numbers.standard_normal((300, 64)).astype(np.float16)
    asked = numbers.standard_normal(64).astype(np.float32)
    rows = np.where(np.arange(300) % 7, numbers.permutation(300), -1)
    bits = make_sign_bits(vectors)
    links = build_csr(60, numbers.integers(0, 59, 300), np.arange(300))  # the last has none
    passages, found = np.array([3, 59, 3, 17, 40]), []
    for use in (compiled, None):
        monkeypatch.setattr(kernels, "COMPILED", use)
        facts = compare_nearest(bits, rows, asked, 20, RowCosines(vectors, rows, asked))
        fits = np.full(len(passages), 0.1, np.float32)
        facts.raise_to_best(links, passages, fits)
        found.append((fits, facts.find_known(), facts.values))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)
    with pytest.raises(IndexError, match="outside"):
        beyond = build_csr(1, np.zeros(1, np.int64), np.array([300]))
        monkeypatch.setattr(kernels, "COMPILED", compiled)
        held = compare_nearest(bits, rows, asked, 20, RowCosines(vectors, rows, asked))
        held.raise_to_best(beyond, np.zeros(1, np.int64), np.zeros(1, np.float32))


def test_numbers_that_moved(compiled: Kernels) -> None:
    numbers = np.random.default_rng(2)
    places = numbers.permutation(5000).astype(np.int32)
    asked = numbers.integers(0, 5000, 9001).astype(np.int32)
    np.testing.assert_array_equal(compiled.renumber(places, asked), places[asked])
    for wrong in (-1, 5000):
        with pytest.raises(IndexError, match="outside"):
            compiled.renumber(places, np.array([4, wrong], np.int32))
