"""Run recipes over questions concurrently and log each record as soon as it is done."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from clew.agents.ask import AskOptions
from clew.agents.base import Answer, Mode, Results
from clew.agents.messages import format_refusal
from clew.builder import ignore_progress
from clew.config import Price
from clew.context import TraceStep
from clew.engine import ANSWERING_ROLES, KnowledgeBase
from clew.errors import ClewError
from clew.evaluate.datasets import Question, to_corpus_id
from clew.evaluate.judges import Judge
from clew.evaluate.metrics.registry import JUDGED_METRICS, required_depth
from clew.evaluate.record import Record, RunLog, trim_passages, trim_trace
from clew.evaluate.scoring import RecipeOutput, Scorer
from clew.evaluate.summary import RecipeReport, drop_deep_metrics, max_found
from clew.ingest.embedding import ProgressCallback
from clew.layout import Modality
from clew.llm.roles import resolve_model
from clew.recipes.registry import resolve_recipe
from clew.text.names import name_key
from clew.text.unicode import digest
from clew.types import Evidence
from clew.version import __version__


async def hash_run_conditions(kb: KnowledgeBase) -> str:
    """Hash everything of a knowledge base and its settings that affects a result.

    API keys, limits and prices are left out, since they do not change the result.
    """
    embedder = kb.embed.name if kb.embed else ""
    models = kb.settings.models
    roles = [
        repr(resolve_model(role, models))
        for role in (*ANSWERING_ROLES, "judge")
        if kb.models.has(role)
    ]
    return digest(
        str((await kb.store.counts()).generation),
        embedder,
        # Tuning changes how questions are embedded but not the generation number.
        (await kb.store.get("tuning", [embedder])).get(embedder, ""),
        kb.settings.rerank.model_dump_json(exclude={"api_key"}),
        *roles,
    )


_MODEL_CONCURRENCY = 8  # concurrent questions if a model is used: most of the time is waiting
_MAX_RANKED = 50
_GOLD_TEXT_METRICS = frozenset({"r-s", "e-score"})


@dataclass(frozen=True)
class RecipeRunner:
    """Runs recipes on a knowledge base with given metrics and options."""

    kb: KnowledgeBase
    metrics: Sequence[str]
    answers: bool = False
    mode: Mode = "open"
    k: int = 0
    """Passages per question; 0 takes as many as the metrics need."""
    at_once: int = 0
    """Concurrent questions; 0 chooses: 1 without a model, so that times are not distorted."""
    link: bool = False
    """Link the topic entities in the question, even if the data set gives them."""
    folder: Path | None = None
    """Folder of the run logs; None keeps records in memory only."""
    fresh: bool = False
    """Start from the beginning, even if an earlier run was interrupted."""
    evidence: Modality = "all"
    """What the model is shown of what was found."""
    progress: ProgressCallback = field(default=ignore_progress, repr=False)

    async def run_recipe(
        self, name: str, questions: Sequence[Question], label: str = ""
    ) -> RecipeReport:
        """Run one recipe over the questions; `label` is its name in the records."""
        label = label or name
        keys = await self._record_keys(name, questions)
        scorer = await self.make_scorer(questions)
        run_question = _QuestionRunner(self, name, label, self.passage_count(), scorer)
        records: dict[str, Record] = {}
        with RunLog(self._log_path(label), fresh=self.fresh) as log:
            for question in questions:
                logged = log.known.get(keys[question.id])
                if logged is not None and self._is_complete(logged):
                    records[question.id] = replace(logged, recipe=label)
            if records and len(records) < len(questions):
                self.progress(label, len(records), len(questions))
            pending = [q for q in questions if q.id not in records]
            async with aclosing(
                _run_concurrently(run_question, pending, self._concurrency())
            ) as finished:
                async for record in finished:
                    record = replace(record, key=keys[record.question])
                    log.write([record])
                    records[record.question] = record
                    self.progress(label, len(records), len(questions))
            log.finish()
        ordered = tuple(records[question.id] for question in questions)
        report = RecipeReport(
            label, ordered, questions, self._answer_price(), self.describe(name, scorer)
        )
        # A search was asked for this many passages, so fewer are the recipe's own result; an agent
        # uses its own depth.
        fetched = max(self.k, max_found(report)) if self.answers else self.passage_count()
        documents = (await self.kb.store.counts()).documents
        return drop_deep_metrics(report, self.metrics, fetched, documents)

    def passage_count(self) -> int:
        """Return how many passages are requested per question."""
        return self.k or required_depth(self.metrics)

    def describe(self, name: str, scorer: Scorer) -> dict[str, Any]:
        """Describe mode, depth, concurrency and models of the run."""
        settings = self.kb.settings.models
        return {
            "recipe": name,
            "mode": self.mode if self.answers else "",
            "evidence": self.evidence if self.answers else "",
            "k": self.passage_count(),
            "at_once": self._concurrency(),
            "model": (settings.answer.model or settings.model or settings.plan.model)
            if self.answers
            else "",
            "judge": scorer.judge.chat.name if scorer.judge else "",
            "embedder": self.kb.embed.name if self.kb.embed else "",
        }

    def _is_complete(self, record: Record) -> bool:
        """Whether a logged record has all requested metrics; failures are run again."""
        scored = {*record.values, *record.unscored, *record.skipped}
        return not record.error and all(name in scored for name in self.metrics)

    def _concurrency(self) -> int:
        with_model = self.answers and any(map(self.kb.models.has, ANSWERING_ROLES))
        return self.at_once or (_MODEL_CONCURRENCY if with_model else 1)

    def _answer_price(self) -> Price:
        """Price of the answering (else planning) model, to price cached calls."""
        role = next(filter(self.kb.models.has, reversed(ANSWERING_ROLES)), None)
        return self.kb.models.price(role) if role else Price()

    def _log_path(self, label: str) -> Path | None:
        if self.folder is None:
            return None
        plain = re.sub(r"[^\w.+=-]", "_", label)[:80]
        return self.folder / f"{plain}-{digest(label)[:6]}.jsonl"

    async def _record_keys(self, name: str, questions: Sequence[Question]) -> dict[str, str]:
        """Hash all that decides a record: recipe, knowledge base, models, settings, question."""
        resolved = resolve_recipe(name, self.kb.recipes)
        common = (
            __version__,
            name,
            repr((resolved, resolved.retrieve.layout) if self.answers else resolved.retrieve),
            await hash_run_conditions(self.kb),
            f"{self.answers} {self.mode} {self.passage_count()} {self.link} {self.evidence}",
        )
        common_key = digest(*common)
        return {q.id: digest(common_key, q.id, repr(q)) for q in questions}

    async def make_scorer(self, questions: Sequence[Question]) -> Scorer:
        """Build the scorer for these questions, with a judge and gold texts if needed."""
        judge = None
        if has_judge(self.kb) and any(name in JUDGED_METRICS for name in self.metrics):
            judge = Judge(self.kb.models.chat("judge"))
        texts: dict[str, str] = {}
        if _GOLD_TEXT_METRICS & set(self.metrics):
            texts = await load_gold_texts(self.kb, questions)
        return Scorer(self.metrics, judge, self.kb.embed, texts)


def has_judge(kb: KnowledgeBase) -> bool:
    """Whether a judge model is configured."""
    return kb.models.has("judge")


@dataclass(frozen=True)
class _QuestionRunner:
    """Runs one recipe on single questions, from asking to scoring."""

    run: RecipeRunner
    name: str
    label: str
    k: int
    scorer: Scorer

    async def __call__(self, question: Question) -> Record:
        started = perf_counter()
        try:
            result = await self._ask(question)
        except Exception as error:  # noqa: BLE001  (one question's edge: the others go on)
            return self._make_failed_record(
                question, _describe_error(error), perf_counter() - started
            )
        seconds = perf_counter() - started
        if isinstance(result, Answer) and result.model_error:  # the model is what is measured
            return self._make_failed_record(question, result.model_error, seconds)
        result = _without_quotes(result)
        outcome = _to_output(result, question, self.run.answers)
        scored = await self.scorer.score(question, outcome)
        return Record(
            self.label,
            question.id,
            scored.values,
            round(seconds, 6),
            result.usage,
            outcome.found,
            outcome.ranked[:_MAX_RANKED],
            outcome.answer,
            outcome.short,
            result.verdict if isinstance(result, Answer) else "",
            dict(result.signals) if isinstance(result, Answer) else {},
            trim_passages(outcome.passages),
            trim_trace(result.trace),
            scored.unscored,
            judge=self.scorer.judge.chat.name if self.scorer.judge else "",
            skipped=tuple(m for m in self.scorer.metrics if m not in scored.values),
        )

    async def _ask(self, question: Question) -> Answer | Results:
        kb, run = self.run.kb, self.run
        topics = () if run.link else question.entities
        if run.answers:
            # Without an explicit k the agent uses its own depth.
            return await kb.ask(
                question.prompt_text(),
                recipe=self.name,
                mode=run.mode,
                k=run.k or None,
                entities=topics,
                manner=AskOptions(evidence=run.evidence),
            )
        return await kb.search(question.prompt_text(), recipe=self.name, k=self.k, entities=topics)

    def _make_failed_record(self, question: Question, reason: str, seconds: float) -> Record:
        """Score a failed question as nothing found, so that no denominator shrinks silently."""
        zeros = self.scorer.zero_values(question, self.run.answers)
        return Record(self.label, question.id, zeros, round(seconds, 6), error=reason)


def _describe_error(error: BaseException) -> str:
    """Describe an error; exceptions that are not ClewError include their type."""
    while isinstance(error, BaseExceptionGroup):
        # Task groups wrap exceptions; prefer one that is not a ClewError (a bug).
        error = min(error.exceptions, key=lambda item: isinstance(item, ClewError))
    kind = type(error).__name__
    return str(error) or kind if isinstance(error, ClewError) else f"{kind}: {error}"


async def _run_concurrently(
    run_question: _QuestionRunner, questions: Sequence[Question], at_once: int
) -> AsyncGenerator[Record, None]:
    """Yield records as they finish, at most `at_once` running."""
    if at_once == 1:
        for question in questions:
            yield await run_question(question)
        return
    pending = iter(questions)
    running: set[asyncio.Task[Record]] = set()
    try:
        while True:
            for question in pending:
                running.add(asyncio.ensure_future(run_question(question)))
                if len(running) >= at_once:
                    break
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        for task in running:
            task.cancel()


def _without_quotes(result: Answer | Results) -> Answer | Results:
    """Return a refusal for what was answered without the model, because that failed."""
    if not isinstance(result, Answer) or not result.model_error:
        return result
    refusal = format_refusal(result.question, result.model_error)
    return replace(result, answer=refusal, candidate="", citations=(), verdict="refused")


def _to_output(result: Answer | Results, question: Question, answered: bool) -> RecipeOutput:
    evidence = result.evidence
    found = tuple(to_corpus_id(passage.doc) for passage in evidence.chunks)
    ranked = () if answered else rank_answers(evidence, question)
    output = RecipeOutput(
        found,
        ranked,
        passages=evidence.chunks,
        subgraph=list_entities(evidence),
        on_paths=list_path_entities(evidence),
    )
    if not isinstance(result, Answer):
        return output
    return replace(
        output,
        answer=result.answer,
        short=result.candidate,
        refused=result.verdict == "refused",
        answered=answered,
        citations=result.citations,
        retrievals=tuple(collect_retrievals(result.trace)),
    )


def collect_retrievals(trace: Sequence[TraceStep]) -> Iterator[tuple[str, ...]]:
    """Yield the documents of each retrieval of an agent, in the order in which they ended."""
    for step in trace:
        if step.docs:
            yield tuple(to_corpus_id(name) for name in step.docs)
        yield from collect_retrievals(step.steps)


def list_path_entities(evidence: Evidence) -> tuple[str, ...]:
    """Return the names on the paths found, without where they start."""
    return tuple(dict.fromkeys(name for path in evidence.paths for name in path.entities[1:]))


def list_entities(evidence: Evidence) -> tuple[str, ...]:
    """Return the names of the subgraph found: its entities, and those of its facts and paths."""
    names = [entity.name for entity in evidence.entities]
    names += [name for fact in evidence.facts for name in fact.entities]
    return tuple(dict.fromkeys([*names, *list_path_entities(evidence)]))


def rank_answers(evidence: Evidence, question: Question) -> tuple[str, ...]:
    """Rank candidate answers of a graph question: path ends, else the entities found.

    A path that returns to the question's own entity ends in an answer like any other. Among
    entities, those that the question names come last: they were linked rather than found.
    """
    ends = dict.fromkeys(path.entities[-1] for path in evidence.paths if len(path.entities) > 1)
    if ends:
        return tuple(ends)
    given = {name_key(name) for name in question.entities}
    question_key = f" {name_key(question.text)} "

    def is_given(name: str) -> bool:
        return name_key(name) in given or f" {name_key(name)} " in question_key

    return tuple(sorted(dict.fromkeys(e.name for e in evidence.entities), key=is_given))


async def load_gold_texts(kb: KnowledgeBase, questions: Sequence[Question]) -> dict[str, str]:
    """Load the texts of the gold documents by their data set ids."""
    gold_ids = {to_corpus_id(doc) for question in questions for doc in question.gold}
    sources = {to_corpus_id(name): one for name, one in (await kb.store.sources()).items()}
    ids = {name: sources[name].document for name in gold_ids if name in sources}
    async with kb.store.snapshot() as now:
        documents = await now.documents(list(set(ids.values())))
    return {name: documents[one].text for name, one in ids.items() if one in documents}
