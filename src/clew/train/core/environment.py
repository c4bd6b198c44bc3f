"""The knowledge base as a multi-turn reinforcement learning environment, many episodes at once.

Episodes are immutable values. `reset` makes one per question; `step` takes the model's text for
each and returns the next values. Nothing is random: the same texts give the same episodes.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable

from clew.agents.graph_r1_protocol import GraphR1Action, GraphR1Protocol, parse_action
from clew.errors import ModelError

Retriever = Callable[[Sequence[str]], Sequence[str] | Awaitable[Sequence[str]]]
"""Maps queries to one knowledge text each; sync or async."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A question with the moves and replies so far."""

    question: str
    moves: tuple[GraphR1Action, ...] = ()
    replies: tuple[str, ...] = ()
    """The environment's reply after each move."""
    asked: int = 0
    """Number of queries so far."""
    done: bool = False
    truncated: bool = False
    """Ended by the token limit, not by an answer or the turn limit."""

    @property
    def answer(self) -> str:
        """The final answer; empty if there is none."""
        last = self.moves[-1] if self.moves else None
        return last.text if last is not None and last.kind == "answer" else ""

    @property
    def reply(self) -> str:
        """The environment's last reply; empty when the episode is over."""
        return self.replies[-1] if self.replies and not self.done else ""


@dataclass(frozen=True)
class Environment:
    """Runs the think–query–answer protocol over a retriever."""

    retrieve: Retriever
    protocol: GraphR1Protocol = GraphR1Protocol()

    def reset(self, questions: Sequence[str]) -> list[Episode]:
        """Start one episode per question."""
        return [Episode(question) for question in questions]

    async def step(self, episodes: Sequence[Episode], outputs: Sequence[str]) -> list[Episode]:
        """Advance each episode by the model's output; all queries are retrieved in one batch."""
        moves = [parse_action(text) for text in outputs]
        querying = [
            at
            for at, (episode, move) in enumerate(zip(episodes, moves, strict=True))
            if move.kind == "query" and episode.asked < self.protocol.turns and not episode.done
        ]
        texts = await self._retrieve_texts([moves[at].text for at in querying])
        by_position = dict(zip(querying, texts, strict=True))
        return [
            self._advance_episode(episode, move, by_position.get(at))
            for at, (episode, move) in enumerate(zip(episodes, moves, strict=True))
        ]

    async def _retrieve_texts(self, queries: list[str]) -> Sequence[str]:
        if not queries:
            return []
        found = self.retrieve(queries)
        texts = await found if isawaitable(found) else found
        if len(texts) != len(queries):
            raise ModelError(
                f"the retriever returned {len(texts)} texts for {len(queries)} queries; it must "
                "return one per query, empty if nothing is found"
            )
        return texts

    def _advance_episode(
        self, episode: Episode, move: GraphR1Action, knowledge: str | None
    ) -> Episode:
        if episode.done:
            return episode
        moves = (*episode.moves, move)
        if move.kind == "answer" or len(moves) > self.protocol.turns:
            # At the turn limit a further query ends the episode without an answer.
            return replace(episode, moves=moves, done=True)
        asked = episode.asked + (move.kind == "query")
        # A step without a valid move uses up a turn too, or an episode might never end.
        reply = (
            self.protocol.format_knowledge(knowledge, len(moves))
            if knowledge is not None
            else self.protocol.format_reminder(len(moves))
        )
        return replace(episode, moves=moves, replies=(*episode.replies, reply), asked=asked)


def retrieve_nothing(queries: Sequence[str]) -> list[str]:
    """Return empty texts: the retriever of R1, which has no knowledge base."""
    return ["" for _ in queries]
