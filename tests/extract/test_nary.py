"""Knowledge segments: hyperedges with their members, and what is dropped."""

import json
from typing import Any

import pytest

from clew.extract.model_calls import Gleaning
from clew.extract.model_extractors import Nary
from clew.llm.chat import Request
from clew.llm.openai_chat import OpenAIChat
from clew.testing.fakes import ScriptedChat
from clew.testing.stub_endpoint import StubEndpoint
from clew.types import MEMBER, Chunk, Document

TEXT = "Ilse Brandvik was an engineer. She designed Marrow Bridge in 1902 with Anton Reeve."
DESIGNED = "Ilse Brandvik designed Marrow Bridge in 1902 with Anton Reeve."


def doc(text: str = TEXT, title: str = "Ilse Brandvik") -> tuple[Document, list[Chunk]]:
    return Document("d", text, title, ("d",)), [Chunk("c", "d", 0, len(text), text, title)]


def segment(text: str, *entities: Any, **more: Any) -> dict[str, Any]:
    return {"text": text, "entities": list(entities), **more}


def reply(*segments: dict[str, Any]) -> str:
    return json.dumps({"segments": segments}, ensure_ascii=False)


async def test_a_segment_joins_all_its_entities() -> None:
    said = reply(
        segment(
            "Ilse Brandvik was an engineer.",
            {"name": "Ilse Brandvik", "type": "Person", "description": "An engineer."},
            score=0.9,
        ),
        segment(
            DESIGNED,
            {"name": "ilse brandvik", "description": "A designer."},
            "Marrow Bridge",
            "1902",
            "Anton Reeve",
            "Anton Reeve",
        ),
    )
    (found,) = await Nary(ScriptedChat(lambda _: said))(*doc())
    first, second = found.facts
    assert (first.text, first.weight) == ("Ilse Brandvik was an engineer.", 0.9)
    assert TEXT[slice(*first.span)] == first.text
    assert second.members == tuple(
        (name, MEMBER) for name in ("Ilse Brandvik", "Marrow Bridge", "1902", "Anton Reeve")
    )
    assert (second.relation, second.weight) == ("", 1.0)
    assert TEXT[slice(*second.span)].startswith("She designed")
    ilse = found.entities[0]
    assert (ilse.type, ilse.description) == ("person", "An engineer.\nA designer.")
    assert ilse.about == 1.0
    assert [e.type for e in found.entities] == ["person", "", "date", ""]


async def test_segments_without_entities_or_text_are_dropped_and_counted() -> None:
    said = reply(
        segment("It rained."), segment("", "Ada"), segment("She sat.", "She"), {"score": 1}
    )
    extractor = Nary(ScriptedChat(lambda _: said))
    (found,) = await extractor(*doc("It rained.", ""))
    assert not found.facts
    assert extractor.dropped == {
        "segment without an entity": 2,
        "segment without text": 1,
        "pronoun": 1,
        "did not fit the answer's shape": 1,
    }


async def test_a_loop_is_cut_and_what_was_complete_is_kept() -> None:
    one = json.dumps(segment(DESIGNED, "Ilse Brandvik"))
    said = '{"segments": [' + ", ".join([one] * 50) + ', {"text": "Ilse Brandv'
    extractor = Nary(ScriptedChat(lambda _: said))
    (found,) = await extractor(*doc())
    assert [fact.text for fact in found.facts] == [DESIGNED]
    assert extractor.dropped["reply cut off"] == 1


async def test_gleaning_in_the_base_variant() -> None:
    def answer(request: Request) -> str:
        match request.response_format.name if request.response_format else "":
            case "nary":
                return reply(segment(DESIGNED, "Ilse Brandvik"))
            case "nary_more":
                assert DESIGNED in request.messages[-1].content
                return reply(
                    segment(DESIGNED.lower(), "Anton Reeve"),
                    segment("Ilse Brandvik was an engineer.", "Ilse Brandvik"),
                )
            case _:
                return '{"verdict": "complete"}'

    chat = ScriptedChat(answer)
    (found,) = await Nary(chat, Gleaning("base", 5))(*doc())
    assert [fact.text for fact in found.facts] == [DESIGNED, "Ilse Brandvik was an engineer."]
    assert found.facts[0].members == (("Ilse Brandvik", MEMBER), ("Anton Reeve", MEMBER))
    assert len(chat.requests) == 3


async def test_chinese_segments() -> None:
    text = "鲁迅，原名周树人，出生于浙江绍兴。"
    chat = ScriptedChat(lambda _: reply(segment(text, "鲁迅", "周树人", "绍兴")))
    (found,) = await Nary(chat)(*doc(text, "鲁迅"))
    assert chat.requests[0].messages[0].content.startswith("你把一段文字拆成")
    assert found.facts[0].span == (0, len(text))
    assert [e.name for e in found.entities] == ["鲁迅", "周树人", "绍兴"]
    assert [e.about for e in found.entities] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("refuse", [{}, {"schema": 500}, {"schema": 400}])
async def test_over_http_in_several_ways_of_asking(refuse: dict[str, int]) -> None:
    async with StubEndpoint(refuse=refuse) as stub:
        chat = OpenAIChat("stub", base_url=stub.base_url)
        (found,) = await Nary(chat)(*doc("Ada Lovelace met Charles Babbage.", ""))
    assert found.facts[0].members == (("Ada Lovelace", MEMBER), ("Charles Babbage", MEMBER))
