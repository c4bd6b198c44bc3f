"""An encoder learnt for a knowledge base: kept where it helps, used by all, and forgotten."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from test_run import asked, films, riddles, right, silent

from clew.adapters import ContrastiveExample
from clew.config import EmbedSettings, Settings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.evaluate.datasets import Question
from clew.tune.encoder import forget_encoder, tune_encoder
from conftest import stream

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

WORDS = (
    "directed by written release year who helmed penned film it wrote composed "
    "edited scored cut the name of a"
).split()
WORDS += [str(n) for n in (*range(40), *range(1900, 1940))]
SAME = {"helmed": "directed", "penned": "written", "scored": "composed", "cut": "edited"}
Weights = Mapping[str, np.ndarray]
Tell = Callable[[str, int, int], None]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A local embedder of a few words, each with a vector of its own, made on the spot."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    folder = tmp_path / "words"
    (folder / "onnx").mkdir(parents=True)
    known = {"?": 0} | {word: at + 1 for at, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="?"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    table = np.random.default_rng(7).normal(size=(len(known), 32)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["words.weight", "input_ids"], ["last_hidden_state"])],
        "words",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "s"])],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "s", 32])],
        [numpy_helper.from_array(table, "words.weight")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, str(folder / "onnx" / "model.onnx"))
    embed = EmbedSettings(folder=folder)
    return Settings(kb=tmp_path / "kb", cache=tmp_path / "cache", embed=embed, wait=0.2)


def teacher(
    weights: Weights, tokens: bytes, choices: Sequence[ContrastiveExample], tell: Tell
) -> dict[str, np.ndarray]:
    """What learning would find out: which words mean the same."""
    assert choices and all(
        one.positives and set(one.positives).isdisjoint(one.negatives) for one in choices
    )
    table = weights["words.weight"].copy()
    for word, other in SAME.items():
        table[WORDS.index(word) + 1] = table[WORDS.index(other) + 1]
    return {"words.weight": table}


def spoiler(weights: Weights, *rest: object) -> dict[str, np.ndarray]:
    """Learning that went wrong: words mean what their opposites did."""
    table = weights["words.weight"].copy()
    table[[WORDS.index("helmed") + 1, WORDS.index("penned") + 1]] = table[
        [WORDS.index("written") + 1, WORDS.index("directed") + 1]
    ]
    return {"words.weight": table}


async def opened(settings: Settings, tmp_path: Path) -> KnowledgeBase:
    base = await KnowledgeBase.open(settings, create=True)
    file = tmp_path / "films.txt"
    file.write_text(films(40), encoding="utf-8")
    await base.import_graph(file)
    return base


async def test_it_answers_what_words_alone_cannot_and_stays_with_the_knowledge_base(
    settings: Settings, tmp_path: Path
) -> None:
    base = await opened(settings, tmp_path)
    plain = base.embed.name if base.embed else ""
    train = [q for n in range(30) for q in asked(n)]
    test = [q for n in range(30, 40) for q in asked(n)]
    before = await right(base, test)
    for left in ("encoder.new/encoder", "encoder.new/before", "encoder"):  # by a killed run
        (settings.kb / left / "onnx").mkdir(parents=True)
    told = await tune_encoder(base, train, teacher, silent)
    assert told.kept and told.after == 1.0 > (told.before or 0)
    assert told.paths == 60 and told.embedder.startswith("encoder-")
    assert await right(base, test) == 1.0 > before
    assert not (settings.kb / "encoder.new").exists()
    await base.close()
    again = await KnowledgeBase.open(settings)
    assert (await again.status())["embedder"] == told.embedder
    assert await right(again, test) == 1.0
    assert await again.verify() == []
    assert await forget_encoder(again, silent)
    assert (await again.status())["embedder"] == plain
    assert await right(again, test) == before
    await again.close()
    last = await KnowledgeBase.open(settings)
    assert last.embed is not None and last.embed.name == plain
    assert not await forget_encoder(last, silent)
    await last.close()


async def test_what_does_not_help_leaves_no_trace(settings: Settings, tmp_path: Path) -> None:
    base = await opened(settings, tmp_path)
    before = await base.status()
    told = await tune_encoder(base, [q for n in range(30) for q in asked(n)], spoiler, silent)
    assert not told.kept and told.embedder == before["embedder"]
    assert await base.status() == before
    assert sorted(p.name for p in settings.kb.glob("encoder*")) == []
    assert not list(settings.cache.glob("encoder-*.onnx"))
    await base.close()


@pytest.mark.slow
async def test_passages_teach_it_too(settings: Settings) -> None:
    base = await KnowledgeBase.open(settings, create=True)
    texts, questions = riddles(25)
    await base.take(stream(texts))
    told = await tune_encoder(base, questions, teacher, silent)
    assert told.passages == 100 and told.paths == 0
    assert (told.passages_after or 0) > (told.passages_before or 0)
    assert told.kept and told.recipe is not None and told.recipe.after >= told.recipe.before
    await base.close()


async def test_an_encoder_with_which_the_usual_recipe_finds_less_goes_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = await KnowledgeBase.open(settings, create=True)
    texts, questions = riddles(25)
    await base.take(stream(texts))
    found = [0.5, 0.5, 0.9, 0.8]  # as good, then worse

    async def recalls(*_: object) -> np.ndarray:
        return np.array([found.pop(0)])

    def beginner(weights: Weights, *rest: object) -> dict[str, np.ndarray]:
        table = weights["words.weight"].copy()
        table[WORDS.index("helmed") + 1] = table[WORDS.index("directed") + 1]
        return {"words.weight": table}

    monkeypatch.setattr("clew.tune.encoder.measure_recalls", recalls)
    monkeypatch.setattr("clew.tune.encoder.RECALL_AT", 1)
    assert (await tune_encoder(base, questions, beginner, silent)).kept
    first = base.embed
    told = await tune_encoder(base, questions, teacher, silent)
    assert (told.passages_after or 0) > (told.passages_before or 0)
    assert not told.kept and told.recipe is not None and not told.recipe.used
    assert told.embedder == base.embed.name == first.name if base.embed and first else False
    assert sorted(p.name for p in settings.kb.glob("encoder*")) == ["encoder"]
    await base.close()
    again = await KnowledgeBase.open(settings)
    assert (await again.search("it helmed person3", recipe="naive")).evidence.chunks
    await again.close()


@pytest.mark.slow  # two runs
async def test_a_run_that_fails_leaves_the_encoder_of_the_one_before(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = await opened(settings, tmp_path)
    train = [q for n in range(30) for q in asked(n)]
    test = [q for n in range(30, 40) for q in asked(n)]
    first = await tune_encoder(base, train, teacher, silent)

    def louder(weights: Weights, *rest: object) -> dict[str, np.ndarray]:
        return {"words.weight": 2 * teacher(weights, *rest)["words.weight"]}  # type: ignore[arg-type]

    def stopped(stage: str, done: int, total: int) -> None:
        if stage == "embed":
            raise InterruptedError

    monkeypatch.setattr("clew.tune.encoder.is_improvement", lambda before, after: True)
    with pytest.raises(InterruptedError):
        await tune_encoder(base, train, louder, stopped)
    for kb in (base, await KnowledgeBase.open(settings)):
        assert kb.embed is not None and kb.embed.name == first.embedder
        assert await right(kb, test) == 1.0
        await kb.close()


async def test_too_few_questions_and_other_embedders_are_one_sentence(
    settings: Settings, base: KnowledgeBase, tmp_path: Path
) -> None:
    mine = await opened(settings, tmp_path)
    with pytest.raises(ConfigError, match="at least 40 questions"):
        await tune_encoder(mine, asked(1), teacher, silent)
    await mine.close()
    base.settings = base.settings.model_copy(
        update={"embed": EmbedSettings(model="far", base_url="http://localhost:1/v1")}
    )
    with pytest.raises(ConfigError, match="only the local encoder"):
        await tune_encoder(base, [Question("1", "who?")], teacher, silent)
