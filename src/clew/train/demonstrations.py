"""Demonstrations for the warm start, generated from questions with gold triples.

Each gold triple becomes a query to the real retriever; an episode is used only if every reply
contains the triple's tail. So the model learns the format without learning to hallucinate.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clew.agents.graph_r1_protocol import parse_action
from clew.evaluate.metrics.answers import normalise_answer
from clew.text.dates import is_before, parse_date
from clew.train.core.chat_tokens import ChatTokenizer
from clew.train.core.environment import Environment, Episode
from clew.train.core.trajectory import Trajectory, TrajectoryRecorder
from clew.train.questions import Task, Triple


@dataclass(frozen=True)
class Demonstration:
    """A task, the text of each step, and the finished episode."""

    task: Task
    steps: tuple[str, ...]
    episode: Episode


async def build_demonstrations(
    environment: Environment, tasks: Sequence[Task]
) -> list[Demonstration]:
    """Play the tasks along their gold triples; drop those whose hops are not retrieved."""
    playable = [task for task in tasks if 0 < len(task.evidence) <= environment.protocol.turns]
    running = [Demonstration(task, (), Episode(task.question)) for task in playable]
    longest = max((len(task.evidence) for task in playable), default=0)
    for hop in range(longest + 1):
        texts = [_write_step(one.task, hop) if not one.episode.done else "" for one in running]
        episodes = await environment.step([one.episode for one in running], texts)
        running = [
            Demonstration(one.task, (*one.steps, text) if text else one.steps, episode)
            for one, text, episode in zip(running, texts, episodes, strict=True)
            if one.episode.done or _reply_has_tail(one.task, hop, episode)
        ]
    return [one for one in running if one.episode.done]


def _write_step(task: Task, hop: int) -> str:
    """Write the step that queries hop `hop`; after the last hop, the answer step."""
    found = task.evidence[:hop]
    if hop == len(task.evidence):
        summary = "; ".join(_state_fact(triple) for triple in found) + compare_facts(found)
        return f"<think>{summary}. So the answer is {task.answers[0]}.</think>\n" + (
            f"<answer>{task.answers[0]}</answer>"
        )
    head, relation, _ = task.evidence[hop]
    summary = f"{_state_fact(found[-1])}. " if found else ""
    need = f"I need the {relation} of {head}."
    return f"<think>{summary}{need}</think>\n<query>{relation} of {head}</query>"


def _state_fact(triple: Triple) -> str:
    head, relation, tail = triple
    return f"The {relation} of {head} is {tail}"


def compare_facts(evidence: Sequence[Triple]) -> str:
    """Compare the last two facts if they state the same relation of two entities.

    Says which is earlier, or whether they are the same; without it a small model guesses.
    """
    if len(evidence) < 2 or evidence[-2][1] != evidence[-1][1]:
        return ""
    (one, relation, a), (other, _, b) = evidence[-2:]
    if _is_same_name(one, other) or _is_same_name(a, other):
        return ""  # a chain, not a comparison
    dates = parse_date(a), parse_date(b)
    if dates[0] is None or dates[1] is None:
        alike = "the same" if normalise_answer(a) == normalise_answer(b) else "not the same"
        return f". {a} and {b} are {alike} {relation}"
    first = is_before(dates[0], dates[1])
    if first is None:
        return ""
    dated = (_chain_start(evidence, one), dates[0][0]), (_chain_start(evidence, other), dates[1][0])
    (early, year), (late, then) = dated if first else dated[::-1]
    years = f"{year} is before {then}" if year != then else f"both are of {year}"
    return f". {years}, so {early} is the earlier and {late} the later"


def _chain_start(evidence: Sequence[Triple], name: str) -> str:
    """Return the entity whose chain led to a name: the film, for the name of its director."""
    return next((head for head, _, tail in evidence[:-2] if _is_same_name(tail, name)), name)


def _is_same_name(one: str, other: str) -> bool:
    """Whether two names match except for a title or a word in brackets."""
    a, b = set(normalise_answer(one).split()), set(normalise_answer(other).split())
    return bool(a and b) and (a <= b or b <= a)


def _reply_has_tail(task: Task, hop: int, episode: Episode) -> bool:
    if hop == len(task.evidence):
        return True
    tail = normalise_answer(task.evidence[hop][2]).split()
    seen = set(normalise_answer(episode.replies[-1]).split())
    return bool(tail) and all(word in seen for word in tail)


def build_closed_book_demonstrations(tasks: Iterable[Task]) -> list[Demonstration]:
    """Build demonstrations without retrieval, for R1: recall the facts, then answer."""
    return [
        Demonstration(task, (text,), Episode(task.question, (parse_action(text),), done=True))
        for task in tasks
        if task.evidence
        for text in [_write_step(task, len(task.evidence))]
    ]


def tokenize_demonstrations(
    demonstrations: Sequence[Demonstration], chat_tokenizer: ChatTokenizer, reply: int, length: int
) -> list[Trajectory]:
    """Tokenize demonstrations into trajectories; those over `length` tokens are dropped."""
    trajectories = []
    for one in demonstrations:
        record = TrajectoryRecorder(chat_tokenizer.encode_prompt(one.task.question))
        for number, text in enumerate(one.steps):
            for token in chat_tokenizer.tokenizer(text, add_special_tokens=False)["input_ids"]:
                record.append_generated(int(token), 0.0)
            if number < len(one.episode.replies):
                seen = one.episode.replies[number]
                record.append_reply(chat_tokenizer.encode_reply(seen, record.ids[-1], reply))
        if len(record.ids) <= length:
            trajectories.append(record.to_trajectory(one.episode))
    return trajectories
