"""Names that passages mention are followed; what leads nowhere costs nothing."""

from pathlib import Path

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed

PAGES = {
    "bridge": "The Marrow Bridge was designed by Ilse Brandvik. Odo Fenn and Ria Holt paid for it.",
    "brandvik": "Ilse Brandvik was an engineer. She was born in Hallowmere.",
    "mill": "The Tarn Mill stands in Vessen. Jory Pell ground rye there with Nan Quill.",
}


class _NotedEmbed(HashEmbed):
    """Notes the texts that it embeds."""

    noted: list[str]

    async def __call__(self, texts, /, *, role="passage"):  # type: ignore[no-untyped-def]
        self.noted = [*getattr(self, "noted", []), *texts]
        return await super().__call__(texts, role=role)


async def test_a_name_that_one_passage_has_is_not_embedded_by_a_question(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    settings, embed = Settings(kb=tmp_path / "kb"), _NotedEmbed()
    kb = KnowledgeBase(SqliteStore(tmp_path / "kb", create=True, durable=False), settings, embed)
    await kb.add([tmp_path / f"{name}.txt" for name in PAGES])
    embed.noted = []
    await kb.search("Where was the designer of the Marrow Bridge born?")
    assert "Ilse Brandvik" in embed.noted
    assert not {"Odo Fenn", "Ria Holt"} & set(embed.noted)
