"""Equations 13 to 15, by hand."""

import pytest

from clew.agents.graph_r1_protocol import GraphR1Action
from clew.train.core.environment import Episode
from clew.train.rewards import Outcome, answer_reward, format_reward

QUERY = GraphR1Action("query", "q", "t", well_formed=True)
LOOSE = GraphR1Action("query", "q", "t", well_formed=False)
GOLDS = ("Port of Spain", "Trinidad")


def _answer(text: str, formed: bool = True) -> GraphR1Action:
    return GraphR1Action("answer", text, "t", well_formed=formed)


@pytest.mark.parametrize(
    ("moves", "form", "overall"),
    [
        ((), 0.0, -1.0),
        ((LOOSE, _answer("Port of Spain", False)), 0.0, -1.0),
        # One good step: half the form, and the answer is not looked at.
        ((_answer("Port of Spain"),), 0.5, -0.5),
        ((LOOSE, _answer("Port of Spain")), 0.5, -0.5),
        ((QUERY, _answer("Port of Spain")), 1.0, 1.0),
        ((QUERY, QUERY, QUERY, _answer("Berlin")), 1.0, 0.0),
        # Said "port", wanted "port of spain": 2·1/(1+3).
        ((QUERY, _answer("port")), 1.0, 0.5),
        ((QUERY, QUERY), 1.0, 0.0),
    ],
)
def test_the_reward_is_form_then_answer(moves, form, overall):
    episode = Episode("q?", tuple(moves), done=True)
    assert format_reward(episode) == form
    assert Outcome()(episode, GOLDS) == pytest.approx(overall)


def test_the_gold_that_fits_best_counts():
    episode = Episode("q?", (QUERY, _answer("the trinidad!")), done=True)
    assert answer_reward(episode, GOLDS) == 1.0


def test_r1_earns_its_form_in_one_step():
    episode = Episode("q?", (_answer("Trinidad"),), done=True)
    assert Outcome(each=1.0)(episode, GOLDS) == 1.0


def test_users_bring_their_own_score():
    episode = Episode("q?", (QUERY, _answer("four")), done=True)
    assert Outcome(score=lambda said, golds: len(said) / 4)(episode, ()) == 1.0
