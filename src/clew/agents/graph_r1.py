"""Graph-R1 (Luo et al. 2025): think, query the hypergraph, think again, answer; any chat model."""

from dataclasses import dataclass, field, replace
from typing import Literal, cast, get_args

from clew.agents.base import Answer, Mode
from clew.agents.evidence import EvidencePage, build_page
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
from clew.agents.tools import Toolbox
from clew.agents.writing import Written, finish, write_answer
from clew.context import Context
from clew.layout import EvidenceKind, Layout, Section
from clew.llm.chat import Message, MessageRole, Reply, Request
from clew.llm.fit_prompt import shorten_text
from clew.llm.json_repair import strip_thinking
from clew.llm.openai_api import estimate_prompt_tokens, estimate_tokens
from clew.llm.prompt import send_fitting
from clew.llm.reply_limit import ReplyCut, ReplyLimit, ask_until_whole
from clew.llm.trained_model import TrainedConfig
from clew.types import Evidence

EvidenceForm = Literal["fused", "pages", "passages"]
EPISODE_ROOM = 625
"""Tokens of knowledge per turn in training: five turns of an episode of 4,096 tokens (Table 7)."""
# Facts that no retriever ranked: those around its other hits, or alike in wording only.
_UNRANKED = ("around", "sentence")
_KNOWLEDGE = "<knowledge>"  # the knowledge base writes this, not the model
_GAP_TOKENS = 16  # left of knowledge for which a long episode has no room
_NAME = "graph-r1"
_READ = Layout((Section("facts"), Section("passages")))
_MAY_REFUSE = "Where what you find does not tell, the answer is: unknown."


