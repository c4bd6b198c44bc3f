"""Worked episodes: only what the knowledge base really says is taught."""

from clew.agents.graph_r1_protocol import GraphR1Protocol
from clew.train.core.environment import Environment
from clew.train.demonstrations import (
    build_closed_book_demonstrations,
    build_demonstrations,
    compare_facts,
)
from clew.train.questions import Task

TWO_HOPS = Task(
    "a",
    "Where was the mother of Ann born?",
    ("Oslo",),
    (("Ann", "mother", "Bea"), ("Bea", "place of birth", "Oslo")),
)


def _knows(facts):
    def retrieve(queries):
        return [facts.get(query, "Nobody knows.") for query in queries]

    return retrieve


async def test_each_hop_is_asked_and_the_answer_follows():
    facts = {"mother of Ann": "Bea is Ann's mother.", "place of birth of Bea": "Born in Oslo."}
    (one,) = await build_demonstrations(
        Environment(_knows(facts), GraphR1Protocol(turns=3)), [TWO_HOPS]
    )
    assert [move.kind for move in one.episode.moves] == ["query", "query", "answer"]
    assert all(move.well_formed for move in one.episode.moves)
    assert one.episode.answer == "Oslo"
    assert "Born in Oslo." in one.episode.replies[1]
    assert len(one.steps) == 3 and "Bea" in one.steps[1]


async def test_an_episode_whose_hop_is_not_found_is_left_out():
    facts = {"mother of Ann": "Bea is Ann's mother."}
    assert (
        await build_demonstrations(Environment(_knows(facts), GraphR1Protocol(turns=3)), [TWO_HOPS])
        == []
    )


async def test_more_hops_than_turns_and_no_evidence_are_left_out():
    world = Environment(_knows({}), GraphR1Protocol(turns=1))
    assert await build_demonstrations(world, [TWO_HOPS, Task("b", "q", ("a",))]) == []


def test_r1_recalls_and_answers_in_one_step():
    (one,) = build_closed_book_demonstrations([TWO_HOPS, Task("b", "q", ("a",))])
    assert one.episode.answer == "Oslo" and one.episode.moves[0].well_formed


def test_what_two_dates_or_two_names_tell_is_said_before_the_answer():
    born = [("Ann", "date of birth", "2 May 1911"), ("Bea", "date of birth", "August 1, 1902")]
    assert compare_facts(born) == ". 1902 is before 1911, so Bea is the earlier and Ann the later"
    assert "Ann is the earlier" in compare_facts(
        born[::-1][:1] + [("Ann", "date of birth", "1877")]
    )
    assert "both are of 1911" in compare_facts([born[0], ("Cy", "date of birth", "3 May 1911")])
    assert compare_facts([born[0], ("Cy", "date of birth", "1911")]) == ""  # they do not tell
    land = [("Ann", "country", "Norway"), ("Bea", "country", "Chile")]
    assert compare_facts(land).endswith("are not the same country")
    assert compare_facts([land[0], ("Cy", "country", "norway")]).endswith("are the same country")
    assert compare_facts(TWO_HOPS.evidence) == compare_facts(born[:1]) == ""
    film = [("F", "director", "Ann"), ("G", "director", "Bea (director)"), *born]
    assert compare_facts(film).endswith("so G is the earlier and F the later")
    assert compare_facts([("Ann", "mother", "Bea"), ("Bea", "mother", "Cy")]) == ""
