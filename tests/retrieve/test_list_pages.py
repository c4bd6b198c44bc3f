"""A page that is the list that is asked for gives several passages."""

from clew.engine import KnowledgeBase
from conftest import document, stream

_FILLER = "It is read when the program starts and again whenever the folder changes. " * 30


async def _found(base: KnowledgeBase, question: str) -> tuple[list[str], list[str]]:
    answer = await base.search(question, recipe="clew", k=10)
    docs = [passage.doc for passage in answer.evidence.chunks]
    return docs, [step.output for step in answer.trace if step.step == "spread"]


async def test_a_list_is_taken_from_the_page_that_is_named_by_it(base: KnowledgeBase) -> None:
    entries = (f"FALCON_{n} sets number {n}. {_FILLER}" for n in range(6))
    pages = [document("manual/environment-variables.md", "\n\n".join(entries))]
    pages += [
        document(
            f"commands/run{n}.md",
            f"Falcon command {n} reads environment variables of the shell {n}. {_FILLER}",
        )
        for n in range(12)
    ]
    await base.take(stream(pages))
    docs, said = await _found(base, "List all environment variables that Falcon reads")
    assert docs.count("manual/environment-variables.md") >= 4
    assert any("of one page about it" in one for one in said)
    docs, said = await _found(base, "Which command reads number 3?")
    assert not any("of one page about it" in one for one in said)
    docs, said = await _found(base, "List all commands of the shell")
    assert not any("of one page about it" in one for one in said)
