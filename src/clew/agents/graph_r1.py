"""Graph-R1 agent with any chat model: think, query the knowledge base, think again, answer."""

from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from clew.agents.answering.finish import conclude, conclude_with_citation, run_with_fallback
from clew.agents.core.evidence_page import build_page, passage_of
from clew.agents.core.scratchpad import Notebook, RecordingRetriever
from clew.agents.core.types import Answer, Mode
from clew.agents.graph_r1_protocol import (
    STOP_SEQUENCES,
    GraphR1Action,
    GraphR1Protocol,
    format_bullets,
    format_pages,
    format_scored_facts,
    parse_action,
    restore_closing_tag,
    strip_scores,
)
from clew.context import Context
from clew.layout import EvidenceKind, Layout, Section
from clew.llm.chat import Message, MessageRole, Reply, Request
from clew.llm.fit_prompt import shorten_text
from clew.llm.json_repair import strip_thinking
from clew.llm.openai_api import estimate_prompt_tokens, estimate_tokens
from clew.llm.prompt import send_fitting
from clew.llm.trained_model import TrainedConfig
from clew.retrieve.step import Step
from clew.text.language import prompt_language
from clew.types import Evidence

EvidenceForm = Literal["fused", "pages", "passages"]
# Facts that no retriever ranked: those around its other hits, or alike in wording only.
_UNRANKED = ("around", "sentence")
_KNOWLEDGE = "<knowledge>"  # the knowledge base writes this, not the model
_GAP_TOKENS = 16  # left of knowledge for which a long episode has no room


@dataclass(frozen=True)
class GraphR1:
    """Serves the protocol used in training; after the last query the final answer is demanded."""

    turns: int = 5
    top_k: int = 5  # paper, §4.2: facts returned to the agent
    room: int = 625
    """Tokens of knowledge per turn."""
    brief: bool = False
    """For a trained policy: the question alone, without instructions."""
    step: int = 300
    """Maximum tokens of one think-and-act step."""
    unaided: bool = False
    """Retrieve without a model, as in training."""
    show: EvidenceForm = "fused"
    """What the model reads: the retriever's facts with their scores, as in the paper; facts grouped
    by page title; or passages. Where the retriever found no facts, passages."""

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
            room=how.characters // 4 if how.characters else self.room,
            show=self._trained_form(how),
        )

    def _trained_form(self, how: TrainedConfig) -> EvidenceForm:
        """Return the form of knowledge in training; before it was recorded, that was passages."""
        for form in get_args(EvidenceForm):
            if how.show == form:
                return cast(EvidenceForm, form)
        return "passages" if self.show == "fused" else self.show

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        retriever = RecordingRetriever(retrieve, book, self.top_k)
        if ctx.chat("plan") is None:
            await retriever(ctx, ctx.question)
            return await conclude(ctx, book, mode)
        final = await self._run_loop(ctx, book, retriever)
        if not book.retrievals:
            await retriever(self._search_context(ctx), ctx.question)
        facts = [fact for fact in book.evidence().facts if fact.by not in _UNRANKED]
        stated = [passage for fact in facts for passage in passage_of(fact)]
        return await conclude_with_citation(ctx, book, final, mode, stated)

    def _search_context(self, ctx: Context) -> Context:
        return replace(ctx, models=None) if self.unaided else ctx

    async def _run_loop(self, ctx: Context, book: Notebook, retriever: RecordingRetriever) -> str:
        chinese = not self.brief and prompt_language(ctx.question) == "zh"
        protocol = GraphR1Protocol(self.turns, self.brief, "zh" if chinese else "en")
        messages = [
            Message(_to_message_role(role), text)
            for role, text in protocol.initial_messages(ctx.question)
        ]
        shown = replace(self, show="passages") if ctx.modality == "text" else self
        asked = 0
        for _ in range(2 * self.turns + 2):
            step = await self._generate_step(ctx, messages)
            text = restore_closing_tag(step if self.brief else step.partition(_KNOWLEDGE)[0])
            messages.append(Message("assistant", text))
            action = parse_action(text)
            if action.kind == "answer":
                return strip_scores(action.text)
            query = self._find_query(action)
            if query and asked < self.turns:
                asked += 1
                retrieval = await retriever(self._search_context(ctx), query)
                found = shown.format_evidence(retrieval.evidence)
                messages.append(Message("user", protocol.format_knowledge(found, asked)))
            elif asked >= self.turns:
                return ""
            else:
                asked += 1
                messages.append(Message("user", protocol.format_reminder(asked)))
        return ""

    def _find_query(self, action: GraphR1Action) -> str:
        """Return what to look up; an untrained model that only thinks wants what it misses.

        Such models go on with knowledge of their own invention, where they are not stopped.
        """
        thought = "" if self.brief or action.kind != "none" else action.think
        return action.text if action.kind == "query" else thought

    async def _generate_step(self, ctx: Context, messages: list[Message]) -> str:
        # At first the last message holds the instructions: the trace shows the question.
        begins = not any(message.role == "assistant" for message in messages)
        about = ctx.question if begins else messages[-1].content[:200]
        async with ctx.step("think", about) as step:
            chat = step.ctx.chat("plan")
            assert chat is not None
            stop = STOP_SEQUENCES if self.brief else (*STOP_SEQUENCES, _KNOWLEDGE)

            async def send() -> Reply:
                shown = await self._fit_messages(step.ctx, messages)
                return await chat(Request(shown, max_tokens=self.step, stop=stop))

            reply = await send_fitting(chat, "graph-r1", send)
            step.output = " ".join(reply.text.split())[:200]
            return reply.text if "<" in reply.text else strip_thinking(reply.text)

    async def _fit_messages(self, ctx: Context, messages: list[Message]) -> tuple[Message, ...]:
        """Cut the oldest knowledge first, until the episode fits the model's window."""
        limit = await ctx.room("plan", self.step)
        shown, cut = list(messages), 0
        for at, message in enumerate(messages):
            over = estimate_prompt_tokens(shown) - limit
            if over <= 0:
                break
            if message.role != "system":
                size = estimate_tokens(message.content)
                text = shorten_text(message.content, max(_GAP_TOKENS, size - over - 1))
                shown[at] = replace(message, content=text)
                cut += text != message.content
        if cut:
            ctx.note_cut(f"{cut} earlier messages shortened")
        return tuple(shown)

    def format_evidence(self, found: Evidence) -> str:
        """Format a retrieval for the model; training uses the same text."""
        facts = [fact for fact in found.facts if fact.by not in _UNRANKED][: self.top_k]
        if self.show == "fused" and facts:
            return format_scored_facts([(f.title, f.text, f.score) for f in facts], self.room)
        if self.show == "pages" and found.facts:
            rows = [(fact.title, fact.start, fact.text) for fact in found.facts[: self.top_k]]
            return format_pages(rows)[: 4 * self.room]
        kind: EvidenceKind = "passages" if found.chunks else "facts"
        layout = Layout((Section(kind),), total=self.room)
        best = Evidence(chunks=found.chunks[: self.top_k], facts=found.facts[: self.top_k])
        return format_bullets(build_page(best, layout).lines)


def _to_message_role(role: str) -> MessageRole:
    return "system" if role == "system" else "user" if role == "user" else "assistant"
