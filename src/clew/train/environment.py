"""The knowledge base as a multi-turn environment, many episodes at once.

An episode is a value. `reset` makes one per question; `step` takes what the model said in each
and returns the next values. Nothing here draws at random, so the same words give the same episodes.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable

from clew.agents.graph_r1 import Move, Protocol, read_move
from clew.errors import ModelError

Retriever = Callable[[Sequence[str]], Sequence[str] | Awaitable[Sequence[str]]]
"""Queries in, one knowledge text each out; sync or async."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A question and all that was said about it so far."""

    question: str
    moves: tuple[Move, ...] = ()
    seen: tuple[str, ...] = ()
    """What the environment replied after each move."""
    asked: int = 0
    """Queries so far."""
    done: bool = False
    cut: bool = False
    """Ended for want of room, not by an answer or the turn limit."""

    @property
    def answer(self) -> str:
        """The final answer; empty when there is none."""
        last = self.moves[-1] if self.moves else None
        return last.text if last is not None and last.kind == "answer" else ""

    @property
    def reply(self) -> str:
        """What the environment said last."""
        return self.seen[-1] if self.seen and not self.done else ""


@dataclass(frozen=True)
class Environment:
    """Any retriever under the protocol."""

    retrieve: Retriever
    protocol: Protocol = Protocol()

    def reset(self, questions: Sequence[str]) -> list[Episode]:
        """Fresh episodes."""
        return [Episode(question) for question in questions]

    async def step(self, episodes: Sequence[Episode], said: Sequence[str]) -> list[Episode]:
        """Let each episode go on by what was said in it; all its queries are one batch."""
        moves = [read_move(text) for text in said]
        asking = [
            at
            for at, (episode, move) in enumerate(zip(episodes, moves, strict=True))
            if move.kind == "query" and episode.asked < self.protocol.turns and not episode.done
        ]
        found = await self._found([moves[at].text for at in asking])
        known = dict(zip(asking, found, strict=True))
        return [
            self._next(episode, move, known.get(at))
            for at, (episode, move) in enumerate(zip(episodes, moves, strict=True))
        ]

    async def _found(self, queries: list[str]) -> Sequence[str]:
        if not queries:
            return []
        found = self.retrieve(queries)
        texts = await found if isawaitable(found) else found
        if len(texts) != len(queries):
            raise ModelError(
                f"the retriever gave {len(texts)} texts for {len(queries)} queries: it must give "
                "one for each, empty where it finds nothing"
            )
        return texts

    def _next(self, episode: Episode, move: Move, found: str | None) -> Episode:
        if episode.done:
            return episode
        moves = (*episode.moves, move)
        if move.kind == "answer" or len(moves) > self.protocol.turns:
            # Past the limit only an answer counts; a further query ends the episode unanswered.
            return replace(episode, moves=moves, done=True)
        asked = episode.asked + (move.kind == "query")
        # A step without a move uses up a turn too, or a model could chatter for ever.
        reply = (
            self.protocol.knowledge(found, len(moves))
            if found is not None
            else self.protocol.nudge(len(moves))
        )
        return replace(episode, moves=moves, seen=(*episode.seen, reply), asked=asked)


def nothing(queries: Sequence[str]) -> list[str]:
    """The retriever of R1: there is no knowledge base."""
    return ["" for _ in queries]
