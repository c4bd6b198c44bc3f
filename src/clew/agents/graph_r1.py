"""Graph-R1 agent with any chat model: think, query the knowledge base, think again, answer."""

from dataclasses import dataclass, replace
from typing import Literal

from clew.agents.answering.finish import conclude, conclude_with_citation, run_with_fallback
from clew.agents.core.evidence_page import build_page
from clew.agents.core.scratchpad import Notebook, RecordingRetriever
from clew.agents.core.types import Answer, Mode
from clew.agents.graph_r1_protocol import (
    STOP_SEQUENCES,
    GraphR1Protocol,
    format_bullets,
    format_pages,
    parse_action,
    restore_closing_tag,
)
from clew.context import Context
from clew.layout import EvidenceKind, Layout, Section
from clew.llm.chat import Message, MessageRole, Request
from clew.llm.json_repair import strip_thinking
from clew.llm.trained_model import TrainedConfig
from clew.retrieve.step import Step
from clew.text.language import prompt_language
from clew.types import Evidence


@dataclass(frozen=True)
class GraphR1:
    """Serves the protocol used in training; after the last query the final answer is demanded."""

    turns: int = 5
    top_k: int = 5  # paper, §4.2: facts returned to the agent
    room: int = 2500
    """Characters of knowledge per turn."""
    brief: bool = False
    """For a trained policy: the question alone, without instructions."""
    step: int = 300
    """Maximum tokens of one think-and-act step."""
    unaided: bool = False
    """Retrieve without a model, as in training."""
    show: Literal["passages", "facts"] = "passages"
    """What the model reads where the retriever returns both; facts are grouped by page title."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Loop until the model answers or the turns are used up."""
        book = Notebook()
        return await run_with_fallback(ctx, book, mode, self._answer(ctx, book, retrieve, mode))

    def with_training_settings(self, how: TrainedConfig) -> "GraphR1":
        """Return a copy with the settings the model was trained with."""
        return replace(
            self,
            turns=how.turns,
            brief=how.brief,
            step=how.step_tokens,
            unaided=True,
            top_k=how.k or self.top_k,
            room=how.characters or self.room,
        )

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        retriever = RecordingRetriever(retrieve, book, self.top_k)
        if ctx.chat("plan") is None:
            await retriever(ctx, ctx.question)
            return await conclude(ctx, book, mode)
        final = await self._run_loop(ctx, book, retriever)
        if not book.retrievals:
            await retriever(self._search_context(ctx), ctx.question)
        return await conclude_with_citation(ctx, book, final, mode)

    def _search_context(self, ctx: Context) -> Context:
        return replace(ctx, models=None) if self.unaided else ctx

    async def _run_loop(self, ctx: Context, book: Notebook, retriever: RecordingRetriever) -> str:
        chinese = not self.brief and prompt_language(ctx.question) == "zh"
        protocol = GraphR1Protocol(self.turns, self.brief, "zh" if chinese else "en")
        messages = [
            Message(_to_message_role(role), text)
            for role, text in protocol.initial_messages(ctx.question)
        ]
        asked = 0
        for _ in range(2 * self.turns + 2):
            text = restore_closing_tag(await self._generate_step(ctx, messages))
            messages.append(Message("assistant", text))
            action = parse_action(text)
            if action.kind == "answer":
                return action.text
            if action.kind == "query" and asked < self.turns:
                asked += 1
                retrieval = await retriever(self._search_context(ctx), action.text)
                found = self.format_evidence(retrieval.evidence)
                messages.append(Message("user", protocol.format_knowledge(found, asked)))
            elif asked >= self.turns:
                return ""
            else:
                asked += 1
                messages.append(Message("user", protocol.format_reminder(asked)))
        return ""

    async def _generate_step(self, ctx: Context, messages: list[Message]) -> str:
        # At first the last message holds the instructions: the trace shows the question.
        begins = not any(message.role == "assistant" for message in messages)
        about = ctx.question if begins else messages[-1].content[:200]
        async with ctx.step("think", about) as step:
            chat = step.ctx.chat("plan")
            assert chat is not None
            request = Request(tuple(messages), max_tokens=self.step, stop=STOP_SEQUENCES)
            reply = await chat(request)
            step.output = " ".join(reply.text.split())[:200]
            return reply.text if "<" in reply.text else strip_thinking(reply.text)

    def format_evidence(self, found: Evidence) -> str:
        """Format a retrieval for the model; training uses the same text."""
        if self.show == "facts" and found.facts:
            rows = [(fact.title, fact.start, fact.text) for fact in found.facts[: self.top_k]]
            return format_pages(rows)[: self.room]
        kind: EvidenceKind = "passages" if found.chunks else "facts"
        layout = Layout((Section(kind),), total=self.room // 4)
        best = Evidence(chunks=found.chunks[: self.top_k], facts=found.facts[: self.top_k])
        return format_bullets(build_page(best, layout).lines)


def _to_message_role(role: str) -> MessageRole:
    return "system" if role == "system" else "user" if role == "user" else "assistant"
