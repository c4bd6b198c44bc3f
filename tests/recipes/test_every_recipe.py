"""What holds of every recipe there is, on one small knowledge base with all its trees."""

import asyncio
import importlib
import inspect
import json
import pkgutil
from collections.abc import Sequence
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import clew.retrieve
from clew.config import ROLES, ModelSettings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError, InputError
from clew.llm.chat import Chat, Request
from clew.llm.embed import EmbedRole, Vectors
from clew.llm.wrappers import CachedChat
from clew.models import Models, ReplyCache
from clew.recipes.agents import AGENTS
from clew.recipes.describe import describe_recipe_needs, required_trees
from clew.recipes.registry import RECIPES
from clew.recipes.steps import STEPS
from clew.retrieve.schema_filter import SchemaFilter
from clew.retrieve.signals import SIGNALS
from clew.testing.fakes import ScriptedChat
from clew.text.unicode import hash64
from clew.types import Extraction
from conftest import VALLEY, OpenFilled, document, stream

ASKED = "Who designed Marrow Bridge over the Tarn?"
WITHOUT_EMBEDDER = {"bm25", "keywords"}
# What needs a graph; the others read passages, and do without one.
PLAIN = {"clew", "clew-beam", "naive", "bm25", "keywords", "hybrid", "hybrid-rerank", "own-facts"}
PLAIN |= {"small-to-big"}
OTHER_SCRIPTS = (
    document("桥", "石桥位于青河之上。石桥由林晓设计。", "石桥"),
    document("林", "林晓是一位工程师。林晓出生于海安。", "林晓"),
    document(
        "мост", "Каменный мост стоит на реке Тарна. Его построил Иван Рябов.", "Каменный мост"
    ),
    document("جسر", "الجسر الحجري فوق نهر تارن. صممه عمر حداد.", "الجسر الحجري"),
)


class Quick:
    """An embedder that does not read: any text is a direction of its own."""

    name, dim = "quick", 64

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        found = [np.random.default_rng(hash64(text)).standard_normal(64) for text in texts]
        rows = np.array(found, np.float32).reshape(-1, 64)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class InOrder:
    """A reranker that finds the passages as they come."""

    name = "in order"

    async def __call__(self, question: str, texts: Sequence[str], /) -> np.ndarray:
        return -np.arange(len(texts), dtype=np.float32)


def _begins_at_entities(name: str) -> bool:
    return name.startswith("lego") or name == "grag-m"


async def grown(base: KnowledgeBase) -> KnowledgeBase:
    """The same knowledge base with everything that recipes may need."""
    await base.builder.make_tree_manager().build(["dual", "leiden", "raptor", "e2"])
    base.rerank = InOrder()
    return base


async def fill_wood(base: KnowledgeBase) -> None:
    await base.take(stream(VALLEY))
    await grown(base)


@pytest.fixture
async def wooded(open_filled: OpenFilled) -> KnowledgeBase:
    base = await open_filled(fill_wood)
    base.rerank = InOrder()
    return base


def _step_classes() -> set[type]:
    """All steps of clew.retrieve: frozen dataclasses with `async __call__(ctx, found)`."""
    found = set()
    for module in pkgutil.walk_packages(clew.retrieve.__path__, "clew.retrieve."):
        for one in vars(importlib.import_module(module.name)).values():
            if not (isinstance(one, type) and is_dataclass(one) and one.__module__ == module.name):
                continue
            call = vars(one).get("__call__")
            if inspect.iscoroutinefunction(call):
                parameters = tuple(inspect.signature(call).parameters)
                if parameters == ("self", "ctx", "found"):
                    assert one.__dataclass_params__.frozen, one
                    found.add(one)
    return found


def _classes_within(value: object) -> set[type]:
    """The classes of a recipe or an agent and of everything in its fields."""
    if isinstance(value, tuple):
        return set().union(*map(_classes_within, value))
    if not is_dataclass(value) or isinstance(value, type):
        return set()
    parts = [_classes_within(getattr(value, field.name)) for field in fields(value)]
    return {type(value)}.union(*parts)


