"""Summarises long merged descriptions with a model, each text once."""

import asyncio
from collections.abc import Sequence

from pydantic import BaseModel

from clew.errors import ParseError
from clew.extract.language import prompt_language
from clew.llm.chat import Chat
from clew.llm.prompt import Prompt
from clew.store.nodes import LONG_DESCRIPTION, SUMMARY_KIND, summary_key
from clew.store.protocol import Store

_MAX_NOTES_CHARS = 6000  # characters in the prompt


class Description(BaseModel):
    """What the model must answer."""

    description: str


DESCRIPTION_PROMPT = Prompt("description", Description, {"name", "notes"}, documents={"notes"})


async def summarize_long_descriptions(store: Store, chat: Chat) -> int:
    """Summarise long descriptions without a summary; return how many were written."""
    async with store.snapshot() as now:
        arrays = now.arrays
        keys = {kind: arrays[f"{kind}_keys"][arrays[f"{kind}_long"]] for kind in ("entity", "fact")}
        entities = await now.entities(keys["entity"].tolist())
        facts = await now.facts(keys["fact"].tolist())
    # A description that has a summary is read as that summary, which is short.
    named = [(e.name, e.description) for e in entities.values()]
    named += [(f.text, f.description) for f in facts.values()]
    wanted = {text: name for name, text in named if len(text) > LONG_DESCRIPTION}
    async with asyncio.TaskGroup() as group:
        tasks = {
            text: group.create_task(_summarize(chat, name, text)) for text, name in wanted.items()
        }
    found = {summary_key(text): short for text, task in tasks.items() if (short := task.result())}
    if found:
        await store.set(SUMMARY_KIND, found)
    return len(found)


async def _summarize(chat: Chat, name: str, text: str) -> str:
    try:
        reply = await DESCRIPTION_PROMPT.ask_detailed(
            chat, language=prompt_language(text), name=name, notes=_format_notes(text.split("\n"))
        )
    except ParseError:
        return ""  # the merged description is kept, as without a model
    return reply.value.description.strip()


def _format_notes(notes: Sequence[str]) -> str:
    return "\n".join(f"- {note}" for note in notes)[:_MAX_NOTES_CHARS]
