"""Fit the models that judge a question by its wording, and test them on wordings held out.

`python -m bench.wordings [--write]`. `breadth`: does it want an account or a list? `courtesy`: does
a clause only address the reader? `steps`: does it want to be told how something is done? Every
wording of `bench/wordings.json` is asked of a few topics, if it has any, and embedded with the
default embedder; a logistic model is fitted on the vectors, for `breadth` and `steps` on the shapes
of the questions as well.
`closing`: is the end of a question courtesy? The ends of questions about topics are not.
`command`: is something to be done, which no document answers? Questions of `breadth` are not, nor
are their words alone, as they are typed into a field of search ("default port lighthouse").
Printed is the share of wordings held out that are told rightly. `--write` stores the weights where
`clew/retrieve/wording.py` reads them.
"""

import argparse
import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import clew.retrieve.wording
from bench.machine import print_result
from clew.config import Settings
from clew.llm.embed import Embedder
from clew.llm.factory import create_embedder
from clew.retrieve.question import tidy_question
from clew.retrieve.question_shape import FUNCTION_WORDS, describe_shape
from clew.text.names import tokenize_question

TOPICS = 6  # that each wording is asked of
RIDGE = 0.3  # pull of the weights towards 0
SHAPED = frozenset(("breadth", "steps", "command"))  # tasks that go by the shape of a question, too
SHAPE_SCALE, SEEN = 0.2, 24  # how much a shape counts, and texts that must have a feature
TAIL_WORDS, TAILS = 4, 400  # words cut from the end of a question, and how many such ends
KEYWORDS, MOST_KEYWORDS = 200, 6  # such searches, and the words of one
STEPS = 30  # of Newton's method
WORDINGS = Path(__file__).with_name("wordings.json")


def ask(wordings: Sequence[str], topics: Sequence[str]) -> list[str]:
    """Return each wording as a question about a few topics, the same ones on every run."""
    choose = random.Random(0)
    if not topics:
        return [*wordings, *map(str.lower, wordings)]
    return [
        tidy_question(wording.replace("{}", topic))
        for wording in wordings
        for topic in choose.sample(list(topics), min(TOPICS, len(topics)))
    ]


def fit(
    vectors: NDArray[np.float32], broad: NDArray[np.float64], *, balanced: bool = False
) -> NDArray[np.float64]:
    """Return the weights of a logistic model, the offset last; both answers may count the same."""
    table = np.hstack([vectors, np.ones((len(vectors), 1))]).astype(np.float64)
    weights, penalty = np.zeros(table.shape[1]), RIDGE * np.eye(table.shape[1])
    share = broad.mean() if balanced else 0.5
    counts = np.where(broad > 0, 0.5 / share, 0.5 / (1 - share))
    penalty[-1, -1] = 1e-6
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        gradient = table.T @ (counts * (chance - broad)) + penalty @ weights
        curve = (table * (counts * chance * (1 - chance))[:, None]).T @ table + penalty
        weights -= np.linalg.solve(curve, gradient)
    return weights


def cut_tails(questions: Sequence[str]) -> list[str]:
    """Return the last words of questions, which say something, however short they are cut."""
    words = [question.rstrip("?.!").lower().split() for question in questions]
    tails = {
        " ".join(one[-count:]) for one in words for count in range(1, TAIL_WORDS + 1) if one[count:]
    }
    return random.Random(0).sample(sorted(tails), min(TAILS, len(tails)))


def list_keywords(questions: Sequence[str]) -> list[str]:
    """Return words of questions as they are typed into a field of search."""
    words = [
        [key for key in tokenize_question(one).keys if key not in FUNCTION_WORDS]
        for one in questions
    ]
    searches = {" ".join(one) for one in words if 1 < len(one) <= MOST_KEYWORDS}
    return random.Random(0).sample(sorted(searches), min(KEYWORDS, len(searches)))


