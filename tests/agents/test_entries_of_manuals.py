"""Questions over entries of a manual: the entry that is asked for, and no word it only mentions."""

import pytest
from tests.conftest import stream

from clew.agents.answering.asked_term import find_asked_term
from clew.engine import KnowledgeBase
from clew.types import Document, Passage

SETTINGS = """# Settings of the pump

The following settings are known:

PUMP_MODE
:   How the pump runs. Can be set to `slow` or `fast`. Default: `slow`.

PUMP_LIMIT
:   The most litres that are moved in one run. Default: 40.

PUMP_NAME
:   What the pump is called in the log. Default: the name of the host.
"""
OPTIONS = """# packtool

## Options

The options of packtool are:

-t, --test
:   Test the integrity of packed files. This option is equivalent to --unpack --stdout except that
    the data is thrown away.

-k, --keep
:   Keep the packed files.

-r, --recursive
:   Go into folders.
"""
PROBES = """# Instruments

The following probes limit how much heat a sailor of the boat may use:

HEAT_MOST
:   What a sailor at the helm may use.

HEAT_LEAST
:   What the engine uses.
"""
EDITORS = """# Editors

| Editor | Flags |
|---|---|
| Pebble Code | `EDITOR="pcode --wait"` |
| Marble Text | `EDITOR="mtext -w"` |
"""


@pytest.fixture
async def manual(base: KnowledgeBase) -> KnowledgeBase:
    texts = {"settings.md": SETTINGS, "packtool.md": OPTIONS, "editors.md": EDITORS}
    texts["probes.md"] = PROBES
    found = (Document(name, text, text[2:].split("\n")[0], (name,)) for name, text in texts.items())
    await base.take(stream(found))
    return base


async def test_of_several_entries_the_one_with_the_code_is_quoted(manual: KnowledgeBase) -> None:
    answer = await manual.ask("Which values can PUMP_MODE have?")
    assert "`slow` or `fast`" in answer.answer
    assert "PUMP_NAME" not in answer.answer


async def test_an_option_that_an_entry_only_mentions_is_not_named(manual: KnowledgeBase) -> None:
    answer = await manual.ask("Which option checks that packed files are intact?")
    assert "--test" in answer.answer
    assert "--unpack" not in answer.candidate or answer.confidence < 0.5


async def test_the_cell_that_a_question_names_is_no_answer(manual: KnowledgeBase) -> None:
    answer = await manual.ask("What do I set EDITOR to for Marble Text?")
    assert "mtext -w" in answer.answer
    assert answer.candidate != "Marble Text"


async def test_terms_are_of_the_kind_that_announces_them(manual: KnowledgeBase) -> None:
    passage = Passage("probes", "probes.md", "Probes", 1.0, PROBES, 0, len(PROBES))
    async with manual.store.snapshot() as now:
        for question, term in (
            ("Which probe is what a sailor at the helm may use?", "HEAT_MOST"),
            ("Which sailor is at the helm?", None),
        ):
            found = find_asked_term(await manual.context(now, question), [passage])
            assert (found and found.unit.short) == term
