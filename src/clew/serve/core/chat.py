"""Questions as messages of a conversation, and answers as chat replies, for every chat API."""

import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from clew.agents.ask import WITHOUT_MODEL, AskOptions
from clew.agents.base import Answer, Results
from clew.agents.conversation import ConversationTurn
from clew.context import Event, StepStarted
from clew.engine import KnowledgeBase
from clew.llm.budget import UNLIMITED, UsageBudget, UsageLimits
from clew.llm.limits import ModelWait
from clew.llm.openai_api import cut_to_tokens, estimate_tokens
from clew.llm.wrappers import UsageMeter
from clew.serve.core.access import Access, authorise
from clew.serve.core.bodies import has_words
from clew.serve.core.folders import DEFAULT_WORKSPACE, UnknownWorkspace
from clew.serve.core.keys import Key
from clew.serve.core.problems import Problem
from clew.serve.core.server import Server, refuse_until_tomorrow
from clew.serve.core.side_tasks import answer_side_task
from clew.types import Citation, Document, Usage

if TYPE_CHECKING:
    from clew.recipes.registry import RecipeSet  # imports every method: the start shall not wait

_MARK = re.compile(r"\[(\d{1,3})\]")
_MAX_TURNS = 20
_STYLE_ROLES = ("system", "developer")


@dataclass(frozen=True)
class ChatQuestion:
    """The last question of a conversation, the turns before it, and the style asked for."""

    question: str
    history: list[tuple[str, str]]
    style: str = ""


def read_messages(messages: Sequence[tuple[str, str]]) -> ChatQuestion:
    """Return the last user message as the question; earlier pairs are the history.

    System messages say how an answer is to be worded: what it may say is decided by the evidence.
    """
    style = "\n".join(content for role, content in messages if role in _STYLE_ROLES)
    turns: list[tuple[str, str]] = []
    asked = ""
    for role, content in messages:
        if role == "user":
            if asked:
                turns.append((asked, ""))
            asked = content
        elif role == "assistant" and asked:
            turns.append((asked, _MARK.sub("", content)))
            asked = ""
    if not has_words(asked):
        raise Problem(400, "the last message must be a user's, with text")
    return ChatQuestion(asked, turns[-_MAX_TURNS:], style)


@dataclass(frozen=True)
class ChatModel:
    """A workspace and the recipe that answers: what callers know as a model."""

    access: Access
    recipe: str | None

    @property
    def name(self) -> str:
        """The name of the model."""
        return f"{self.access.workspace}/{self.recipe or self.access.server.settings.recipe}"


def find_model(server: Server, key: Key, name: str) -> ChatModel:
    """Return the model of a name: `workspace/recipe`, a workspace, or a recipe."""
    workspace, slash, recipe = name.partition("/")
    if not slash and not _may_use(server, key, name):
        workspace, recipe = find_workspace(server, key), name
    known = workspace and _may_use(server, key, workspace)
    if not known or (recipe and not _is_recipe(recipe, server.recipes)):
        raise Problem(404, f"the model {name!r} does not exist")
    return ChatModel(authorise(server, key, workspace, "read"), recipe or None)


def list_models(server: Server, key: Key) -> list[str]:
    """Return the models a key may use, the default first: of each workspace the recipes' heads.

    Their variants are models as well, and are not listed.
    """
    from clew.recipes.registry import list_heads

    recipes = dict.fromkeys([server.settings.recipe, *list_heads(server.recipes)])
    return [
        f"{workspace}/{recipe}"
        for workspace in server.folders.names()
        if key.allows(workspace, "read")
        for recipe in recipes
    ]


def _may_use(server: Server, key: Key, workspace: str) -> bool:
    try:
        return key.allows(workspace, "read") and server.folders.exists(workspace)
    except UnknownWorkspace:
        return False


def list_workspaces(server: Server, key: Key) -> list[str]:
    """Return the workspaces that a key may read."""
    return [name for name in server.folders.names() if key.allows(name, "read")]


def find_workspace(server: Server, key: Key) -> str:
    """Return the workspace meant when none is named: the default, or the only one; else nothing."""
    mine = list_workspaces(server, key)
    return mine[0] if len(mine) == 1 else DEFAULT_WORKSPACE * (DEFAULT_WORKSPACE in mine)


