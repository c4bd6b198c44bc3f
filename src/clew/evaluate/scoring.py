"""Compute the values of all metrics from a recipe's output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clew.agents.messages import strip_marks
from clew.evaluate.datasets import Question, to_corpus_id
from clew.evaluate.judges import Judge, JudgeError, zero_scores
from clew.evaluate.metrics.answers import (
    choice_accuracy,
    choice_f1,
    is_sentence,
    reversion_accuracy,
    set_f1,
    statement_recall,
    sub_exact_match,
)
from clew.evaluate.metrics.grounding import groundedness, score_citations
from clew.evaluate.metrics.registry import (
    CHOICE_METRICS,
    FULL_METRICS,
    GRAPH_METRICS,
    GROUND_METRICS,
    JUDGED_METRICS,
    LIKE_GOLD_METRICS,
    REFUSAL_METRICS,
    SET_METRICS,
    SHORT_METRICS,
    STATEMENT_RECALL,
    get_answer_ranking_metric,
    get_ranking_metric,
    is_text_metric,
    needs_answers,
    recall,
    statements_depth,
    step_count,
)
from clew.llm.embed import Embedder
from clew.types import Citation, Passage

_SIMILARITY_PASSAGES = 5  # passages compared by R-S: Graph-R1's top-k


@dataclass(frozen=True)
class RecipeOutput:
    """Passages, ranking and answer of a recipe, as the metrics use them."""

    found: tuple[str, ...] = ()
    ranked: tuple[str, ...] = ()
    answer: str = ""
    short: str = ""
    refused: bool = False
    answered: bool = False
    """Whether an answer was requested."""
    passages: tuple[Passage, ...] = ()
    citations: tuple[Citation, ...] = ()
    retrievals: tuple[tuple[str, ...], ...] = ()
    """Documents of each retrieval of an agent, in order."""
    subgraph: tuple[str, ...] = ()
    """Names of all entities found, and of those on the paths found."""
    on_paths: tuple[str, ...] = ()

    def scored_text(self) -> str:
        """Return the whole answer without anything that we wrote into it; empty for a refusal."""
        return "" if self.refused else strip_marks(self.answer)

    def named_answer(self) -> str:
        """Return the short answer, else the whole text; empty for a refusal."""
        return ("" if self.refused else strip_marks(self.short)) or self.scored_text()


@dataclass(frozen=True)
class MetricValues:
    """Values by metric, and the reasons of missing ones."""

    values: dict[str, float] = field(default_factory=dict)
    unscored: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scorer:
    """Computes metrics, with judge and embeddings only where a metric needs them."""

    metrics: Sequence[str]
    judge: Judge | None = None
    embed: Embedder | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    """Gold document → its text, for R-S and E-Score."""
    _vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict, repr=False)

    async def score(self, question: Question, outcome: RecipeOutput) -> MetricValues:
        """Compute every metric that this question has gold for."""
        scored = MetricValues()
        distinct = list(dict.fromkeys(outcome.found))
        for name in self.metrics:
            if needs_answers(name) and not outcome.answered:
                continue
            ranking = get_ranking_metric(name)
            if ranking is not None:
                if question.gold:
                    scored.values[name] = ranking(distinct, _list_gold(question))
            elif steps := step_count(name):
                if question.gold:
                    seen = [doc for docs in outcome.retrievals[:steps] for doc in docs]
                    scored.values[name] = recall(seen, _list_gold(question))
            elif name in JUDGED_METRICS:
                await self._score_with_judge(name, question, outcome, scored)
            elif name == "r-s":
                await self._score_similarity(question, outcome, scored)
            else:
                value = _compute_metric(name, question, outcome)
                if value is not None:
                    scored.values[name] = value
        return scored

    def zero_values(self, question: Question, answered: bool) -> dict[str, float]:
        """Return the scores of a failed question: 0 for every metric that it has gold for."""
        found: dict[str, float] = {}
        for name in self.metrics:
            if (needs_answers(name) and not answered) or not self._applies(name, question):
                continue
            if name not in JUDGED_METRICS:
                found[name] = 0.0
            elif self.judge is not None:
                found |= zero_scores(name)
        return found

    def _applies(self, name: str, question: Question) -> bool:
        if get_ranking_metric(name) is not None or step_count(name):
            return bool(question.gold)
        if name == "r-s":
            return bool(self._gold_texts(question))
        if name in JUDGED_METRICS:
            return self._can_judge(name, question)
        return _compute_metric(name, question, RecipeOutput(answered=True)) is not None

    def _can_judge(self, name: str, question: Question) -> bool:
        return bool(question.answers) and (name != "e-score" or bool(self._gold_texts(question)))

    async def _score_with_judge(
        self, name: str, question: Question, outcome: RecipeOutput, scored: MetricValues
    ) -> None:
        if not self._can_judge(name, question):
            return
        if self.judge is None:
            scored.unscored[name] = "no judge: set a model, or judge under [models] in clew.toml"
            return
        answer, short = outcome.scored_text(), outcome.named_answer()
        if question.answerable and not (answer or short):
            scored.values.update(zero_scores(name))  # an empty answer needs no judge
            return
        gold = self._gold_texts(question)
        try:
            scored.values.update(await self.judge.score(name, question, answer, short, gold))
        except JudgeError as error:
            scored.unscored[name] = str(error)

    async def _score_similarity(
        self, question: Question, outcome: RecipeOutput, scored: MetricValues
    ) -> None:
        """Compute R-S: cosine of the mean vectors of found passages and gold texts.

        Graph-R1 (eq. 35) embeds each side as one text, which a short context window would cut.
        """
        gold = self._gold_texts(question)
        if not gold:
            return
        if self.embed is None:
            scored.unscored["r-s"] = "no embedder"
            return
        texts = [passage.text for passage in outcome.passages[:_SIMILARITY_PASSAGES]]
        if not texts:
            scored.values["r-s"] = 0.0
            return
        missing = [t for t in dict.fromkeys([*texts, *gold]) if t not in self._vectors]
        if missing:
            self._vectors.update(zip(missing, await self.embed(missing), strict=True))
        sides = [np.mean([self._vectors[t] for t in side], axis=0) for side in (texts, gold)]
        lengths = np.linalg.norm(sides[0]) * np.linalg.norm(sides[1])
        scored.values["r-s"] = float(sides[0] @ sides[1] / (lengths or 1.0))

    def _gold_texts(self, question: Question) -> list[str]:
        """Return the gold evidence as texts: the data set's, else the gold documents."""
        own = list(question.evidence)
        return own or [self.texts[doc] for doc in _list_gold(question) if doc in self.texts]