def tabulate_shapes(texts: Sequence[str], names: Sequence[str]) -> NDArray[np.float32]:
    """Return a row for each text with what its shape has of the named features, scaled."""
    column = {name: at for at, name in enumerate(names)}
    table = np.zeros((len(texts), len(names)), np.float32)
    for row, text in zip(table, texts, strict=True):
        for name, value in describe_shape(text).items():
            if name in column:
                row[column[name]] = SHAPE_SCALE * value
    return table


def choose_features(texts: Sequence[str]) -> list[str]:
    """Return the features of shapes that enough texts have."""
    counts = Counter(name for text in texts for name in describe_shape(text))
    return sorted(name for name, count in counts.items() if count >= SEEN)


@dataclass(frozen=True)
class Fitted:
    """The weights of one task, and the share of each answer held out that is right."""

    vector: list[float]
    """One per dimension, the offset last."""
    shape: dict[str, float]
    right: dict[str, float]


def fit_task(
    embed: Embedder,
    said: dict[str, list[str]],
    pieces: Sequence[str] = (),
    *,
    shaped: bool = False,
    balanced: bool = False,
) -> Fitted:
    """Fit one task, with pieces of questions that are to be told as no, and test it."""
    asked = [ask(said[answer], said["topics"]) for answer in ("yes", "no")]
    asked[1] += pieces
    texts = [text for some in asked for text in some]
    names = choose_features(texts) if shaped else []

    def tabulate(some: Sequence[str]) -> NDArray[np.float32]:
        return np.hstack([asyncio.run(embed(some, role="query")), tabulate_shapes(some, names)])

    weights = fit(
        tabulate(texts),
        np.repeat([1.0, 0.0], [len(some) for some in asked]),
        balanced=balanced,
    )
    right = {}
    for answer in ("yes", "no"):
        held = ask(said[f"held_out_{answer}"], said["held_out_topics"])
        logits = tabulate(held) @ weights[:-1] + weights[-1]
        right[answer] = float(((logits > 0) == (answer == "yes")).mean())
    vector, shape = np.delete(weights, slice(embed.dim, -1)), weights[embed.dim : -1]
    kept = {
        name: round(SHAPE_SCALE * float(one), 3) for name, one in zip(names, shape, strict=True)
    }
    return Fitted([round(float(one), 3) for one in vector], kept, right)


def join_breadth(orders: dict[str, list[str]], broad: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return orders to do something, which no question is, whether it wants breadth or not."""
    asked = {  # every other wording: orders are few
        "no": [*orders["no"], *broad["yes"][::2], *broad["no"][::2]],
        "held_out_no": [
            *orders["held_out_no"],
            *broad["held_out_yes"],
            *broad["held_out_no"],
        ],
    }
    topics = {name: broad[name] for name in ("topics", "held_out_topics")}
    return {**orders, **asked, **topics}


def main() -> None:
    """Fit, test, print, and store if asked to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    embed = create_embedder(Settings().embed, Settings().cache)
    shapes: dict[str, dict[str, float]] = {}
    stored: dict[str, object] = {"embedder": embed.name.partition("/")[0], "shapes": shapes}
    figures = {}
    said = json.loads(WORDINGS.read_text(encoding="utf-8"))
    broad = said["breadth"]
    asked = ask([*broad["yes"], *broad["no"]], broad["topics"])
    said["closing"] = said["courtesy"]
    said["command"] = join_breadth(said["command"], broad)
    for task, wordings in said.items():
        pieces = list[str]()
        if task == "closing":
            pieces = cut_tails(asked)
        elif task == "command":
            pieces = list_keywords(ask(wordings["no"], wordings["topics"]))
        balanced = task == "closing"
        fitted = fit_task(embed, wordings, pieces, shaped=task in SHAPED, balanced=balanced)
        stored[task], figures[task] = fitted.vector, fitted.right
        if fitted.shape:
            shapes[task] = fitted.shape
    print_result(
        "wordings", figures, {task: sum(map(len, one.values())) for task, one in said.items()}
    )
    if write:
        beside = Path(clew.retrieve.wording.__file__).with_name("wording_weights.json")
        beside.write_text(json.dumps(stored) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
