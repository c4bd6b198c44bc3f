"""Demonstrations for the warm start, generated from questions with gold triples.

Each gold triple becomes a query to the real retriever; an episode is used only if every reply
contains the triple's tail. So the model learns the format without learning to hallucinate.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clew.agents.graph_r1 import read_move
from clew.agents.planning.values import before, when
from clew.evaluate.metrics import normal_answer
from clew.train.environment import Environment, Episode
from clew.train.questions import Task, Triple
from clew.train.trajectory import Recorder, Trajectory
from clew.train.wording import Wording


@dataclass(frozen=True)
class Worked:
    """A task, the text of each step, and the finished episode."""

    task: Task
    said: tuple[str, ...]
    episode: Episode


async def worked(environment: Environment, tasks: Sequence[Task]) -> list[Worked]:
    """Play the tasks along their gold triples; drop those whose hops are not retrieved."""
    playable = [task for task in tasks if 0 < len(task.evidence) <= environment.protocol.turns]
    running = [Worked(task, (), Episode(task.question)) for task in playable]
    longest = max((len(task.evidence) for task in playable), default=0)
    for hop in range(longest + 1):
        texts = [_said(one.task, hop) if not one.episode.done else "" for one in running]
        episodes = await environment.step([one.episode for one in running], texts)
        running = [
            Worked(one.task, (*one.said, text) if text else one.said, episode)
            for one, text, episode in zip(running, texts, episodes, strict=True)
            if one.episode.done or _supported(one.task, hop, episode)
        ]
    return [one for one in running if one.episode.done]


def _said(task: Task, hop: int) -> str:
    """Write the step that queries hop `hop`; after the last hop, the answer step."""
    found = task.evidence[:hop]
    if hop == len(task.evidence):
        summary = "; ".join(_told(triple) for triple in found) + compared(found)
        return f"<think>{summary}. So the answer is {task.answers[0]}.</think>\n" + (
            f"<answer>{task.answers[0]}</answer>"
        )
    head, relation, _ = task.evidence[hop]
    summary = f"{_told(found[-1])}. " if found else ""
    need = f"I need the {relation} of {head}."
    return f"<think>{summary}{need}</think>\n<query>{relation} of {head}</query>"


def _told(triple: Triple) -> str:
    head, relation, tail = triple
    return f"The {relation} of {head} is {tail}"


def compared(evidence: Sequence[Triple]) -> str:
    """Compare the last two facts if they state the same relation of two entities.

    Says which is earlier, or whether they are the same; without it a small model guesses.
    """
    if len(evidence) < 2 or evidence[-2][1] != evidence[-1][1]:
        return ""
    (one, relation, a), (other, _, b) = evidence[-2:]
    if _same(one, other) or _same(a, other):
        return ""  # a chain, not a comparison
    dates = when(a), when(b)
    if dates[0] is None or dates[1] is None:
        alike = "the same" if normal_answer(a) == normal_answer(b) else "not the same"
        return f". {a} and {b} are {alike} {relation}"
    first = before(dates[0], dates[1])
    if first is None:
        return ""
    dated = (_begun(evidence, one), dates[0][0]), (_begun(evidence, other), dates[1][0])
    (early, year), (late, then) = dated if first else dated[::-1]
    years = f"{year} is before {then}" if year != then else f"both are of {year}"
    return f". {years}, so {early} is the earlier and {late} the later"


def _begun(evidence: Sequence[Triple], name: str) -> str:
    """Return the entity whose chain led to a name: the film, for the name of its director."""
    return next((head for head, _, tail in evidence[:-2] if _same(tail, name)), name)


def _same(one: str, other: str) -> bool:
    """Whether two names match except for a title or a word in brackets."""
    a, b = set(normal_answer(one).split()), set(normal_answer(other).split())
    return bool(a and b) and (a <= b or b <= a)


def _supported(task: Task, hop: int, episode: Episode) -> bool:
    if hop == len(task.evidence):
        return True
    tail = normal_answer(task.evidence[hop][2]).split()
    seen = set(normal_answer(episode.seen[-1]).split())
    return bool(tail) and all(word in seen for word in tail)


def direct(tasks: Iterable[Task]) -> list[Worked]:
    """Build demonstrations without retrieval, for R1: recall the facts, then answer."""
    return [
        Worked(task, (said,), Episode(task.question, (read_move(said),), done=True))
        for task in tasks
        if task.evidence
        for said in [_said(task, len(task.evidence))]
    ]


def recorded(
    worked: Sequence[Worked], wording: Wording, reply: int, length: int
) -> list[Trajectory]:
    """Tokenize demonstrations into trajectories; those over `length` tokens are dropped."""
    trajectories = []
    for one in worked:
        record = Recorder(wording.opening(one.task.question))
        for number, text in enumerate(one.said):
            for token in wording.tokenizer(text, add_special_tokens=False)["input_ids"]:
                record.drawn(int(token), 0.0)
            if number < len(one.episode.seen):
                seen = one.episode.seen[number]
                record.given(wording.reply(seen, record.ids[-1], reply))
        if len(record.ids) <= length:
            trajectories.append(record.finished(one.episode))
    return trajectories
