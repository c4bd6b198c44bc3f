"""A sentence of a model with a quote's words in other roles, bounds or pieces is not supported."""

import json

import pytest
from agent_asking import asking
from tests.conftest import stream

from clew.agents.core.messages import UNSUPPORTED_MARK
from clew.agents.reading.bounds import find_other_bound
from clew.agents.reading.claims import explain_false, find_added
from clew.agents.rules.table import load_table
from clew.engine import KnowledgeBase
from clew.types import Document

COURT = "In 1987 Corby Mills sued Dray Brothers over a weir. The fine was at most 5 pounds."


@pytest.fixture
async def court(base: KnowledgeBase) -> KnowledgeBase:
    await base.take(stream([Document("court", COURT, "Corby Mills", ("court",))]))
    return base


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Dray Brothers sued Corby Mills over a weir.", "the other way round"),
        ("The fine was at least 5 pounds.", "at most 5"),
    ],
)
async def test_a_turned_claim_is_marked_or_dropped_with_the_reason(
    court: KnowledgeBase, said: str, reason: str
) -> None:
    reply = {"enough": True, "sentences": [{"text": said, "sources": [1]}], "short": "Dray"}
    ask = asking(court)
    asked = "What happened between Corby Mills and Dray Brothers?"
    opened = await ask(lambda _: json.dumps(reply), asked, recipe="reader+clew")
    assert opened.answer == f"{said} {UNSUPPORTED_MARK}"
    assert reason in opened.note
    refused = await ask(lambda _: json.dumps(reply), asked, recipe="reader+clew", mode="reject")
    assert refused.verdict == "refused"
    assert reason in refused.missing


async def test_a_true_claim_in_other_words_is_cited(court: KnowledgeBase) -> None:
    said = "Dray Brothers was sued by Corby Mills in 1987."
    reply = {"enough": True, "sentences": [{"text": said, "sources": [1]}], "short": ""}
    answer = await asking(court)(
        lambda _: json.dumps(reply), "Who was sued in 1987?", recipe="reader+clew"
    )
    assert answer.answer == f"{said} [1]"


@pytest.mark.parametrize(
    ("claim", "text", "false"),
    [
        ("Ada Moe taught Jon Vik.", "Ada Moe studied with Jon Vik in Bremen.", True),
        ("Jon Vik taught Ada Moe.", "Ada Moe studied with Jon Vik in Bremen.", False),
        ("Tarn Ltd supplies Ure Ltd with oak.", "Ure Ltd supplies Tarn Ltd with oak.", True),
        ("Tarn Ltd supplies Ure Ltd.", "Tarn Ltd supplies Ure Ltd with oak.", False),
        ("Ada Moe married Jon Vik.", "Jon Vik married Ada Moe in 1901.", False),
        ("All mills burn oil.", "Most mills burn oil, some burn gas.", True),
        ("The oak is kept for 40 days.", "The fir is kept for 9 days, the oak for 40.", False),
        ("The fir is kept for 40 days.", "The fir is kept for 9 days, the oak for 40 days.", True),
        ("南队击败了北队。", "2003年，北队在决赛中击败了南队。", True),
        ("北队击败了南队。", "2003年，北队在决赛中击败了南队。", False),
        ("南队被北队击败。", "2003年，北队击败了南队。", False),
        ("北队被南队击败。", "2003年，北队击败了南队。", True),
    ],
)
def test_who_does_it_and_of_what(claim: str, text: str, *, false: bool) -> None:
    assert bool(explain_false(claim, [text])) == false


@pytest.mark.parametrize(
    ("claim", "text", "said"),
    [
        ("at least 5", "at most 5 men", "at most 5"),
        ("no more than 5", "at most 5 men", ""),
        ("up to 1,000 men", "at most 1000 men", ""),
        ("over 60 km/h", "60 km/h", "60"),
        ("It has 60 seats.", "It has fewer than 60 seats.", "fewer than 60"),
        ("It opened after the war.", "It opened before the war.", "before the war"),
        ("It opened after 1950.", "It opened later than 1950.", ""),
        ("It is open from 9:00.", "It is open until 9:00.", "until 9:00"),
        ("men of 18 or older", "men of 18 or younger", "18 or younger"),
    ],
)
def test_bounds_of_numbers_and_times(claim: str, text: str, said: str) -> None:
    assert find_other_bound(claim, text, load_table("en")).strip(" .") == said


@pytest.mark.parametrize(
    ("claim", "text", "said"),
    [
        ("至少可载8人", "最多可载8人", "最多可载8"),
        ("不超过8人", "最多可载8人", ""),
        ("演出开始后可以退票", "演出开始前可以退票", "开始前"),
        ("18岁以下", "18岁以上", "18岁以上"),
    ],
)
def test_bounds_in_chinese(claim: str, text: str, said: str) -> None:
    assert find_other_bound(claim, text, load_table("zh")) == said


def test_a_piece_that_no_quote_has_is_added() -> None:
    text = "The inn has a pool, a sauna and a library."
    assert find_added("The inn has a pool, a library and a cinema.", text) == ["cinema"]
    assert find_added("The inn has a library and a pool.", text) == []
    assert find_added("旅馆有泳池和影院", "旅馆有泳池和书房") == ["影院"]
