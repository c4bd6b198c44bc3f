"""The reader with a model of a few words: a table that gives each word its logits."""

from pathlib import Path

import numpy as np
import pytest

from clew.errors import ConfigError, ModelError
from clew.reader.span_reader import TOKENIZER_KEY, SpanReader
from clew.reader.windows import WindowMaker

onnx = pytest.importorskip("onnx")
tokenizers = pytest.importorskip("tokenizers")

WORDS = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", ":", "oslo", "bergen", "harbour", "was", "built", "in"),
    *("the", "light", "##house", "1871", "who", "where", "?", "."),
)


def make_tokenizer() -> "tokenizers.Tokenizer":
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return made


def write_model(
    path: Path, logits: dict[str, tuple[float, float]], *, tokenizer: bool = True, mask: bool = True
) -> Path:
    table = np.zeros((len(WORDS), 2), np.float32)
    for word, pair in logits.items():
        table[WORDS.index(word)] = pair
    shape = ["rows", "tokens"]
    names = ["input_ids", "token_type_ids", *(["attention_mask"] if mask else [])]
    helper, kind = onnx.helper, onnx.TensorProto
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["span_logits"])],
        "reader",
        [helper.make_tensor_value_info(name, kind.INT64, shape) for name in names],
        [helper.make_tensor_value_info("span_logits", kind.FLOAT, [*shape, 2])],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if tokenizer:
        entry = model.metadata_props.add()
        entry.key, entry.value = TOKENIZER_KEY, make_tokenizer().to_str()
    onnx.save(model, str(path))
    return path


@pytest.fixture
def reader(tmp_path: Path) -> SpanReader:
    logits = {"oslo": (5.0, 5.0), "bergen": (3.0, 3.0), "1871": (2.0, 4.0), "[CLS]": (1.0, 1.0)}
    return SpanReader.load(write_model(tmp_path / "reader.onnx", logits), workers=2)


def test_the_best_span_of_all_passages_comes_first(reader: SpanReader) -> None:
    passages = ["The harbour was built in Bergen.", "It was built in  Oslo."]
    first, second = reader.read("Where was it built?", passages, most=2)
    assert (first.passage, first.text, first.score) == (1, "Oslo", pytest.approx(8.0))
    assert passages[1][first.start : first.end] == "Oslo"
    assert (second.passage, second.text, second.score) == (0, "Bergen", pytest.approx(4.0))


def test_chosen_spans_never_overlap(reader: SpanReader) -> None:
    spans = reader.read("Where?", ["Oslo Bergen Oslo 1871 in Bergen"], most=6)
    places = sorted((span.start, span.end) for span in spans)
    assert all(one[1] <= two[0] for one, two in zip(places, places[1:], strict=False))
    assert spans == sorted(spans, key=lambda span: -span.score)


def test_a_passage_without_an_answer_scores_below_zero(reader: SpanReader) -> None:
    (span,) = reader.read("Who?", ["the light was in the harbour"], most=1)
    assert span.score == pytest.approx(-2.0)


def test_titles_and_questions_are_read_but_never_answers(reader: SpanReader) -> None:
    spans = reader.read("Where, Oslo?", ["built in 1871"], titles=["Oslo"], most=1)
    assert spans[0].text == "1871"


def test_spans_hold_whole_words(tmp_path: Path) -> None:
    model = write_model(tmp_path / "reader.onnx", {"##house": (9.0, 0.0), "light": (1.0, 9.0)})
    spans = SpanReader.load(model).read("Who?", ["the lighthouse was built"], most=3)
    assert all("house" not in span.text or "lighthouse" in span.text for span in spans)
    assert all(not span.text.endswith("light") for span in spans)


def test_long_passages_are_read_to_the_end(reader: SpanReader) -> None:
    text = "the harbour was built in " * 400 + "Oslo"
    (span,) = reader.read("Where?", [text], most=1)
    assert (span.text, span.end) == ("Oslo", len(text))


def test_a_file_without_a_mask_reads_the_same(reader: SpanReader, tmp_path: Path) -> None:
    logits = {"oslo": (5.0, 5.0), "bergen": (3.0, 3.0), "1871": (2.0, 4.0), "[CLS]": (1.0, 1.0)}
    plain = SpanReader.load(write_model(tmp_path / "plain.onnx", logits, mask=False))
    passages = ["The harbour was built in Bergen.", "It was built in Oslo."]
    found = plain.read("Where?", passages)
    assert found and found == reader.read("Where?", passages)


def test_passages_that_do_not_fit_together_are_cut_the_longest_first() -> None:
    maker = WindowMaker(make_tokenizer())
    texts = ["the harbour " * 600, "was built in Oslo", "light " * 600]
    window = maker.together("Where?", texts)
    assert len(window.ids) <= 512
    assert window.passages.count(1) == 4
    assert window.passages.count(0) == pytest.approx(window.passages.count(2), abs=1)


def test_nothing_to_read_gives_no_span(reader: SpanReader) -> None:
    assert reader.read("Where?", []) == []
    assert reader.read("Where?", [""]) == []
    assert reader.read("Where? " * 5000, ["in Oslo"], most=1)[0].text == "Oslo"


def test_missing_or_foreign_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.onnx are missing"):
        SpanReader.load(tmp_path / "absent.onnx")
    bare = write_model(tmp_path / "bare.onnx", {}, tokenizer=False)
    with pytest.raises(ModelError, match="holds no tokenizer"):
        SpanReader.load(bare)
    with pytest.raises(ConfigError, match="max_tokens"):
        SpanReader.load(bare, max_tokens=20)


def test_of_a_very_long_passage_what_shares_words_with_the_question_is_read() -> None:
    maker = WindowMaker(make_tokenizer())
    text = "in the harbour . " * 2000 + "the lighthouse was built in Oslo " + "in the . " * 500
    windows = maker.separate("Who built the lighthouse?", [text])
    assert len(windows) == 8
    assert any(WORDS.index("oslo") in window.ids for window in windows)


def test_no_span_runs_from_one_sentence_into_the_next(reader: SpanReader) -> None:
    apart = reader.read("Where?", ["It was built in Bergen. In 1871 was the light."])
    joined = reader.read("Where?", ["It was built in Bergen in 1871."])
    assert [span.text for span in apart[:2]] == ["Bergen", "1871"]
    assert joined[0].text == "Bergen in 1871"