def test_every_step_is_reached_by_some_recipe_or_agent() -> None:
    reached = _classes_within((*RECIPES.values(), *AGENTS.values()))
    # The agent of Youtu-GraphRAG makes its filter of each question.
    steps = _step_classes() - {SchemaFilter}
    assert len(steps) > 40
    assert {step.__name__ for step in steps - reached} == set()
    assert set(STEPS.values()) == steps  # and by clew.toml


async def test_evidence_is_typed_cited_and_the_same_again(wooded: KnowledgeBase) -> None:
    texts = {one.names[0]: one.text for one in VALLEY}
    for name in RECIPES:
        got = (await wooded.search(ASKED, recipe=name, k=3)).evidence
        docs = [passage.doc for passage in got.chunks]
        assert 1 <= len(docs) == len(set(docs)) <= 3, name
        for passage in got.chunks:
            assert texts[passage.doc][passage.start : passage.end] == passage.text, name
            assert isinstance(passage.score, float) and passage.by, name
        for fact in got.facts:
            assert fact.text and fact.quote in texts[fact.doc], name
        for entity in got.entities:
            assert entity.name and isinstance(entity.score, float), name
        for path in got.paths:
            assert len(path.entities) == len(path.facts) + 1 and all(path.entities), name
        for report in got.communities:
            assert report.name, name
            assert all(cited.quote in texts[cited.doc] for cited in report.citations), name
        assert (await wooded.search(ASKED, recipe=name, k=3)).evidence == got, name


async def test_the_trace_names_the_signals_and_scores_never_rise(wooded: KnowledgeBase) -> None:
    for name in RECIPES:
        results = await wooded.search(ASKED, recipe=name, k=10)
        [said] = [step.output for step in results.trace if step.step == "signals"]
        assert said, name
        scores = [passage.score for passage in results.evidence.chunks]
        assert scores == sorted(scores, reverse=True), name


def test_every_step_that_ranks_has_a_signal() -> None:
    signals = {step for steps in SIGNALS.values() for step in steps}
    # These cut, join, reorder, or say themselves what they rank by.
    without = {"TidyQuestion", "Blended", "Spread", "IfGrown", "Keep", "Budget", "Chain", "Fork"}
    assert signals | without == set(STEPS) and not signals & without


async def test_the_trace_of_an_answer_names_the_signals(wooded: KnowledgeBase) -> None:
    answer = await wooded.ask(ASKED, recipe="reader+proprag")
    said = [inner.output for step in answer.trace for inner in step.steps]
    assert "meaning, facts, links, paths" in said
    named = (await wooded.search("Who sang of Ilse Brandvik?", recipe="own-facts")).trace[-1]
    unnamed = (await wooded.search("who sang of it?", recipe="own-facts")).trace[-1]
    assert named.output == "names, facts"
    assert unnamed.output == "facts (the question names nothing known)"


KNOWN_FOR = {
    "lightrag": {"entities", "facts"},
    "pathrag": {"entities", "facts", "paths"},
    "hypergraphrag": {"entities", "facts"},
    "hipporag2": {"entities", "facts"},
    "graph-r1": {"facts"},
    "youtu": {"entities", "facts", "paths", "communities"},
    "minirag": {"entities", "paths"},
    "g-retriever": {"entities", "facts"},
    "tog": {"entities", "paths"},
    "msgraphrag-local": {"entities", "facts", "communities"},
    "msgraphrag-global": {"communities"},
    "raptor": {"communities"},
    "clew": {"entities", "facts", "paths"},
    "lego-12": {"entities", "paths"},
    "grag-m": {"paths", "communities"},
    "lego-partition": {"entities", "paths"},
    "youtu-bottom-up": {"entities", "facts", "communities"},
    "proprag": {"entities", "facts", "paths"},
    "linearrag": {"entities"},
    "gfm-rag": {"entities"},
}


async def test_each_method_leaves_what_it_is_known_for(wooded: KnowledgeBase) -> None:
    for name, kinds in KNOWN_FOR.items():
        got = (await wooded.search("Where was Ilse Brandvik born?", recipe=name)).evidence
        assert {kind for kind in kinds if getattr(got, kind)} == kinds, name


