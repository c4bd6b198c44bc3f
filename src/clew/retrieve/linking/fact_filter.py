"""HippoRAG 2's recognition memory: filters the facts found by their use for the question."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from pydantic import BaseModel, Field

from clew.context import Context
from clew.llm.chat import UNUSABLE_REPLY, Chat, Request
from clew.llm.prompt import Prompt
from clew.retrieve.linking.link_names import link_names
from clew.text.language import prompt_language
from clew.text.names import tokenize_question
from clew.types import Found, Hit

_MAX_REPLY_TOKENS = 200  # tokens of a reply
_MAX_QUESTION_CHARS = 4000  # characters of a question that the model is shown
_MAX_FACT_CHARS = 400  # characters of one fact that the model is shown


class ChosenFacts(BaseModel, title="Chosen"):
    """The numbers of the facts to keep."""

    keep: list[int] = Field(default_factory=list)


FACT_FILTER_PROMPT = Prompt("recognise", ChosenFacts, {"question", "facts"}, documents={"facts"})


@dataclass(frozen=True)
class Recognise:
    """Keeps the facts that help to answer: chosen by a model, or by rules without one.

    Without a model, facts stay that involve an entity the question names; if there are none, those
    whose cosine is within `share` of the best one's.
    """

    share: float = 0.8

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`; possibly to none."""
        chat = ctx.chat("plan")
        if not found.facts:
            return found
        if chat is None:
            return replace(found, facts=self._filter_by_rules(ctx, found.facts))
        kept = await choose_facts(ctx, chat, [hit.at for hit in found.facts])
        return replace(found, facts=tuple(hit for hit in found.facts if hit.at in kept))

    def _filter_by_rules(self, ctx: Context, facts: tuple[Hit, ...]) -> tuple[Hit, ...]:
        view = ctx.view
        links = link_names(view, ctx.question, tokenize_question(ctx.question))
        named = np.unique(
            view.first_namesake[[at for link in links for at in link.entities.tolist()]]
        )
        members = view.links("fact_entity")
        about_named = [
            h for h in facts if np.isin(view.first_namesake[members.row(h.at)], named).any()
        ]
        least = self.share * facts[0].score
        return tuple(about_named) or tuple(hit for hit in facts if hit.score >= least)


async def choose_facts(ctx: Context, chat: Chat, facts: Sequence[int]) -> set[int]:
    """Return the facts a model picks for the question; all of them without a usable reply."""
    keys = ctx.view.keys("fact")
    held = await ctx.snapshot.facts([int(keys[at]) for at in facts])
    texts = [held[int(keys[at])].text[:_MAX_FACT_CHARS] for at in facts]
    try:
        reply = await FACT_FILTER_PROMPT.ask(
            chat,
            language=prompt_language(ctx.question),
            like=Request(max_tokens=_MAX_REPLY_TOKENS),
            question=ctx.question[:_MAX_QUESTION_CHARS],
            facts="\n".join(f"[{n}] {text}" for n, text in enumerate(texts, start=1)),
        )
    except UNUSABLE_REPLY:
        return set(facts)  # no usable reply: keep what was found
    return {facts[number - 1] for number in reply.keep if 1 <= number <= len(facts)}
