"""Episodes in an environment without a model."""

import pytest

from clew.agents.graph_r1_protocol import FINAL_ANSWER_REQUEST, FORMAT_REMINDER, GraphR1Protocol
from clew.errors import ModelError
from clew.train.core.environment import Environment, Episode, retrieve_nothing


def _query(text: str) -> str:
    return f"<think>t</think><query>{text}</query>"


ANSWER = "<think>t</think><answer>done</answer>"


def _echo(queries):
    return [f"about {query}" for query in queries]


async def test_an_episode_goes_from_query_to_answer():
    world = Environment(_echo, GraphR1Protocol(turns=2))
    (episode,) = world.reset(["q?"])
    (episode,) = await world.step([episode], [_query("a")])
    assert "about a" in episode.reply and (episode.asked, episode.done) == (1, False)
    (episode,) = await world.step([episode], [ANSWER])
    assert (episode.answer, episode.done, episode.reply) == ("done", True, "")
    (same,) = await world.step([episode], [_query("too late")])
    assert same == episode


async def test_all_queries_of_a_step_are_one_batch():
    batches = []

    async def retrieve(queries):
        batches.append(list(queries))
        return _echo(queries)

    world = Environment(retrieve, GraphR1Protocol(turns=3))
    episodes = world.reset(["1", "2", "3", "4"])
    after = await world.step(episodes, [_query("a"), ANSWER, "chatter", _query("b")])
    assert batches == [["a", "b"]]
    assert [one.done for one in after] == [False, True, False, False]
    assert after[2].reply == FORMAT_REMINDER
    assert "about b" in after[3].reply


async def test_past_the_limit_only_an_answer_counts():
    world = Environment(_echo, GraphR1Protocol(turns=2))
    (episode,) = world.reset(["q?"])
    for text in ("a", "b"):
        assert not episode.done
        (episode,) = await world.step([episode], [_query(text)])
    assert episode.reply.endswith(FINAL_ANSWER_REQUEST)
    (refused,) = await world.step([episode], [_query("c")])
    assert (refused.done, refused.answer, refused.asked) == (True, "", 2)
    (answered,) = await world.step([episode], [ANSWER])
    assert answered.answer == "done"


async def test_chatter_uses_turns_up():
    world = Environment(_echo, GraphR1Protocol(turns=2))
    (episode,) = world.reset(["q?"])
    steps = 0
    while not episode.done:
        (episode,) = await world.step([episode], ["hm"])
        steps += 1
    assert steps == 3 and episode.asked == 0


async def test_r1_has_one_step():
    world = Environment(retrieve_nothing, GraphR1Protocol(turns=0))
    (episode,) = await world.step(world.reset(["q?"]), [_query("a")])
    assert (episode.done, episode.answer) == (True, "")


async def test_a_retriever_that_loses_a_query_is_named():
    world = Environment(lambda queries: [], GraphR1Protocol())
    with pytest.raises(ModelError, match="0 texts for 1 queries"):
        await world.step([Episode("q")], [_query("a")])
