"""An add of rows that was ended is told of where their sum is told."""

from pathlib import Path

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.ingest.build import mark_tables_changed


async def test_rows_of_an_add_that_did_not_finish_are_told_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "sales.csv"
    file.write_text("item,amount\nbolt,4\nnut,7\nwasher,9\n", encoding="utf-8")
    settings = Settings(kb=tmp_path / "kb")
    base = await KnowledgeBase.open(settings, create=True)
    try:
        await base.add([file])
        whole = await base.ask("What is the total amount?")
        await mark_tables_changed(base.store, "more")  # what an add does first
    finally:
        await base.close()
    base = await KnowledgeBase.open(settings)
    try:
        ended = await base.ask("What is the total amount?")
        file.write_text("item,amount\nbolt,4\nnut,7\nwasher,10\n", encoding="utf-8")
        await base.add([file])
        again = await base.ask("What is the total amount?")
    finally:
        await base.close()
    assert whole.candidate == ended.candidate == "20"
    assert again.candidate == "21"
    assert "not finished" in ended.note
    assert "not finished" not in whole.note + again.note
