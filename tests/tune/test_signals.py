"""`clew tune` chooses how much walk, meaning, words and best sentence count."""

from clew.adapters import load_tuning
from clew.engine import KnowledgeBase
from clew.evaluate.datasets import Question
from clew.tune.run import tune
from clew.types import Document
from conftest import document, stream

COUNT = 16


def silent(stage: str, done: int, total: int) -> None:
    """Nobody listens."""


def town(n: int) -> str:
    return f"Osmere{chr(97 + n % COUNT)} Vale"


def towns_and_logs() -> list[Document]:
    """Pages about towns that name each other, and logs that name none of them."""
    towns = [
        document(
            f"town{n}",
            " ".join(f"{town(n)} reports to {town(n + k)} about its log." for k in range(1, 9)),
            town(n),
        )
        for n in range(COUNT)
    ]
    logs = [document(f"log{n}", f"Gauge gauge{n}x stood at mark{n}y.") for n in range(COUNT)]
    return [*towns, *logs]


def asked(n: int) -> Question:
    return Question(f"q{n}", f"Which gauge{n}x reports mark{n}y to {town(n)}?", gold=(f"log{n}",))


async def signals(base: KnowledgeBase, question: str) -> str:
    results = await base.search(question)
    return next(step.output for step in results.trace if step.step == "signals")


async def test_weights_that_find_more_are_kept_and_shown(base: KnowledgeBase) -> None:
    await base.take(stream(towns_and_logs()))
    question = asked(1).text
    assert (await signals(base, question)).startswith("walk 1.00")
    learnt = await tune(base, [asked(n) for n in range(COUNT)], silent)
    assert learnt.signals is not None and learnt.signals.used
    assert learnt.signals.after > learnt.signals.before
    said = await signals(base, question)
    assert "tuned" in said and not said.startswith("walk 1.00")
    assert base.embed is not None
    stored = (await load_tuning(base.store, base.embed.name)).signals
    assert stored is not None and stored.walk == learnt.signals.walk


async def test_weights_that_find_no_more_are_not_kept(valley: KnowledgeBase) -> None:
    questions = [
        Question(f"q{n}", "Where was the designer of Marrow Bridge born?", gold=("bridge",))
        for n in range(8)
    ]
    learnt = await tune(valley, questions, silent)
    assert learnt.signals is not None and not learnt.signals.used
    assert learnt.signals.before == learnt.signals.after
    assert "tuned" not in await signals(valley, questions[0].text)