def _is_recipe(name: str, known: "RecipeSet") -> bool:
    agent, plus, retriever = name.partition("+")
    if plus:
        return agent in known.agents and retriever in known.retrievers
    return name in known.retrievers or name in known.agents


@dataclass(frozen=True)
class ChatReply:
    """A finished answer: its text, how it ended, its citations and its usage."""

    text: str
    finish_reason: str
    annotations: list[dict[str, Any]]
    usage: Usage


@dataclass(frozen=True)
class ReplyLimits:
    """Where a caller wants the text to end."""

    stop: tuple[str, ...] = ()
    max_tokens: int | None = None

    def cut(self, text: str) -> tuple[str, str]:
        """Return the text up to the first stop sequence or the token limit, and why it ends."""
        ends = [at for stop in self.stop if stop and (at := text.find(stop)) >= 0]
        text = text[: min(ends)] if ends else text
        if self.max_tokens is None or estimate_tokens(text) <= self.max_tokens:
            return text, "stop"
        return cut_to_tokens(text, self.max_tokens), "length"


def make_options(access: Access, limits: UsageLimits, history: list[tuple[str, str]]) -> AskOptions:
    """Return the options of a question; raise if its key has nothing left to pay for it."""
    left = access.server.remaining_budget(access.key)
    # Its account counts what is sent. A limit on money also makes sure that prices are known.
    allowed = limits.intersect(UsageLimits(money=left.money))
    return AskOptions(allowed, None, [ConversationTurn(*turn) for turn in history])


async def search_within_budget(
    access: Access,
    question: str,
    recipe: str | None,
    k: int,
    entities: Sequence[str] = (),
    limits: UsageLimits = UNLIMITED,
) -> Results:
    """Search; the calls of recipes that ask a model count against the budget of the key."""
    from clew.recipes.describe import OPTIONAL_MODEL, describe_recipe_needs

    chosen = access.server.recipes.retrievers.get(recipe or access.server.settings.recipe)
    needs_model = chosen is None or OPTIONAL_MODEL in describe_recipe_needs(chosen)

    async def work(base: KnowledgeBase) -> Results:
        if needs_model:
            access.server.remaining_budget(access.key)
        with _trace(access, "clew.search", recipe), _charge(access, AskOptions(limits)) as manner:
            return await base.search(question, recipe=recipe, k=k, entities=entities, manner=manner)

    return await access.run(work)


async def ask_within_budget(
    access: Access, question: str, manner: AskOptions, how: dict[str, Any]
) -> Answer:
    """Answer a question; what it uses is charged to the key."""

    async def work(base: KnowledgeBase) -> Answer:
        with _trace(access, "clew.ask", how["recipe"]) as note, _charge(access, manner) as charged:
            answer = await base.ask(question, manner=charged, **how)
            note("clew.recipe", answer.recipe)
            _check_paid(charged)
            return answer

    return await access.run(work)


def stream_answer_items(
    access: Access, question: str, manner: AskOptions, how: dict[str, Any]
) -> AsyncGenerator[Event | Answer]:
    """Yield the events of a question and at last its answer; what it uses is charged to the key."""

    async def work(base: KnowledgeBase) -> AsyncGenerator[Event | Answer]:
        with _trace(access, "clew.ask", how["recipe"]) as note, _charge(access, manner) as charged:
            async with aclosing(base.stream(question, manner=charged, **how)) as items:
                async for item in items:
                    if isinstance(item, Answer):
                        note("clew.recipe", item.recipe)
                        _check_paid(charged)
                    yield item

    return access.stream(work)


def _trace(
    access: Access, name: str, recipe: str | None
) -> AbstractContextManager[Callable[[str, str], None]]:
    """Make a span where the engine is asked, by whatever API; spans of model calls are below it."""
    attributes = {
        "clew.workspace": access.workspace,
        "clew.recipe": recipe or access.server.settings.recipe,
    }
    return access.server.tracer.span(name, **attributes)


