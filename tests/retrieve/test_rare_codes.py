"""Codes that few passages have count twice, where names do not lead from page to page."""

from clew.engine import KnowledgeBase
from clew.index.view import View
from clew.retrieve.blend import repeat_rare_codes
from conftest import document, stream


async def view_of(base: KnowledgeBase) -> View:
    async with base.store.snapshot() as now:
        return (await base.context(now, "x")).view


async def test_rare_codes_of_a_manual_are_repeated(base: KnowledgeBase) -> None:
    pages = [
        document(f"p{n}", f"# Part {n}\n\nThe code XY of part {n} is in the table of codes.")
        for n in range(12)
    ]
    one = document("row", "# Row\n\nThe code KM of a part; see copy2 and wal_level, too.")
    await base.take(stream([*pages, one]))
    view = await view_of(base)
    words = repeat_rare_codes(view, "What do the codes KM, XY, copy2 and wal_level mean?")
    assert [word for word in dict.fromkeys(words) if words.count(word) == 2] == [
        *("km", "copy2", "wal", "level")
    ]
    question = "Which part of the table of codes has KM?"
    plain = view.bm25.scores(list(dict.fromkeys(repeat_rare_codes(view, question))))
    at = int(view.bm25.chunks_with("km")[0])
    repeated = view.bm25.scores(repeat_rare_codes(view, question))
    assert repeated[at] > plain[at] and repeated.argmax() == at


async def test_names_that_lead_on_are_not_repeated(valley: KnowledgeBase) -> None:
    words = repeat_rare_codes(await view_of(valley), "Was the BRIDGE of 1871 built in Vessen?")
    assert len(words) == len(set(words))