def _compute_metric(name: str, question: Question, outcome: RecipeOutput) -> float | None:
    """Compute a metric that needs no model; None if it does not apply to the question."""
    answer, short = outcome.scored_text(), outcome.named_answer()
    if name == "refusal" or name in REFUSAL_METRICS:
        return _score_refusal(name, question, outcome)
    if name == "reversion":
        return reversion_accuracy(answer, question.originals) if question.originals else None
    if name in GROUND_METRICS:
        return _score_grounding(name, outcome)
    if name == STATEMENT_RECALL:
        return statement_recall([answer], question.statements) if question.statements else None
    if depth := statements_depth(name):
        texts = [passage.text for passage in outcome.passages[:depth]]
        return statement_recall(texts, question.statements) if question.statements else None
    if not question.answers:
        return None
    if name in CHOICE_METRICS:
        measure = choice_accuracy if name == "choice" else choice_f1
        return measure(short, question.answers, question.options) if question.options else None
    if name in GRAPH_METRICS:
        names = outcome.on_paths if name.startswith("path") else outcome.subgraph
        return GRAPH_METRICS[name](names, question.answer_groups())
    if is_text_metric(name):
        # Letters are compared as a choice, never as words.
        return None if question.options else _score_text(name, question, answer, short)
    return _score_ranking(name, outcome, question, short)


def _score_text(name: str, question: Question, answer: str, short: str) -> float:
    """Compare with the gold answers: any of them is right, and so is the list of all."""
    groups = question.answer_groups()
    if name in SET_METRICS:
        return SET_METRICS[name](short, groups)
    everything = [", ".join(group[0] for group in groups)] if len(groups) > 1 else []
    if name in SHORT_METRICS:
        listed = len(groups) > 1 and set_f1(short, groups) == 1.0
        # A sentence is compared with what was written, a name or a value with what was named.
        told = all(map(is_sentence, question.answers)) and name in LIKE_GOLD_METRICS
        return 1.0 if listed else SHORT_METRICS[name](answer if told else short, question.answers)
    # A response names its answer apart from its sentences: either may have what was asked for.
    golds = [*question.answers, *everything]
    return max(FULL_METRICS[name](text, golds) for text in (answer, short))


def _score_refusal(name: str, question: Question, outcome: RecipeOutput) -> float | None:
    """Score a refusal: precision over refused questions, recall over unanswerable ones."""
    if name == "refusal-precision":
        return float(not question.answerable) if outcome.refused else None
    if name == "refusal-recall":
        return None if question.answerable else float(outcome.refused)
    return float(outcome.refused != question.answerable)


def _score_ranking(
    name: str, outcome: RecipeOutput, question: Question, short: str
) -> float | None:
    measure = get_answer_ranking_metric(name)
    if measure is None:
        return None
    if outcome.ranked:
        return measure(outcome.ranked, question.answers)
    # A text answer is correct if it contains a gold answer (as Hits@1 of LLMs is computed).
    return sub_exact_match(short, question.answers) if short else 0.0


def _score_grounding(name: str, outcome: RecipeOutput) -> float | None:
    """Score groundedness or citations; None for a refusal, which makes no claims."""
    if outcome.refused:
        return None
    if name == "grounded":
        return groundedness(outcome.answer, outcome.passages)
    passages = {passage.id: passage for passage in outcome.passages}
    precision, recall = score_citations(outcome.answer, outcome.citations, passages)
    return precision if name == "citation-precision" else recall


def _list_gold(question: Question) -> tuple[str, ...]:
    """Return the gold documents as found ones are called: questions may be made from names."""
    return tuple(map(to_corpus_id, question.gold))
