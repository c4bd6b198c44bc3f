"""Propositions: sentences that stand alone, by rules and by a model."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.extract.model_calls import Gleaning
from clew.extract.model_extractors import Propositions
from clew.extract.propositions import PropositionsOffline
from clew.ingest.chunk import CHUNKERS
from clew.llm.chat import Request
from clew.sync import wait
from clew.testing.fakes import ScriptedChat
from clew.text.unicode import digest
from clew.types import MEMBER, SUBJECT, Document, RawFact
from conftest import VALLEY, stream


def propositions(text: str, title: str = "") -> list[RawFact]:
    document = Document(digest(title, text), text, title, ("d",))
    found = wait(PropositionsOffline()(document, CHUNKERS["sentences"](document)))
    return [fact for one in found for fact in one.facts]


def texts(text: str, title: str = "") -> list[str]:
    return [fact.text for fact in propositions(text, title)]


# -- by rules


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The forge makes eight nails. Its smith is Ole Dahl.", "The forge's smith is Ole Dahl."),
        ("The forge sold nine nails. Its smith is Ole Dahl.", "The forge's smith is Ole Dahl."),
        ("The forge drove hot pumps. Its smith is Ole Dahl.", "Its smith is Ole Dahl."),
    ],
)
def test_what_owns_is_the_subject_and_no_clause(text: str, expected: str) -> None:
    assert texts(text, "Notes of Ribe")[-1].endswith(expected)
    assert "'s" not in expected or texts(text, "Notes of Ribe")[-1] == expected


def test_a_title_that_is_written_small_goes_on_as_it() -> None:
    found = texts("The reed bee lives in walls. It collects wax. Its nest is small.", "Reed bee")
    assert found[1:] == ["Reed bee collects wax.", "Reed bee's nest is small."]


@pytest.mark.parametrize("title", ["How the bridge was built", "Who built the bridge?"])
def test_a_headline_stands_for_no_pronoun(title: str) -> None:
    text = f"# {title}\n\nWork began late.\n\nPhoto gallery\n\nIts designer was Agnes Thorley.\n"
    assert texts(text, title)[-1] == "Its designer was Agnes Thorley."


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        (
            "Ilse Brandvik",
            "Ilse Brandvik was an engineer. She was born in Hallowmere.",
            "Ilse Brandvik was born in Hallowmere.",
        ),
        (
            "Ilse Brandvik",
            "Ilse Brandvik was an engineer. In 1902, she moved to Vessen.",
            "In 1902, Ilse Brandvik moved to Vessen.",
        ),
        (
            "Ilse Brandvik (engineer)",
            "Ilse Brandvik was an engineer. Her father was Olaf Brandvik.",
            "Ilse Brandvik's father was Olaf Brandvik.",
        ),
        (
            "Marrow Bridge",
            "Marrow Bridge is a stone bridge. The bridge was opened by Anton Reeve.",
            "The bridge Marrow Bridge was opened by Anton Reeve.",
        ),
        ("Pellworth", "Pellworth is a town. Nothing grows.", "Pellworth: Nothing grows."),
        ("鲁迅", "鲁迅出生于绍兴。他写了《呐喊》。", "鲁迅写了《呐喊》。"),
    ],
)
def test_what_is_missing_is_filled_in(title: str, text: str, expected: str) -> None:
    assert texts(text, title)[1] == expected


def test_a_pronoun_stands_for_whom_the_sentence_before_speaks_of() -> None:
    told = "Marrow Bridge is a stone bridge. Anton Reeve built it. He came from Vessen. It is old."
    assert texts(told, "Marrow Bridge")[1:] == [
        "Anton Reeve built it.",
        "Anton Reeve came from Vessen.",
        "Marrow Bridge is old.",
    ]


@pytest.mark.parametrize(
    "unclear",
    [
        "It is known that Vessen is old.",
        "It was then that Anton Reeve came.",
        "Anton Reeve said that he would come.",
    ],
)
def test_what_is_not_clear_keeps_its_words(unclear: str) -> None:
    found = texts(f"Marrow Bridge is a bridge. {unclear}", "Marrow Bridge")[1]
    assert found.removeprefix("Marrow Bridge: ") == unclear


@pytest.mark.parametrize(
    ("title", "text", "last"),
    [
        # Two may be meant, the title is no person, and "Karl's mother Elsa" are two as well.
        ("Team notes", "Anna Berg met Paul Stone. He hired her.", "He hired her."),
        ("Anna Berg", "Anna Berg met Paul Stone. He hired her.", "He hired her."),
        ("Team notes", "Anna Berg met Paul Stone. He left. She stayed.", "She stayed."),
        ("Team notes", "Karl's mother Elsa was a nurse. She died in 1990.", "She died in 1990."),
        ("Team notes", "Tarn Sonar bought Ure Marine. It is in Vessen.", "It is in Vessen."),
        ("Report", "Anna Berg left. It was cold.", "It was cold."),
        ("会议", "王芳见了李明。他雇用了她。", "他雇用了她。"),
        # Only one fits.
        ("Report", "Anna Berg left. It was cold. She went.", "Anna Berg went."),
        ("Ann Lee", "Ann Lee is a baker. She met Paul Stone. He left.", "Paul Stone left."),
        (
            "Karl Lund",
            "Karl Lund was born here. His mother was Elsa Moe. She left.",
            "Elsa Moe left.",
        ),
    ],
)
def test_a_pronoun_is_filled_in_only_where_one_name_fits(title: str, text: str, last: str) -> None:
    assert texts(text, title)[-1].removeprefix(f"{title}: ").removeprefix(f"{title}：") == last


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        # A heading that is no name leads nothing, and below it nobody was spoken of yet.
        ("Ilka Soren", "Ilka Soren was born. She sang.\n\n## Career\n\nIn 1935 he left.", None),
        ("Oak Hall", "Oak Hall is old. Hugh Moe built it.\n\n## History\n\nHe died in 1920.", None),
        # One thing is not "they", and of two things "it" may be either.
        ("Ann Lee", "Ann Lee won the Aurel Prize. They lived here.", None),
        ("Oak Hall", "Oak Hall is a museum. Its owner bought the Merz clock. It is heavy.", None),
        ("Fir Lab", "Ann Lee runs Fir Lab. She has a boat. It is called Wind. He was late.", None),
        # Where it is clear, it is filled in.
        (
            "Tarn Valley Line",
            "The Tarn Valley Line opened in 1888. It was built by Hugh Moe.",
            "Tarn Valley Line was built by Hugh Moe.",
        ),
        (
            "Tarn Valley Line",
            "The Tarn Valley Line is long. Hugh Moe built the Orme Dam. It collapsed in 1903.",
            "Orme Dam collapsed in 1903.",
        ),
        (
            "Velvet Pines",
            "# Velvet Pines\n\nVelvet Pines are a band. They came from Vessen.",
            "Velvet Pines came from Vessen.",
        ),
        (
            "Ilka Soren",
            "Ilka Soren was born in Kest. She met Bo Lie. He hired her to teach.",
            "Bo Lie hired Ilka Soren to teach.",
        ),
    ],
)
def test_headings_numbers_and_kinds_decide_what_a_pronoun_means(
    title: str, text: str, expected: str | None
) -> None:
    last = re.split(r"(?<=\.)\s+|\n\n", text)[-1]
    assert texts(text, title)[-1].removeprefix(f"{title}: ") == (expected or last)


def test_a_section_about_someone_is_told_by_their_name_elsewhere() -> None:
    text = "The prize went to Ada Moe last year. We thank Ada Moe.\n\n## Ada Moe\n\nShe wrote it."
    assert texts(text, "Prizes")[-1] == "Ada Moe wrote it."


def test_he_is_no_bridge_and_they_may_be_several() -> None:
    bridge = texts("Marrow Bridge is a bridge in Vessen. He lived there.", "Marrow Bridge")
    assert bridge[1] == "He lived there."
    met = "Anton Reeve met Clara Lindqvist. They married in Vessen."
    assert "They married in Vessen." in texts(met, "Anton Reeve")[1]


def test_long_sentences_are_split_where_each_part_has_a_subject() -> None:
    told = (
        "Ilse Brandvik was an engineer. She designed Marrow Bridge over the river Tarn in 1902 "
        "and was awarded the Corriden Medal in Vessen, and she died in Pellworth in 1921."
    )
    found = propositions(told, "Ilse Brandvik")[1:]
    assert [fact.text for fact in found] == [
        "Ilse Brandvik designed Marrow Bridge over the river Tarn in 1902.",
        "Ilse Brandvik was awarded the Corriden Medal in Vessen.",
        "Ilse Brandvik died in Pellworth in 1921.",
    ]
    # Every part cites the sentence it came from, and has its own members.
    assert {told[slice(*fact.span)] for fact in found} == {told[31:]}
    assert found[2].members == (
        ("Ilse Brandvik", SUBJECT),
        ("Pellworth", MEMBER),
        ("1921", MEMBER),
    )


@pytest.mark.parametrize(
    "whole",
    [
        "Ilse Brandvik, who was born in Hallowmere and was an engineer, designed Marrow Bridge.",
        "The primary towns of the coast are Vessen, Grey Coast; Pellworth, Grey Coast; Hallowmere.",
        'Anton Reeve wrote "the rain was long and was cold and was grey" in the year 1902.',
    ],
)
def test_sentences_whose_parts_do_not_stand_alone_stay_whole(whole: str) -> None:
    assert texts(whole, "Ilse Brandvik")[0].endswith(whole)


def test_chinese_statements_are_split_too() -> None:
    told = "鲁迅出生于绍兴。他写了《呐喊》；他于1936年在上海去世。"
    assert texts(told, "鲁迅")[1:] == ["鲁迅写了《呐喊》。", "鲁迅于1936年在上海去世。"]


@pytest.mark.parametrize(
    ("title", "text", "last"),
    [
        ("", "The studio was sold in 2001. It burned in 2007.", "The studio burned in 2007."),
        (
            "Ines Moe",
            "Ines Moe owned a mill in Vessen. The mill stood by a river. It burned down.",
            "The mill burned down.",
        ),
        ("Ines Moe", "Ines Moe was a baker. She bought a mill. It burned.", "The mill burned."),
        ("Ines Moe", "Ines Moe was a baker. Her mill was old. It fell.", "Ines Moe's mill fell."),
        (
            "Ines Moe",
            "Ines Moe wrote two books. The first book sold. We like it.",
            "We like the first book.",
        ),
        ("Harbour", "The crane was repaired. It failed. Its arm broke.", "The crane's arm broke."),
        ("Router X2", "The Router X2 needs power. The fan is loud. It turns.", "The fan turns."),
        # Unclear: it stays as it is written, and nothing precedes it.
        ("Ines Moe", "Ines Moe was a baker. She bought a mill in a town. It is old.", "It is old."),
        ("Tarn Sonar", "Tarn Sonar bought a mill. It is in Vessen.", "It is in Vessen."),
        ("Harbour", "The crane was repaired. It was raining.", "It was raining."),
        ("Harbour", "The cranes were repaired. It failed.", "It failed."),
        ("", "The director hired Tom Ford. He left in 2007.", "He left in 2007."),
        (
            "Ada Quill",
            "Ada Quill founded the Green Press. Her brother Tom wrote novels; they were printed "
            "by the Green Press and he won the Lark Prize. "
            "It moved to Oslo in 1970 and was sold to Brandt in 1984.",
            "It was sold to Brandt in 1984.",
        ),
    ],
)
def test_a_subject_without_a_name_goes_on_as_a_pronoun(title: str, text: str, last: str) -> None:
    assert texts(text, title)[-1] == last


def test_a_heading_is_no_fact() -> None:
    assert texts("# Oak Hall\n\nOak Hall is a barn.", "Oak Hall") == ["Oak Hall is a barn."]


@given(st.text(max_size=200), st.text(max_size=30))
def test_any_text_gives_propositions_within_it(text: str, title: str) -> None:
    for fact in propositions(text, title):
        start, end = fact.span
        assert 0 <= start < end <= len(text)
        assert fact.text.strip() and fact.members


async def test_every_recipe_of_facts_reads_them(base: KnowledgeBase) -> None:
    await base.take(stream(VALLEY), "propositions-offline")
    for recipe in ("clew", "hipporag2", "graph-r1", "proprag"):
        found = await base.search("Where was Anton Reeve born?", recipe=recipe, k=4)
        assert "poet" in [passage.doc for passage in found.evidence.chunks], recipe
    facts = (await base.search("Where was Anton Reeve born?", recipe="graph-r1")).evidence.facts
    [born] = [fact for fact in facts if fact.text == "Anton Reeve was born in Vessen."]
    assert born.quote == "He was born in Vessen."


async def test_an_unknown_extractor_is_told_which_there_are(base: KnowledgeBase) -> None:
    with pytest.raises(ConfigError, match="offline, propositions-offline, triples"):
        await base.take(stream(VALLEY), "props")


# -- by a model


TEXT = "Ilse Brandvik was an engineer. She designed Marrow Bridge in 1902."
DESIGNED = "Ilse Brandvik designed Marrow Bridge in 1902."


def reply(*found: tuple[str, list[Any]]) -> str:
    rows = [{"text": text, "entities": names} for text, names in found]
    return json.dumps({"propositions": rows}, ensure_ascii=False)


async def extract(chat: ScriptedChat, text: str = TEXT, title: str = "Ilse Brandvik") -> Any:
    document = Document("d", text, title, ("d",))
    [found] = await Propositions(chat)(document, CHUNKERS["sentences"](document))
    return found


async def test_a_model_writes_propositions_with_their_names() -> None:
    said = reply((DESIGNED, ["Ilse Brandvik", {"name": "Marrow Bridge"}, 1902, "she"]))
    found = await extract(ScriptedChat(lambda _: said))
    [fact] = found.facts
    assert (fact.text, TEXT[slice(*fact.span)]) == (DESIGNED, "She designed Marrow Bridge in 1902.")
    assert [name for name, _ in fact.members] == ["Ilse Brandvik", "Marrow Bridge", "1902"]
    assert {one.name: one.type for one in found.entities}["1902"] == "date"


async def test_a_model_is_asked_again_for_what_it_missed() -> None:
    def answer(request: Request) -> str:
        match request.response_format.name if request.response_format else "":
            case "propositions":
                return reply((DESIGNED, ["Ilse Brandvik"]))
            case "propositions_more":
                assert DESIGNED in request.messages[-1].content
                return reply((DESIGNED.upper(), ["Marrow Bridge"]), ("It stands.", []))
            case _:
                return '{"verdict": "complete"}'

    document = Document("d", TEXT, "Ilse Brandvik", ("d",))
    extractor = Propositions(ScriptedChat(answer), Gleaning("base", 3))
    [found] = await extractor(document, CHUNKERS["sentences"](document))
    [fact] = found.facts
    assert [name for name, _ in fact.members] == ["Ilse Brandvik", "Marrow Bridge"]
    assert extractor.dropped == {"segment without an entity": 1}


async def test_chinese_text_is_asked_about_in_chinese() -> None:
    chat = ScriptedChat(lambda _: reply(("鲁迅写了《呐喊》。", ["鲁迅", "呐喊"])))
    found = await extract(chat, "鲁迅出生于绍兴。他写了《呐喊》。", "鲁迅")
    assert chat.requests[0].messages[0].content.startswith("你把一段文字改写成")
    assert [one.name for one in found.entities] == ["鲁迅", "呐喊"]
