"""Codes that few passages have count twice, where names do not lead from page to page."""

from clew.engine import KnowledgeBase
from clew.retrieve.blend import repeat_rare_codes
from conftest import document, stream


async def words_of(base: KnowledgeBase, question: str) -> list[str]:
    async with base.store.snapshot() as now:
        return await repeat_rare_codes(await base.context(now, question))


async def test_rare_codes_of_a_manual_are_repeated(base: KnowledgeBase) -> None:
    pages = [
        document(f"p{n}", f"# Part {n}\n\nThe code XY of part {n} is in the table of codes.")
        for n in range(12)
    ]
    one = document("row", "# Row\n\nThe code KM of a part; see copy2 and wal_level, too.")
    await base.take(stream([*pages, one]))
    words = await words_of(base, "What do the codes KM, XY, copy2 and wal_level mean?")
    assert [word for word in dict.fromkeys(words) if words.count(word) == 2] == [
        *("km", "copy2", "wal", "level")
    ]
    question = "Which part of the table of codes has KM?"
    async with base.store.snapshot() as now:
        view = (await base.context(now, "x")).view
    plain = view.bm25.scores(list(dict.fromkeys(await words_of(base, question))))
    at = int(view.bm25.chunks_with("km")[0])
    repeated = view.bm25.scores(await words_of(base, question))
    assert repeated[at] > plain[at] and repeated.argmax() == at


async def test_names_that_lead_on_are_not_repeated(valley: KnowledgeBase) -> None:
    words = await words_of(valley, "Was the BRIDGE of 1871 built in Vessen?")
    assert len(words) == len(set(words))
