"""MS GraphRAG's global search (Edge et al. 2024): points of community reports, then one answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from clew.agents.base import Answer, Mode, run_concurrently
from clew.agents.evidence import (
    EvidenceLine,
    EvidencePage,
    format_report,
    report_sources,
    show_evidence,
)
from clew.agents.tools import Toolbox
from clew.agents.writing import Written, ask_to_write, finish, mode_rules, write_answer
from clew.context import Context
from clew.layout import Layout
from clew.llm.openai_api import estimate_tokens
from clew.llm.prompt import Prompt
from clew.types import Evidence, Finding, Report


class ReportPoint(BaseModel, title="Point"):
    """One point that some reports contribute."""

    text: str = ""
    reports: list[int] = Field(default_factory=list, description="the numbers of its reports")
    score: float = Field(
        default=0.0, description="0 to 100: how much it helps to answer the question"
    )


class ReportPoints(BaseModel, title="Points"):
    """What the reader of some reports notes."""

    reasoning: str = Field(
        default="", description="think first: what of these reports bears on this"
    )
    points: list[ReportPoint] = Field(default_factory=list)


MAP_REPORTS = Prompt("map_reports", ReportPoints, {"reports", "question"}, documents={"reports"})
REDUCE_POINTS = Prompt(
    "reduce_points", Written, {"points", "question", "rules"}, documents={"points"}
)


@dataclass(frozen=True)
class MapReduce:
    """Many readers note scored points, each over as many reports as fit; one joins the best."""

    map_tokens: int = 8000  # §3.3: the best of the windows compared; less where the model's is
    reduce_tokens: int = 8000

    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        """Map and reduce; where there are no reports, answer from the passages."""
        found = await tools.search(ctx.question)
        if not found.communities or ctx.modality == "text":
            return await write_answer(ctx, tools, await show_evidence(ctx, found), mode)
        points = await self._map_reports(ctx, found.communities)
        layout = Layout((), total=self.reduce_tokens)
        page = await show_evidence(ctx, Evidence(findings=tuple(points)), layout)
        said = await ask_to_write(
            ctx,
            REDUCE_POINTS,
            step="reduce",
            points=page if page.items else "(no reader found anything)",
            question=ctx.question,
            rules=mode_rules(ctx, mode),
        )
        return finish(ctx, said, page, tools.evidence(), mode)

    async def _map_reports(self, ctx: Context, reports: Sequence[Report]) -> list[Finding]:
        """Return the points of all readers, best first; those of no help are dropped (§3.1.6)."""
        room = min(self.map_tokens, await ctx.room("plan") // 2)
        async with ctx.step("map", f"{len(reports)} reports") as step:
            pages = divide_reports(reports, room)
            read = [_note_points(step.ctx, page) for page in pages]
            points = [one for some in await run_concurrently(read) for one in some]
            step.output = f"{len(points)} points of {len(pages)} readers"
        return sorted((one for one in points if one.score > 0), key=lambda one: -one.score)


def divide_reports(reports: Sequence[Report], room: int) -> list[EvidencePage]:
    """Divide reports into pages of at most `room` tokens; each is whole."""
    batches: list[list[EvidenceLine]] = []
    left = 0
    for report in reports:
        text = " ".join(format_report(report).split())
        line = EvidenceLine(text, "communities", report_sources(report))
        left -= estimate_tokens(text)
        if left < 0 or not batches:
            batches.append([])
            left = room - estimate_tokens(text)
        batches[-1].append(line)
    return [EvidencePage(tuple(lines)) for lines in batches]


async def _note_points(ctx: Context, page: EvidencePage) -> list[Finding]:
    """Let a reader note the points of a page; their sources are what the reports cite."""
    said = await ctx.ask(
        MAP_REPORTS,
        role="plan",
        step="read reports",
        otherwise=ReportPoints(),
        reports=page,
        question=ctx.question,
    )
    return [
        Finding(one.text, "map", tuple(page.sources(one.reports)), one.score)
        for one in said.points
        if one.text.strip()
    ]