@dataclass(frozen=True)
class GraphR1:
    """The loop of §4.2: every step thinks, then queries or answers; a query returns fused facts."""

    turns: int = 5
    """Queries before the final answer is demanded."""
    top_k: int = 5  # §4.2 and Table 7: facts returned to the agent
    room: int | None = None
    """Tokens of knowledge per turn; None: each turn has its share of the model's window."""
    brief: bool = False
    """For a trained policy: the question alone, without instructions."""
    step: int | None = None
    """Tokens of one step; None: as long as the model thinks."""
    unaided: bool = False
    """Retrieve without a model, as in training."""
    show: EvidenceForm = "fused"
    """What the model reads: the retriever's facts with their scores, as in the paper; facts grouped
    by page title; or passages. Where the retriever found no facts, passages."""

    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        """Loop until the model answers; the text of its <answer> is the answer."""
        episode = await self._begin(ctx, tools, mode)
        final = await self._run_loop(episode)
        if not final.text:
            return await write_answer(ctx, tools, episode.page, mode)
        text = strip_scores(final.text)
        enough = bool(episode.page.items)
        said = Written(reasoning=final.think, enough=enough, answer=text, short=text, missing="")
        answer = finish(ctx, said, episode.page, tools.evidence(), mode)
        if answer.verdict == "answered" and not answer.citations and final.think:
            # A yes, a count or a conclusion stands in no document; what it was drawn from does.
            said = said.model_copy(update={"answer": f"{text.rstrip('.')}: {final.think}"})
            explained = finish(ctx, said, episode.page, tools.evidence(), mode)
            return explained if explained.citations else answer
        return answer

    def with_training_settings(self, how: TrainedConfig) -> "GraphR1":
        """Return a copy with the settings the model was trained with."""
        return replace(
            self,
            turns=how.turns,
            brief=how.brief,
            step=how.step_tokens,
            unaided=True,
            top_k=how.k or self.top_k,
            room=how.characters // 4 if how.characters else EPISODE_ROOM,
            show=self._trained_form(how),
        )

    def _trained_form(self, how: TrainedConfig) -> EvidenceForm:
        """Return the form of knowledge in training; before it was recorded, that was passages."""
        if how.show in get_args(EvidenceForm):
            return cast(EvidenceForm, how.show)
        return "passages" if self.show == "fused" else self.show

    async def _begin(self, ctx: Context, tools: Toolbox, mode: Mode) -> "_Episode":
        protocol = GraphR1Protocol(self.turns, self.brief)
        messages = [
            Message(cast(MessageRole, role), text)
            for role, text in protocol.initial_messages(ctx.question)
        ]
        if mode == "reject" and not self.brief:
            told = f"{messages[-1].content}\n{_MAY_REFUSE}"
            messages[-1] = replace(messages[-1], content=told)
        room = self.room or await ctx.room("plan") // (self.turns + 2)
        shown = replace(self, room=room, top_k=tools.top_k or self.top_k)
        if ctx.modality == "text":
            shown = replace(shown, show="passages")
        if self.unaided:
            tools = tools.within(replace(ctx, models=None))
        return _Episode(ctx, tools, protocol, shown, messages)

    async def _run_loop(self, episode: "_Episode") -> GraphR1Action:
        """Let the model act; an empty action where it does not answer when that is demanded."""
        protocol = episode.protocol
        for asked in range(1, self.turns + 2):
            action = await self._act(episode)
            if action.kind == "answer":
                return action
            if asked > self.turns:
                break
            if action.kind == "query":
                known = protocol.format_knowledge(await episode.look_up(action.text), asked)
            else:
                known = protocol.format_reminder(asked)
            episode.messages.append(Message("user", known))
        return GraphR1Action("none", "")

    async def _act(self, episode: "_Episode") -> GraphR1Action:
        """Let the model think and act once, as one traced step."""
        ctx, messages = episode.ctx, episode.messages
        # At first the last message holds the instructions: the trace shows the question.
        about = messages[-1].content[:200] if len(messages) > 2 else ctx.question
        async with ctx.step("think", about) as step:
            chat = step.ctx.model("plan")
            stop = STOP_SEQUENCES if self.brief else (*STOP_SEQUENCES, _KNOWLEDGE)

            like = Request(max_tokens=self.step, stop=stop)

            async def send(limit: ReplyLimit) -> Reply:
                shown = await fit_messages(step.ctx, messages, limit.tokens)
                reply = await chat(limit.request(like, shown))
                if reply.finish == "length" and self.step is None and not limit.last:
                    raise ReplyCut("a step of Graph-R1 is cut off", reply.usage)
                return reply

            reply = await send_fitting(
                chat, _NAME, lambda: ask_until_whole(chat, _NAME, like, send)
            )
            step.output = " ".join(reply.text.split())[:200]
        said = reply.text if "<" in reply.text else strip_thinking(reply.text)
        text = restore_closing_tag(said if self.brief else said.partition(_KNOWLEDGE)[0])
        messages.append(Message("assistant", text))
        return parse_action(text)

    def select_evidence(self, found: Evidence) -> Evidence:
        """Return what of a retrieval is shown: its ranked facts, or passages where it has none."""
        if self.show == "pages" and found.facts:
            return Evidence(facts=found.facts[: self.top_k])
        ranked = tuple(fact for fact in found.facts if fact.by not in _UNRANKED)[: self.top_k]
        if self.show == "fused" and ranked:
            return Evidence(facts=ranked)
        if found.chunks:
            return Evidence(chunks=found.chunks[: self.top_k])
        return Evidence(facts=found.facts[: self.top_k])

    def format_evidence(self, found: Evidence) -> str:
        """Format a retrieval for the model; training uses the same text."""
        shown, room = self.select_evidence(found), self.room or EPISODE_ROOM
        if shown.facts and self.show == "fused" and shown.facts[0].by not in _UNRANKED:
            return format_scored_facts([(f.title, f.text, f.score) for f in shown.facts], room)
        if shown.facts and self.show == "pages":
            return format_pages([(f.title, f.start, f.text) for f in shown.facts])[: 4 * room]
        kind: EvidenceKind = "passages" if shown.chunks else "facts"
        return format_bullets(build_page(shown, Layout((Section(kind),), total=room)).lines)


@dataclass
class _Episode:
    """One run of the loop: its messages so far, and what was read."""

    ctx: Context
    tools: Toolbox
    protocol: GraphR1Protocol
    shown: GraphR1
    messages: list[Message]
    page: EvidencePage = field(default_factory=EvidencePage)
    """All that was read, what was read last first: an answer is looked for there."""

    async def look_up(self, query: str) -> str:
        """Query the knowledge base; return what the model reads of it."""
        found = await self.tools.search(query, most=self.shown.top_k)
        read = build_page(self.shown.select_evidence(found), _READ)
        self.page = read.merge(self.page)
        return self.shown.format_evidence(found)


async def fit_messages(ctx: Context, messages: list[Message], reply: int) -> tuple[Message, ...]:
    """Cut the oldest knowledge first, until the episode fits the window beside a reply."""
    limit = await ctx.room("plan", reply)
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
