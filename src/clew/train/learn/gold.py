"""Worked episodes for a warm start, made by code from questions whose evidence is known.

Each hop of the evidence becomes a query that is really asked; a hop counts only if the reply says
what it is to find. So the model learns the form and never learns to make things up.
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
    """A task and what is said in each step of it."""

    task: Task
    said: tuple[str, ...]
    episode: Episode


async def worked(environment: Environment, tasks: Sequence[Task]) -> list[Worked]:
    """Play the tasks by their evidence; those whose hops are not found are left out."""
    able = [task for task in tasks if 0 < len(task.evidence) <= environment.protocol.turns]
    running = [Worked(task, (), Episode(task.question)) for task in able]
    longest = max((len(task.evidence) for task in able), default=0)
    for hop in range(longest + 1):
        saying = [_said(one.task, hop) if not one.episode.done else "" for one in running]
        after = await environment.step([one.episode for one in running], saying)
        running = [
            Worked(one.task, (*one.said, text) if text else one.said, episode)
            for one, text, episode in zip(running, saying, after, strict=True)
            if one.episode.done or _supported(one.task, hop, episode)
        ]
    return [one for one in running if one.episode.done]


def _said(task: Task, hop: int) -> str:
    """The step before hop number `hop`; after the last one, the answer."""
    found = task.evidence[:hop]
    if hop == len(task.evidence):
        known = "; ".join(_told(triple) for triple in found) + compared(found)
        return f"<think>{known}. So the answer is {task.answers[0]}.</think>\n" + (
            f"<answer>{task.answers[0]}</answer>"
        )
    head, relation, _ = task.evidence[hop]
    known = f"{_told(found[-1])}. " if found else ""
    need = f"I need the {relation} of {head}."
    return f"<think>{known}{need}</think>\n<query>{relation} of {head}</query>"


def _told(triple: Triple) -> str:
    head, relation, tail = triple
    return f"The {relation} of {head} is {tail}"


def compared(evidence: Sequence[Triple]) -> str:
    """What follows where the last two facts say the same of two things: earlier, or alike.

    Without it a small model learns to name one of the two at random.
    """
    if len(evidence) < 2 or evidence[-2][1] != evidence[-1][1]:
        return ""
    (one, relation, a), (other, _, b) = evidence[-2:]
    if _same(one, other) or _same(a, other):
        return ""  # a chain, not two things side by side
    dates = when(a), when(b)
    if dates[0] is None or dates[1] is None:
        alike = "the same" if normal_answer(a) == normal_answer(b) else "not the same"
        return f". {a} and {b} are {alike} {relation}"
    first = before(dates[0], dates[1])
    if first is None:
        return ""
    pairs = (_begun(evidence, one), dates[0][0]), (_begun(evidence, other), dates[1][0])
    (early, year), (late, then) = pairs if first else pairs[::-1]
    years = f"{year} is before {then}" if year != then else f"both are of {year}"
    return f". {years}, so {early} is the earlier and {late} the later"


def _begun(evidence: Sequence[Triple], name: str) -> str:
    """The thing whose chain led to a name: the film, where the name is its director's."""
    return next((head for head, _, tail in evidence[:-2] if _same(tail, name)), name)


def _same(one: str, other: str) -> bool:
    """Whether two names are one, but for a title or a word in brackets."""
    a, b = set(normal_answer(one).split()), set(normal_answer(other).split())
    return bool(a and b) and (a <= b or b <= a)


def _supported(task: Task, hop: int, episode: Episode) -> bool:
    if hop == len(task.evidence):
        return True
    tail = normal_answer(task.evidence[hop][2]).split()
    seen = set(normal_answer(episode.seen[-1]).split())
    return bool(tail) and all(word in seen for word in tail)


def direct(tasks: Iterable[Task]) -> list[Worked]:
    """Worked episodes without a knowledge base, for R1: evidence is recalled, then the answer."""
    return [
        Worked(task, (said,), Episode(task.question, (read_move(said),), done=True))
        for task in tasks
        if task.evidence
        for said in [_said(task, len(task.evidence))]
    ]


def recorded(
    worked: Sequence[Worked], wording: Wording, reply: int, length: int
) -> list[Trajectory]:
    """As trajectories; each step and each reply is tokenised once. Too long ones are left out."""
    made = []
    for one in worked:
        record = Recorder(wording.opening(one.task.question))
        for number, text in enumerate(one.said):
            for token in wording.tokenizer(text, add_special_tokens=False)["input_ids"]:
                record.drawn(int(token), 0.0)
            if number < len(one.episode.seen):
                seen = one.episode.seen[number]
                record.given(wording.reply(seen, record.ids[-1], reply))
        if len(record.ids) <= length:
            made.append(record.finished(one.episode))
    return made
