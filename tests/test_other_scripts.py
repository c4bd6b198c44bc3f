"""Japanese, Russian and Arabic from the file to the citation: reading, names, question, quote."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from clew.config import EmbedSettings, Settings
from clew.engine import KnowledgeBase
from clew.llm.embed import measure_known
from clew.testing.hashed_kb import open_hashed
from clew.testing.stub_endpoint import StubEndpoint

PAGES = {
    "ru": """# Мост через реку Лена

Мост Северный построил инженер Павел Орлов в 1934 году. Длина моста составляет 812 метров.

## Ремонт

В 1987 году мост отремонтировала компания «Стальмост». Работы продолжались два года.
""",
    "ja": """# 青葉橋

青葉橋は1934年に技師の佐藤健一によって設計された。橋の長さは812メートルである。

## 修理

1987年に東海建設が橋を修理した。工事は二年間続いた。
""",
    "ar": """# جسر الوادي

صمم المهندس كريم حداد جسر الوادي عام 1934. يبلغ طول الجسر 812 مترا.

## الترميم

رممت شركة البناء الحديث الجسر عام 1987. استمرت الأعمال سنتين.
""",
}
OTHER = {
    "ru": "# Рынок\n\nНа рынке продают рыбу и хлеб. Он открыт каждый день, кроме понедельника.\n",
    "ja": "# 市場\n\n市場では魚とパンを売っている。月曜日のほかは毎日開いている。\n",
    "ar": "# السوق\n\nيباع السمك والخبز في السوق. وهو مفتوح كل يوم ما عدا الاثنين.\n",
}
ASKED = [
    ("ru", "Кто построил мост Северный?", "Павел Орлов"),
    ("ru", "Какая компания отремонтировала мост?", "Стальмост"),
    ("ja", "1987年に橋を修理したのはどこですか？", "東海建設"),
    ("ar", "من صمم جسر الوادي؟", "كريم حداد"),
    ("ar", "أي شركة رممت الجسر؟", "البناء الحديث"),
]


async def build(tmp_path: Path, language: str) -> KnowledgeBase:
    (tmp_path / "bridge.md").write_text(PAGES[language], encoding="utf-8")
    (tmp_path / "market.md").write_text(OTHER[language], encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    if language != "ja":  # never read in spans; the others are not where the encoder is real
        base.reader = None
    await base.add([tmp_path / "bridge.md", tmp_path / "market.md"])
    return base


def blinded(base: KnowledgeBase) -> KnowledgeBase:
    """Return the knowledge base with an embedder that knows Latin letters only."""
    assert base.embed is not None

    class LatinOnly:
        """Knows Latin letters only."""

        name, dim, __call__ = base.embed.name, base.embed.dim, base.embed.__call__

        def measure_known(self, text: str) -> float:
            return sum(char.isascii() for char in text) / len(text)

    return KnowledgeBase(base.store, base.settings, LatinOnly())


@pytest.mark.parametrize(("language", "question", "said"), ASKED)
async def test_a_question_is_answered_by_a_quote_of_its_sentence(
    tmp_path: Path, language: str, question: str, said: str
) -> None:
    base = await build(tmp_path, language)
    found = await base.search(question, recipe="bm25", k=1)
    assert found.evidence.chunks[0].doc.endswith("bridge.md")
    answer = await base.ask(question)
    assert any(said in citation.quote for citation in answer.citations), answer.answer
    for citation in answer.citations:
        text = (tmp_path / Path(citation.doc).name).read_text(encoding="utf-8")
        assert text[citation.start : citation.end] == citation.quote
    await base.close()


@pytest.mark.parametrize(
    ("language", "name"), [("ru", "Павел Орлов"), ("ru", "Стальмост"), ("ja", "青葉橋")]
)
async def test_names_of_the_language_are_entities(tmp_path: Path, language: str, name: str) -> None:
    base = await build(tmp_path, language)
    details = await base.show(name)
    assert details.entities and details.entities[0]["name"] == name
    await base.close()


async def test_an_embedder_that_knows_nothing_of_a_script_does_not_rank_it(tmp_path: Path) -> None:
    base = await build(tmp_path, "ru")
    blind = blinded(base)
    assert blind.embed is not None
    assert measure_known(blind.embed, "Кто построил мост?") == 0
    assert measure_known(blind.embed, "Who built the bridge?") == 1
    words = await blind.search("Кто построил мост Северный?", recipe="bm25", k=2)
    mixed = await blind.search("Кто построил мост Северный?", k=2)
    assert mixed.evidence.chunks[0].id == words.evidence.chunks[0].id
    await base.close()


async def test_short_sentences_are_quoted_beside_longer_ones_of_other_languages(
    tmp_path: Path,
) -> None:
    pump = "# 水泵手册\n\n最大流量是每分钟48升。李明负责维护工作。\n"
    (tmp_path / "pump.md").write_text(pump, encoding="utf-8")
    base = await build(tmp_path, "ru")
    await base.add([tmp_path / "pump.md"])
    blind = blinded(base)
    for question, said in (("最大流量是多少？", "48升"), ("谁负责维护工作？", "李明")):
        answer = await blind.ask(question)
        assert Path(answer.citations[0].doc).name == "pump.md"
        assert said in answer.citations[0].quote
    await base.close()


CONCEPTS = (
    ("мост", "橋", "جسر", "bridge"),
    ("инженер", "技師", "المهندس", "engineer"),
    ("рынк", "市場", "السوق", "market"),
    ("рыбу", "魚", "السمك", "fish"),
)


def embed_concepts(texts: Sequence[str]) -> NDArray[np.float32]:
    """A multilingual embedder of four concepts."""
    found = [[float(any(w in text.lower() for w in words)) for words in CONCEPTS] for text in texts]
    return np.array([[*vector, 0.1] for vector in found], np.float32)


@pytest.mark.parametrize("language", ["ru", "ja", "ar"])
async def test_a_multilingual_embedder_finds_what_another_language_asks(
    tmp_path: Path, language: str
) -> None:
    for name, page in (("bridge", PAGES[language]), ("market", OTHER[language])):
        (tmp_path / f"{name}.md").write_text(page, encoding="utf-8")
    async with StubEndpoint(embed=embed_concepts, dim=5) as stub:
        settings = Settings(
            kb=tmp_path / "kb", embed=EmbedSettings(model="multi", base_url=stub.base_url)
        )
        base = await KnowledgeBase.open(settings, create=True)
        await base.add([tmp_path / "bridge.md", tmp_path / "market.md"])
        for question, page in (
            ("Which engineer designed the bridge?", "bridge.md"),
            ("Is there fish on the market?", "market.md"),
        ):
            found = await base.search(question, k=1)
            assert found.evidence.chunks[0].doc.endswith(page)
        await base.close()
