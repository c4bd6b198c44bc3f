"""Community names and summaries, written by a model in batches, or quoted from facts."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, Field

from clew.errors import ParseError
from clew.llm.chat import Chat, Request
from clew.llm.prompt import Prompt
from clew.text.language import prompt_language
from clew.tree.summaries import MODEL, CommunitySummary, SummaryPoint
from clew.tree.summary_source import SummaryMaterial

_MAX_LINE_CHARS = 400  # characters of one line in the prompt, when there are many
_MAX_CALL_CHARS = 14_000  # characters of all lines in one call
_TOKENS_PER_COMMUNITY = 350  # tokens of the reply per community


class SummarySentence(BaseModel, title="Sentence"):
    """A sentence of a summary and the lines it rests on."""

    text: str
    lines: list[int] = Field(default_factory=list)


class CommunityReply(BaseModel, title="Group"):
    """What the model says of one group."""

    group: int
    name: str
    points: list[SummarySentence] = Field(default_factory=list)


class CommunityReplies(BaseModel, title="Groups"):
    """What the model must answer."""

    groups: list[CommunityReply] = Field(default_factory=list)


COMMUNITY_PROMPT = Prompt("community", CommunityReplies, {"groups", "count"}, documents={"groups"})


@dataclass(frozen=True)
class SummaryWriter:
    """Writes summaries with a model, several communities per call, one retry for each missing."""

    chat: Chat
    batch_size: int = 4
    """Communities per call."""
    failed: list[int] = field(default_factory=list, repr=False, compare=False)
    """Communities without a usable reply after the retry: they are quoted."""

    async def __call__(
        self, materials: Mapping[int, SummaryMaterial]
    ) -> dict[int, CommunitySummary]:
        """Return a summary for every community, quoted where the model gave none."""
        full = {at: one for at, one in materials.items() if one.lines}
        found = await self._write_batches(full, self.batch_size)
        missing = {at: one for at, one in full.items() if at not in found}
        if missing:
            # A model that skipped some in a batch may answer for them one by one.
            found |= await self._write_batches(missing, 1)
        self.failed.extend(at for at in full if at not in found)
        return {
            at: found[at] if at in found else one.to_quoted_summary()
            for at, one in materials.items()
        }

    async def _write_batches(
        self, materials: Mapping[int, SummaryMaterial], at_once: int
    ) -> dict[int, CommunitySummary]:
        batches = list(_make_batches(materials, at_once))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask_model(batch)) for batch in batches]
        return {at: summary for task in tasks for at, summary in task.result().items()}

    async def _ask_model(self, batch: Mapping[int, SummaryMaterial]) -> dict[int, CommunitySummary]:
        numbered = list(batch.items())
        shown = "\n\n".join(
            _format_material(n, one) for n, (_, one) in enumerate(numbered, start=1)
        )
        try:
            reply = await COMMUNITY_PROMPT.ask(
                self.chat,
                language=prompt_language(shown),
                like=Request(max_tokens=_TOKENS_PER_COMMUNITY * len(numbered)),
                groups=shown,
                count=str(len(numbered)),
            )
        except ParseError:
            return {}  # nothing usable: the caller retries, then quotes
        found: dict[int, CommunitySummary] = {}
        for group in reply.groups:
            if 1 <= group.group <= len(numbered):
                community, material = numbered[group.group - 1]
                summary = _check_citations(group, material)
                if summary is not None:
                    found.setdefault(community, summary)
        return found


def _make_batches(
    materials: Mapping[int, SummaryMaterial], at_once: int
) -> Sequence[dict[int, SummaryMaterial]]:
    batches: list[dict[int, SummaryMaterial]] = []
    used = 0
    for at, material in materials.items():
        size = sum(min(len(line.prompt_text), _MAX_LINE_CHARS) for line in material.lines)
        if not batches or len(batches[-1]) >= at_once or used + size > _MAX_CALL_CHARS:
            batches.append({})
            used = 0
        batches[-1][at] = material
        used += size
    return batches


def _format_material(number: int, material: SummaryMaterial) -> str:
    width = max(_MAX_LINE_CHARS, _MAX_CALL_CHARS // (4 * max(len(material.lines), 1)))
    lines = [f"{n}. {line.prompt_text[:width]}" for n, line in enumerate(material.lines, start=1)]
    return "\n".join([f"Group {number}", f"Keywords: {', '.join(material.keywords)}", *lines])


def _check_citations(group: CommunityReply, material: SummaryMaterial) -> CommunitySummary | None:
    """Keep only sentences that cite existing lines; None if nothing remains."""
    points = []
    for sentence in group.points:
        cited = [material.lines[n - 1] for n in sentence.lines if 0 < n <= len(material.lines)]
        text = " ".join(sentence.text.split())
        if cited and text:
            facts = dict.fromkeys(key for line in cited for key in line.point.facts)
            spans = dict.fromkeys(at for line in cited for at in line.find_citation(text))
            points.append(SummaryPoint(text, tuple(facts), tuple(spans)))
    name = " ".join(group.name.split())
    if not points or not name:
        return None
    return CommunitySummary(name, tuple(points), material.keywords, MODEL, material.seen)
