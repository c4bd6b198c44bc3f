"""Community names and summaries, written by a model in batches, or quoted from facts."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, Field

from clew.errors import ParseError
from clew.extract.language import prompt_language
from clew.llm.chat import Chat, Request
from clew.llm.prompt import Prompt
from clew.tree.material import Material
from clew.tree.told import MODEL, Point, Told

_LINE = 400  # characters of one line in the prompt, when there are many
_ROOM = 14_000  # characters of all lines in one call
_LONGEST = 350  # tokens of the reply per community


class Sentence(BaseModel):
    """A sentence of a summary and the lines it rests on."""

    text: str
    lines: list[int] = Field(default_factory=list)


class Group(BaseModel):
    """What the model says of one group."""

    group: int
    name: str
    points: list[Sentence] = Field(default_factory=list)


class Groups(BaseModel):
    """What the model must answer."""

    groups: list[Group] = Field(default_factory=list)


DESCRIBE = Prompt("community", Groups, {"groups", "count"}, documents={"groups"})


@dataclass(frozen=True)
class Writer:
    """Writes summaries with a model, several communities per call, one retry for each missing."""

    chat: Chat
    at_once: int = 4
    """Communities per call."""
    lost: list[int] = field(default_factory=list, repr=False, compare=False)
    """Communities without a usable reply after the retry: they are quoted."""

    async def __call__(self, materials: Mapping[int, Material]) -> dict[int, Told]:
        """Return a summary for every community, quoted where the model gave none."""
        full = {at: one for at, one in materials.items() if one.lines}
        found = await self._round(full, self.at_once)
        missing = {at: one for at, one in full.items() if at not in found}
        if missing:
            # A model that skipped some in a batch may answer for them one by one.
            found |= await self._round(missing, 1)
        self.lost.extend(at for at in full if at not in found)
        return {at: found[at] if at in found else one.quoted() for at, one in materials.items()}

    async def _round(self, materials: Mapping[int, Material], at_once: int) -> dict[int, Told]:
        batches = list(_batches(materials, at_once))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._asked(batch)) for batch in batches]
        return {at: summary for task in tasks for at, summary in task.result().items()}

    async def _asked(self, batch: Mapping[int, Material]) -> dict[int, Told]:
        numbered = list(batch.items())
        shown = "\n\n".join(_shown(n, one) for n, (_, one) in enumerate(numbered, start=1))
        try:
            reply = await DESCRIBE.ask(
                self.chat,
                language=prompt_language(shown),
                like=Request(max_tokens=_LONGEST * len(numbered)),
                groups=shown,
                count=str(len(numbered)),
            )
        except ParseError:
            return {}  # nothing usable: the caller retries, then quotes
        found: dict[int, Told] = {}
        for group in reply.groups:
            if 1 <= group.group <= len(numbered):
                community, material = numbered[group.group - 1]
                summary = _checked(group, material)
                if summary is not None:
                    found.setdefault(community, summary)
        return found


def _batches(materials: Mapping[int, Material], at_once: int) -> Sequence[dict[int, Material]]:
    """Group communities into batches that fit in one call."""
    batches: list[dict[int, Material]] = []
    used = 0
    for at, material in materials.items():
        size = sum(min(len(line.shown), _LINE) for line in material.lines)
        if not batches or len(batches[-1]) >= at_once or used + size > _ROOM:
            batches.append({})
            used = 0
        batches[-1][at] = material
        used += size
    return batches


def _shown(number: int, material: Material) -> str:
    width = max(_LINE, _ROOM // (4 * max(len(material.lines), 1)))
    lines = [f"{n}. {line.shown[:width]}" for n, line in enumerate(material.lines, start=1)]
    return "\n".join([f"Group {number}", f"Keywords: {', '.join(material.keywords)}", *lines])


def _checked(group: Group, material: Material) -> Told | None:
    """Keep only sentences that cite existing lines; None if nothing remains."""
    points = []
    for sentence in group.points:
        cited = [material.lines[n - 1] for n in sentence.lines if 0 < n <= len(material.lines)]
        text = " ".join(sentence.text.split())
        if cited and text:
            facts = dict.fromkeys(key for line in cited for key in line.point.facts)
            spans = dict.fromkeys(at for line in cited for at in line.cited_for(text))
            points.append(Point(text, tuple(facts), tuple(spans)))
    name = " ".join(group.name.split())
    if not points or not name:
        return None
    return Told(name, tuple(points), material.keywords, MODEL, material.seen)