async def test_questions_without_a_sense_have_a_defined_answer(wooded: KnowledgeBase) -> None:
    for name in RECIPES:
        for question in (
            "?",
            "the of and",
            "\u202e…",
            "¿Quién diseñó el puente?",
            "0" * 2000,
            "\0",
        ):
            try:
                results = await wooded.search(question, recipe=name, k=3)
            except InputError as error:  # a walk that begins at an entity needs one
                assert _begins_at_entities(name) and "ask again with a known name" in str(error)
                continue
            assert len(results.evidence.chunks) <= 3, (name, question)


async def test_empty_questions_and_impossible_depths_are_refused(wooded: KnowledgeBase) -> None:
    for name in RECIPES:
        for question in ("", "  \n"):
            with pytest.raises(ConfigError, match="empty"):
                await wooded.search(question, recipe=name)
        for k in (0, -1):
            with pytest.raises(ConfigError, match="at least 1"):
                await wooded.search(ASKED, recipe=name, k=k)
        many = await wooded.search(ASKED, recipe=name, k=10**9)
        assert 1 <= len(many.evidence.chunks) <= len(VALLEY), name


async def test_no_script_is_lost(valley: KnowledgeBase) -> None:
    await valley.take(stream(OTHER_SCRIPTS))
    await grown(valley)
    texts = {one.names[0]: one.text for one in (*VALLEY, *OTHER_SCRIPTS)}
    # Neither begins at a name: one reads reports on all there is, one only what is asked.
    astray = {"msgraphrag-global", "lightrag-global"}
    for name in RECIPES:
        for question, wanted in (
            ("石桥由谁设计？", "桥"),
            ("Кто построил Каменный мост?", "мост"),
            ("من صمم الجسر الحجري؟", "جسر"),
        ):
            got = (await valley.search(question, recipe=name, k=3)).evidence
            assert wanted in [passage.doc for passage in got.chunks] or name in astray, name
            assert all(p.text in texts[p.doc] for p in got.chunks), name
            assert "\ufffd" not in "".join(map(str, got.paths)), name


@pytest.mark.slow  # the default recipe alone: test_of_a_pasted_text_the_beginning_is_asked
async def test_a_pasted_text_of_100_kb_is_a_question_too(base: KnowledgeBase) -> None:
    base.embed = Quick()
    await base.take(stream(VALLEY))
    await grown(base)
    pasted = "Ilse Brandvik met Anton Reeve in Vessen on Monday. " * 2000
    assert len(pasted) > 100_000
    # Without a model the instances that ask one are the ones that do not.
    twins = {f"lego-{n}" for n in (3, 4, 5, 7, 8, 9, 11, 13, 15)}
    for name in RECIPES.keys() - twins:
        async with asyncio.timeout(20):
            results = await base.search(pasted, recipe=name, k=2)
        assert len(results.evidence.chunks) <= 2, name


async def test_an_empty_knowledge_base_finds_nothing_or_says_what_it_lacks(
    base: KnowledgeBase,
) -> None:
    for name, recipe in RECIPES.items():
        try:
            assert (await base.search(ASKED, recipe=name)).evidence.chunks == (), name
        except ConfigError as error:
            assert required_trees(recipe) or "rerank" in str(error), name
            assert "`" in str(error) or "clew.toml" in str(error)
        except InputError as error:
            assert _begins_at_entities(name) and "known name" in str(error)


# -- what a knowledge base may lack


async def _nothing(document: object, chunks: list[object], /) -> list[Extraction]:
    return [Extraction() for _ in chunks]


async def test_passages_without_a_graph_give_one_sentence_and_a_command(
    base: KnowledgeBase,
) -> None:
    await base.take(stream([document("x", "nothing is named here.")]), _nothing)
    base.rerank = InOrder()
    for name in RECIPES:
        if name in PLAIN:
            assert len((await base.search("what is named?", recipe=name)).evidence.chunks) == 1
            continue
        with pytest.raises(ConfigError, match=r"`clew (add PATH|tree --grow)") as raised:
            await base.search("what is named?", recipe=name)
        assert "\n" not in str(raised.value) and not str(raised.value).endswith(".")


