"""The limits under which models are asked: from the settings to the extractor, and in words."""

import json
from pathlib import Path

import pytest

from clew.cli import add as building
from clew.cli.progress import LineReport, format_usage
from clew.config import ExtractSettings, ModelSettings, Settings, load_settings
from clew.config_template import TEMPLATE
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.testing.stub_endpoint import Messages, StubEndpoint
from clew.types import Usage

GRAPH = {
    "entities": [{"name": "Orla Quist"}, {"name": "she"}, {"name": "it"}],
    "relations": [{"head": "Orla Quist", "relation": "founded", "tail": "Lindbay"}, {"head": 7}],
}


def base_at(folder: Path, url: str, how: ExtractSettings) -> KnowledgeBase:
    models = ModelSettings(
        model="stub",
        base_url=url,
        api_key="k",  # type: ignore[arg-type]
        prices={"stub": {"prompt": 1.0, "completion": 2.0}},  # type: ignore[dict-item]
    )
    settings = Settings(kb=folder / "kb", models=models, extract=how)
    return KnowledgeBase(
        SqliteStore(settings.kb, create=True, durable=False), settings, HashEmbed()
    )


def test_an_overlap_of_more_than_half_a_chunk_is_refused_by_its_key(tmp_path: Path) -> None:
    file = tmp_path / "clew.toml"
    file.write_text("[chunk]\nsize = 100\noverlap = 51\n")
    with pytest.raises(ConfigError, match="chunk.overlap: must be at most half of chunk.size"):
        load_settings(file)
    file.write_text("[chunk]\nsize = 100\noverlap = 50\n")
    assert load_settings(file).chunk.overlap == 50


def test_the_file_sets_them(tmp_path: Path) -> None:
    file = tmp_path / "clew.toml"
    file.write_text('[extract]\ngleaning = "base"\nrounds = 2\nmax_tokens = 900\n')
    assert load_settings(file).extract == ExtractSettings(gleaning="base", rounds=2, max_tokens=900)
    file.write_text("[extract]\nrounds = -1\n")
    with pytest.raises(ConfigError, match=r"extract\.rounds"):
        load_settings(file)
    assert "[extract]" in TEMPLATE


@pytest.mark.parametrize(
    ("name", "instead"), [("propositions", "propositions-offline"), ("nary", "offline")]
)
def test_without_a_model_the_extractor_by_rules_is_named(
    base: KnowledgeBase, name: str, instead: str
) -> None:
    with pytest.raises(ConfigError, match=f"CLEW_MODEL.*--extractor {instead}` needs none"):
        base.builder.make_extractor(name)


@pytest.mark.parametrize("name", ["triples", "nary", "propositions", "schema"])
async def test_they_reach_the_extractor(tmp_path: Path, name: str) -> None:
    base = base_at(tmp_path, "http://127.0.0.1:9/v1", ExtractSettings(rounds=3, max_tokens=777))
    made = repr(base.builder.make_extractor(name))
    assert "777" in made
    assert name == "schema" or "most=3" in made
    await base.close()


async def test_what_was_left_out_and_what_it_cost_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def reply(messages: Messages) -> str:
        return json.dumps(GRAPH)

    (tmp_path / "a.txt").write_text("Orla Quist founded Lindbay. She liked it.")
    async with StubEndpoint(reply=reply) as stub:
        base = base_at(tmp_path, stub.base_url, ExtractSettings())
        added = await base.add([tmp_path / "a.txt"])
        assert added.dropped == {"pronoun": 2, "did not fit the answer's shape": 1}
        assert added.usage.calls == stub.stats.chat_calls == 1
        assert added.usage.money > 0
        again = await base.add([tmp_path / "a.txt"])
        assert (again.unchanged, again.dropped, again.usage) == (1, {}, Usage())
        await base.close()
    building.print_added(added)
    told = capsys.readouterr().out
    assert (
        "dropped from the model's output: 2 × pronoun, 1 × did not fit the answer's shape" in told
    )
    assert "1 calls" in told and "cost " in told


def test_a_bill_in_words() -> None:
    assert format_usage(Usage()) == ""
    assert format_usage(Usage(2, 1500, 500)) == "2 calls, 2,000 tokens"
    assert format_usage(Usage(2, 1500, 500, money=0.25)) == "2 calls, 2,000 tokens, cost 0.2500"


def test_long_stages_say_what_is_left_and_what_was_paid(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = {"time": 0.0}
    used = [Usage()]
    tell = LineReport(lambda: used[0], lambda: now["time"])
    used[0] = Usage(5, 100, 20)
    told_at = [
        *((0.0, "extract", 0, 100), (20.0, "extract", 10, 100), (40.0, "write", 0, 1)),
        *((60.0, "file", 462, 462), (80.0, "file", 462, 462), (90.0, "embed", 0, 0)),
        *((690.0, "embed", 6, 0), (700.0, "grow", 1, 1)),
    ]
    for time, stage, done, total in told_at:
        now["time"] = time
        tell(stage, done, total)
    told = capsys.readouterr().err
    assert "extract: 10 of 100 documents, 180 s left to extract (0.5/s)" in told
    assert told.count("file: 462 bytes\n") == 1
    assert "embed: 6 texts (0.6/min)" in told
    assert "grow: 1 tree\n" in told
    assert "5 calls, 120 tokens" in told
    assert "write" not in told