@contextmanager
def _charge(access: Access, manner: AskOptions) -> Iterator[AskOptions]:
    """Let the key pay for a question's calls, also those for whose reply nobody waits any more."""
    meter = UsageMeter()
    with access.server.open_account(access.key) as account:
        try:
            yield replace(manner, meter=meter, shared=UsageBudget(account=account))
        finally:
            access.server.metrics.add("clew_model_calls_total", meter.total.calls)
            access.server.metrics.add("clew_model_money_total", meter.total.money)


def _check_paid(manner: AskOptions) -> None:
    """Raise if the key could pay for no call at all: what has been found without is no answer."""
    refusal = manner.shared and manner.shared.refusal
    used = manner.meter.total if manner.meter is not None else Usage()
    if refusal and not used.calls:
        raise refuse_until_tomorrow(str(refusal))


async def stream_reply(
    model: ChatModel, asked: ChatQuestion, limits: ReplyLimits
) -> AsyncGenerator[str | ChatReply]:
    """Yield the names of steps as they start and what is retried, then the checked answer.

    The text is sent once its citations are checked: a word that is sent cannot be taken back.
    """
    access = model.access
    side = answer_side_task(asked.question, asked.style)
    if side is not None:
        yield ChatReply(side, "stop", [], Usage())
        return
    manner = replace(make_options(access, UsageLimits(), asked.history), style=asked.style)
    how = {"recipe": model.recipe}
    async with aclosing(stream_answer_items(access, asked.question, manner, how)) as items:
        async for item in items:
            if isinstance(item, Answer):
                yield await _finish(access, item, limits)
            elif isinstance(item, StepStarted) and item.depth == 0:
                yield item.step.partition("(")[0]
            elif isinstance(item, ModelWait) and item.state == "failed":
                yield f"{item.why} (asked again in {item.seconds:.0f} s)"


async def complete_reply(model: ChatModel, asked: ChatQuestion, limits: ReplyLimits) -> ChatReply:
    """Return the checked answer."""
    reply = ChatReply("", "stop", [], Usage())
    async with aclosing(stream_reply(model, asked, limits)) as items:
        async for item in items:
            if isinstance(item, ChatReply):
                reply = item
    return reply


async def _finish(access: Access, answer: Answer, limits: ReplyLimits) -> ChatReply:
    # A chat shows its text alone, so that has to say it.
    failed = f"\n\n({WITHOUT_MODEL}: {answer.model_error})" if answer.model_error else ""
    text, reason = limits.cut(answer.answer + failed)
    documents = await find_named(access, [one.doc for one in answer.citations])
    annotations = _annotate(access.workspace, text, answer.citations, documents)
    return ChatReply(text, reason, annotations, answer.usage)


async def find_named(
    access: Access, names: Sequence[str] | None = None, *, after: str = "", most: int | None = None
) -> dict[str, Document]:
    """Return the documents of these names, or the first after one, that this key may see."""
    if names is not None and not names:
        return {}

    async def work(base: KnowledgeBase) -> dict[str, Document]:
        sources = await base.store.sources()
        wanted = sorted(name for name in sources if name > after) if names is None else names
        ids = {name: sources[name].document for name in wanted[:most] if name in sources}
        async with base.store.snapshot() as now:
            found = await now.documents(sorted(set(ids.values())))
        return {name: found[one] for name, one in ids.items() if one in found}

    return await access.run(work)


def _annotate(
    workspace: str, text: str, citations: Sequence[Citation], documents: dict[str, Document]
) -> list[dict[str, Any]]:
    """Return one annotation for each mark: where it stands, and the span that it cites.

    The URL is a place on the server's page, without the server's address.
    """
    found = []
    for mark in _MARK.finditer(text):
        number = int(mark[1])
        if not 1 <= number <= len(citations):
            continue
        cited = citations[number - 1]
        document = documents.get(cited.doc)
        place = {"ws": workspace, "name": cited.doc, "start": cited.start, "end": cited.end}
        shown = {
            "start_index": mark.start(),
            "end_index": mark.end(),
            "title": (document.title if document else "") or cited.doc,
            "url": f"#/documents?{urlencode(place)}",
            "quote": cited.quote,
            "document": document.id if document else "",
            "start": cited.start,
            "end": cited.end,
        }
        found.append({"type": "url_citation", "url_citation": shown})
    return found