async def test_without_an_embedder_one_sentence_says_how_to_get_one(valley: KnowledgeBase) -> None:
    await grown(valley)
    valley.embed = None
    valley.forget_view()
    for name, recipe in RECIPES.items():
        if name in WITHOUT_EMBEDDER:
            assert describe_recipe_needs(recipe) == "nothing"
            assert (await valley.search(ASKED, recipe=name)).evidence.chunks
            continue
        assert "an embedder" in describe_recipe_needs(recipe), name
        with pytest.raises(ConfigError, match="bm25"):
            await valley.search(ASKED, recipe=name)


async def test_without_a_tree_the_command_that_grows_it_is_named(valley: KnowledgeBase) -> None:
    for name, recipe in RECIPES.items():
        for tree in required_trees(recipe):
            if "if grown" in describe_recipe_needs(recipe):
                assert (await valley.search(ASKED, recipe=name)).evidence.chunks, name
                continue
            with pytest.raises(ConfigError, match=f"`clew tree --grow --by {tree}`"):
                await valley.search(ASKED, recipe=name)


async def test_without_a_reranker_it_is_said_where_to_set_one(valley: KnowledgeBase) -> None:
    for recipe in ("hybrid-rerank", "lego-12-cross-encoder"):
        with pytest.raises(ConfigError, match=r"\[rerank\]"):
            await valley.search(ASKED, recipe=recipe)


async def test_an_unknown_recipe_is_told_which_there_are(valley: KnowledgeBase) -> None:
    with pytest.raises(ConfigError, match="no recipe 'hippo'; did you mean 'hipporag'"):
        await valley.search(ASKED, recipe="hippo")


# -- with a model


def asks(request: Request) -> str:
    """A model that reads which question it is asked, and answers all three kinds."""
    return json.dumps(
        {
            "names": ["Marrow Bridge"],
            "topics": ["designer"],
            "entities": ["Marrow Bridge"],
            "answer_types": ["person"],
            "keep": [1, 2],
        }
    )


def with_model(base: KnowledgeBase, chat: ScriptedChat) -> None:
    """Put a scripted model behind the knowledge base's own cache of replies."""
    cached: Chat = CachedChat(chat, ReplyCache(base.store))
    models = Models(ModelSettings(model="m"), base.store)
    models.chats = dict.fromkeys(ROLES, cached)
    base.models = models


ONE_CALL = [
    name
    for name, recipe in RECIPES.items()
    if "a model" in describe_recipe_needs(recipe)
    and not name.startswith("lego")
    # one call for each hop, and one more for keywords
    and name not in ("tog", "rograg-expanded")
]


async def test_a_model_is_asked_once_and_its_reply_is_kept(wooded: KnowledgeBase) -> None:
    assert {"lightrag", "pathrag", "hipporag", "hipporag2", "graph-r1", "youtu"} <= set(ONE_CALL)
    for name in ONE_CALL:
        chat = ScriptedChat(asks)
        with_model(wooded, chat)
        first = (await wooded.search(ASKED, recipe=name)).evidence
        assert len(chat.requests) == 1, name
        assert ASKED in chat.requests[0].messages[-1].content
        assert first.chunks[0].doc == "bridge" or name == "lightrag-global", name
        assert (await wooded.search(ASKED, recipe=name)).evidence == first, name
        assert len(chat.requests) == 1, name


async def test_a_model_that_says_nothing_usable_is_as_good_as_none(wooded: KnowledgeBase) -> None:
    for name in RECIPES.keys() - {"lego-13-llms-e"}:  # it reads vectors, not words
        wooded.models = Models(ModelSettings(), wooded.store)
        without = (await wooded.search(ASKED, recipe=name)).evidence
        with_model(wooded, ScriptedChat(lambda _: "I am a teapot."))
        got = (await wooded.search(ASKED, recipe=name)).evidence
        assert bool(got.chunks) == bool(without.chunks), name
        # Without a word from the model HippoRAG 2's filter keeps all; without a model it filters.
        assert got == without or name == "hipporag2", name
