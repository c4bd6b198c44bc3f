"""Runs a logic form: a model reads the values of every lookup, code computes the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from pydantic import BaseModel, Field

from clew.agents.base import run_concurrently
from clew.agents.evidence import EVERYTHING, EvidencePage, build_page, show_evidence
from clew.agents.logic.compute import Uncomputable, Value, Values, apply
from clew.agents.logic.forms import UNKNOWN, Operator
from clew.agents.tools import Toolbox
from clew.context import Context
from clew.llm.prompt import Prompt
from clew.types import Evidence, Finding

_NOTHING = "nothing was found"


class ReadValue(BaseModel, title="Value"):
    """One value that the evidence gives."""

    text: str = Field(default="", description="the value as the evidence words it")
    date: str = Field(
        default="", description="where it is a date, that as 1921-03-12, 1921-03 or 1921"
    )
    number: str = Field(
        default="", description="where it is a number, that in digits with its unit: 12000, 4.5 km"
    )
    items: list[int] = Field(default_factory=list, description="the numbers of its items")


class ReadValues(BaseModel, title="Values"):
    """All values that the evidence gives for a lookup."""

    reasoning: str = Field(
        default="", description="think first: what is looked up, what each item says"
    )
    values: list[ReadValue] = Field(default_factory=list)


READ_VALUES = Prompt(
    "read_values", ReadValues, {"question", "lookup", "about", "evidence"}, documents={"evidence"}
)


@dataclass(frozen=True)
class LogicResult:
    """What the steps of a plan gave, and why the plan has no result, where it has none."""

    findings: tuple[Finding, ...] = ()
    read: EvidencePage = EvidencePage()
    """The facts and passages from which the values were read."""
    problem: str = ""

    @property
    def page(self) -> EvidencePage:
        """The results of the operators, then what they came from."""
        return build_page(Evidence(findings=self.findings), EVERYTHING).merge(self.read)


@dataclass
class LogicRun:
    """One run of a plan; steps that do not wait for each other run at once."""

    ctx: Context
    tools: Toolbox
    about: str
    """What the whole question is about, for those who read."""
    lookup_tokens: int
    lookups: int
    """Lookups of one step at most, where it needs one for each value of another."""
    results: dict[int, Values] = field(default_factory=dict)
    read: EvidencePage = field(default_factory=EvidencePage)

    async def __call__(self, plan: Sequence[Operator]) -> LogicResult:
        """Run the plan; what cannot be computed ends it, with the results so far."""
        problem = ""
        while not problem and len(self.results) < len(plan):
            ready = [
                number
                for number, step in enumerate(plan, start=1)
                if number not in self.results and self.results.keys() >= set(step.references)
            ]
            try:
                found = await run_concurrently([self._run_step(n, plan[n - 1]) for n in ready])
                self.results |= zip(ready, found, strict=True)
            except Uncomputable as error:
                problem = str(error)
        if not problem and not self.results[len(plan)]:
            problem = f"{plan[-1]}: {_NOTHING}"
        findings = [
            self._describe(number, plan[number - 1], values)
            for number, values in sorted(self.results.items())
        ]
        return LogicResult(tuple(findings), self.read, problem)

    async def _run_step(self, number: int, step: Operator) -> Values:
        async with self.ctx.step(f"#{number} {step.op}", str(step)) as traced:
            values = (
                await self._retrieve(traced.ctx, step)
                if step.op == "retrieve"
                else apply(step, self.results)
            )
            traced.output = "; ".join(map(str, values)) or _NOTHING
            return values

    async def _retrieve(self, ctx: Context, step: Operator) -> Values:
        """Look up for each value, or each combination, that the references stand for."""
        needed = step.references
        rows = list(product(*(self.results[number] for number in needed)))
        if len(rows) > self.lookups:
            raise Uncomputable(f"{step}: {len(rows)} lookups are too many")
        filled = [step.fill(dict(zip(needed, map(str, row), strict=True))) for row in rows]
        subjects = [step.fill(_name_all(needed, row)).args[0] for row in rows]
        found = await run_concurrently(
            [self._look_up(ctx, *one) for one in zip(filled, subjects, strict=True)]
        )
        return tuple(value for values in found for value in values)

    async def _look_up(self, ctx: Context, step: Operator, subject: str) -> Values:
        """Search for what one lookup asks, and let the model read all its values."""
        query = step.question or " ".join(arg for arg in step.args if arg != UNKNOWN)
        found = await self.tools.within(ctx).search(query)
        page = await show_evidence(ctx, found, ctx.layout.fit(self.lookup_tokens), role="plan")
        said = await ctx.ask(
            READ_VALUES,
            role="plan",
            step="read values",
            otherwise=ReadValues(),
            question=query,
            lookup=" | ".join(step.args),
            about=self.about,
            evidence=page,
        )
        used = {number for one in said.values for number in one.items}
        lines = [line for number, line in enumerate(page.items, start=1) if number in used]
        self.read = self.read.merge(EvidencePage(tuple(lines)))
        subject = "" if subject == UNKNOWN else subject
        return tuple(
            Value(one.text, subject, one.date, one.number, tuple(page.sources(one.items)))
            for one in said.values
            if one.text.strip()
        )

    def _describe(self, number: int, step: Operator, values: Values) -> Finding:
        told = "; ".join(map(str, values)) or _NOTHING
        asked = f"{step.question} " if step.question else ""
        sources = dict.fromkeys(source for value in values for source in value.sources)
        return Finding(f"#{number} {asked}{step} = {told}", "logic form", tuple(sources))


def _name_all(needed: Sequence[int], row: Sequence[Value]) -> Mapping[int, str]:
    """Return what each reference names: the thing itself, where the value measures one."""
    return {
        number: value.subject if value.measured and value.subject else value.text
        for number, value in zip(needed, row, strict=True)
    }
