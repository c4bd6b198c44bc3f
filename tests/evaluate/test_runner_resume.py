"""Runs that fail in unforeseen ways, and records that were made under other conditions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from clew.adapters import QueryAdapter, Tuning, save_tuning
from clew.config import ModelSettings, Price, RerankSettings, RoleSettings, Settings
from clew.engine import KnowledgeBase
from clew.errors import ModelError
from clew.evaluate.datasets import Question
from clew.evaluate.record import parse_record
from clew.evaluate.runner import RecipeRunner

ASKED = (
    Question("q1", "Where was Ilse Brandvik born?", ("Hallowmere",), ("ilse",)),
    Question("q2", "When did Ilse Brandvik die?", ("1921",), ("ilse",)),
    Question("q3", "Who designed Marrow Bridge?", ("Ilse Brandvik",), ("bridge",)),
)


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (KeyError("x"), "KeyError: 'x'"),
        (ModelError("the model is silent"), "the model is silent"),
        (ExceptionGroup("g", [ModelError("gone")]), "gone"),
        (
            ExceptionGroup("g", [ModelError("gone"), ExceptionGroup("h", [KeyError("x")])]),
            "KeyError: 'x'",
        ),
    ],
)
async def test_whatever_a_question_ends_in_the_others_go_on(
    valley: KnowledgeBase,
    monkeypatch: pytest.MonkeyPatch,
    fault: Exception,
    reason: str,
    at_once: int,
) -> None:
    search = KnowledgeBase.search

    async def broken(self: KnowledgeBase, question: str, **how: Any) -> Any:
        if question == ASKED[1].text:
            raise fault
        return await search(self, question, **how)

    monkeypatch.setattr(KnowledgeBase, "search", broken)
    report = await RecipeRunner(valley, ["recall@2"], at_once=at_once).run_recipe("bm25", ASKED)
    assert [record.error for record in report.records] == ["", reason, ""]
    assert [record.values["recall@2"] for record in report.records] == [1.0, 0.0, 1.0]


class Cut:
    """A run that was cut short after one question, under the usual conditions."""

    def __init__(self, kb: KnowledgeBase, folder: Path) -> None:
        self.kb, self.folder = kb, folder

    async def begin(self) -> None:
        await self._run(self.kb)
        [self.file] = self.folder.iterdir()
        text = self.file.read_text().replace('{"complete": true}\n', "")
        self.text = text.replace('"seconds": ', '"seconds": 77')

    async def goes_on(self, settings: Settings) -> bool:
        """Whether its record is taken over under these settings."""
        self.file.write_text(self.text)
        now = KnowledgeBase(self.kb.store, settings, self.kb.embed)
        return await self._run(now) > 77

    async def _run(self, kb: KnowledgeBase) -> float:
        run = RecipeRunner(kb, ["recall@2"], folder=self.folder)
        return (await run.run_recipe("bm25", ASKED[:1])).records[0].seconds


@pytest.fixture
async def cut(valley: KnowledgeBase, tmp_path: Path) -> Cut:
    models = ModelSettings(model="m", base_url="http://localhost:1/v1")
    settings = valley.settings.model_copy(update={"models": models})
    found = Cut(KnowledgeBase(valley.store, settings, valley.embed), tmp_path / "runs")
    await found.begin()
    return found


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "other"},
        {"base_url": "http://localhost:2/v1"},
        {"shape_by": "json"},
        {"extra": {"temperature": 1}},
        {"client": "sdk"},
        {"plan": RoleSettings(model="other")},
        {"answer": RoleSettings(extra={"temperature": 1})},
        {"judge": RoleSettings(base_url="http://localhost:2/v1")},
    ],
)
async def test_records_of_other_models_are_not_taken_over(
    cut: Cut, changed: dict[str, object]
) -> None:
    settings = cut.kb.settings
    assert await cut.goes_on(settings)
    models = settings.models.model_copy(update=changed)
    assert not await cut.goes_on(settings.model_copy(update={"models": models}))


async def test_keys_limits_and_prices_do_not_begin_a_run_anew(cut: Cut) -> None:
    models = cut.kb.settings.models.model_copy(
        update={
            "api_key": SecretStr("k"),
            "concurrency": 2,
            "timeout": 9.0,
            "prices": {"m": Price(1.0, 2.0)},
            "extract": RoleSettings(model="other"),
        }
    )
    rerank = RerankSettings(api_key="k")
    settings = cut.kb.settings.model_copy(update={"models": models, "rerank": rerank})
    assert await cut.goes_on(settings)


async def test_records_of_another_reranker_are_not_taken_over(cut: Cut) -> None:
    rerank = RerankSettings(model="r", base_url="http://localhost:3/v1")
    assert not await cut.goes_on(cut.kb.settings.model_copy(update={"rerank": rerank}))


async def test_records_from_before_tuning_are_not_taken_over(cut: Cut) -> None:
    embed = cut.kb.embed
    assert embed is not None
    width = (await embed(["x"])).shape[1]
    learnt = QueryAdapter(np.ones((width, 2), np.float32), np.ones((2, width), np.float32))
    await save_tuning(cut.kb.store, embed.name, Tuning(queries=learnt, helped_recipes=("naive",)))
    assert not await cut.goes_on(cut.kb.settings)


async def test_a_record_keeps_the_signals_of_an_answers_confidence(valley: KnowledgeBase) -> None:
    report = await RecipeRunner(valley, ["em"], answers=True).run_recipe("clew", ASKED[:1])
    answer = await valley.ask(ASKED[0].text, recipe="clew")
    assert answer.signals
    assert parse_record(report.records[0].to_dict()).signals == answer.signals
