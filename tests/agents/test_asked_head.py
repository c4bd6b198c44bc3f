"""What "which" asks for is told from the words around it, and from the terms of a list."""

from pathlib import Path

import pytest

from clew.agents.reading.choose import contradicts_kind
from clew.agents.reading.lists import wants_several
from clew.agents.rules.asked_noun import find_asked_phrase
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.testing.hashed_kb import open_hashed

MANUAL = """# kiln

Fires a kiln from the command line; the -r option may be given twice.

## OPTIONS

-r ramp
--rate=ramp
:   Heat with this rate. Only the slow ramp is allowed for porcelain, because it would crack.

-q, --quiet
:   Print nothing while the kiln is heated, not even warnings.

-s file, --save=file
:   Turn on the report of the firing, and write it into a file.

-l, --log
:   Turn on saving of all readings; the same as -s readings.txt -q.
"""


@pytest.fixture
async def kb(tmp_path: Path) -> KnowledgeBase:
    (tmp_path / "kiln.md").write_text(MANUAL, encoding="utf-8")
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / "kiln.md"])
    return base


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Which output format of the tool is packed?", "output format"),
        ("Which storage layers are there?", "storage layers"),
        ("Which paint colours for boats does the yard sell?", "paint colours"),
        ("Which keyword names the host?", "keyword"),
        ("which tide gauge stations have a mast", "tide gauge stations"),
        ("Which river flows through Leeds?", ""),
        ("Which option makes the tool stop?", "option"),
        ("Which option enables compression?", ""),
        ("What does it do?", ""),
        ("Who built it?", ""),
    ],
)
def test_the_noun_asked_for_is_the_last_of_its_phrase(question: str, words: str) -> None:
    phrase = find_asked_phrase(question)
    assert " ".join(phrase.words) == words
    assert phrase.head == (words.split() or [""])[-1]


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("Which tide gauge stations have a mast?", True),
        ("Which paint colours for boats does the yard sell?", True),
        ("Which paint shop does the yard buy from?", False),
    ],
)
def test_a_plural_behind_another_noun_wants_several(question: str, several: bool) -> None:
    assert wants_several(question) is several


def test_what_only_repeats_the_phrase_is_no_answer() -> None:
    asked = "Which paint colours does the yard sell?"
    assert contradicts_kind(asked, "paint colours") and contradicts_kind(asked, "three")
    assert contradicts_kind(asked, "in which the boats are painted")
    assert not contradicts_kind(asked, "white paint")


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Which kiln option prints nothing while it is heated?", "-q, --quiet"),
        ("Which ramp is allowed for porcelain?", ""),
        ("Which options does --log turn on?", ""),
    ],
)
async def test_a_term_is_named_only_where_a_term_is_asked_for(
    kb: KnowledgeBase, question: str, named: str
) -> None:
    answer = await kb.ask(question)
    assert (answer.candidate if answer.confidence >= 0.5 else "") == named
