"""Recipes from `[recipes.NAME]` tables: what they give, and what each mistake is answered."""

import sys
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from clew.config import Settings, load_settings
from clew.config_template import TEMPLATE
from clew.engine import KnowledgeBase
from clew.errors import ClewError, ConfigError
from clew.layout import Section
from clew.recipes.agents import AGENTS
from clew.recipes.configure import add_own_recipes
from clew.recipes.describe import AGENT_NOTES
from clew.recipes.parameters import read_fields, write_fields
from clew.recipes.registry import RECIPES, RecipeSet, resolve_recipe, tabulate_recipe
from clew.recipes.steps import STEPS
from clew.recipes.toml import format_recipe
from clew.retrieve.lookup import Dense, NearEntities
from clew.retrieve.rank import fuse_chunks
from clew.retrieve.step import Chain, Fork
from clew.types import Chunking

ASKED = "Who designed Marrow Bridge?"


def read(text: str) -> RecipeSet:
    """The recipes of a settings file with this text."""
    return add_own_recipes(tomllib.loads(text)["recipes"])


# -- written and read again


@pytest.mark.parametrize("name", RECIPES)
def test_a_retriever_written_as_toml_is_the_same_retriever(name: str) -> None:
    own = read(format_recipe(name, "copy"))
    # A name that is an agent's too is written with that agent.
    described = AGENTS.get(name, RECIPES[name])
    same = replace(RECIPES[name], name="copy", about=described.about, source=described.source)
    assert own.retrievers["copy"] == same
    assert resolve_recipe("copy", own).agent == resolve_recipe(name).agent


@pytest.mark.parametrize("name", [*AGENTS, "graphsearch+pathrag", "react+lego-12"])
def test_an_agent_written_as_toml_is_the_same_agent_with_its_retriever(name: str) -> None:
    own = resolve_recipe("copy", read(format_recipe(name, "copy")))
    built_in = resolve_recipe(name)
    assert own.agent == built_in.agent and own.chunk == built_in.chunk
    assert own.retrieve.steps == built_in.retrieve.steps
    # The agent's chunk size is the copy's own.
    assert set(own.retrieve.notes) - set(built_in.retrieve.notes) <= {
        ("chunk", AGENT_NOTES["GraphSearch.chunk"])
    }


def test_an_own_recipe_is_written_without_need_of_itself() -> None:
    own = read('[recipes.a]\nbase = "youtu-10"\nagent = { name = "react", turns = 2 }')
    again = read(format_recipe("a", "b", own))
    assert resolve_recipe("b", again).agent == resolve_recipe("a", own).agent
    assert again.retrievers["b"] == replace(own.retrievers["a"], name="b")


@dataclass(frozen=True)
class Part:
    kind: Literal["facts", "paths"]
    tokens: int = 100


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...] = ()
    total: int = 1000
    first: Part | None = None


def test_any_frozen_dataclass_is_written_and_read() -> None:
    for whole in (Whole(), Whole((Part("facts"), Part("paths", 5)), 7, Part("paths", 1))):
        assert read_fields(Whole, write_fields(whole), "w") == whole
    with pytest.raises(ConfigError, match=r"^w\.parts\[1\]\.kind: is missing$"):
        read_fields(Whole, {"parts": [{"kind": "facts"}, {"tokens": 1}]}, "w")
    # A table changes what it names; the rest stays.
    usual = Whole(total=7, first=Part("paths", 3))
    changed = read_fields(Whole, {"first": {"kind": "facts"}}, "w", usual)
    assert changed == replace(usual, first=Part("facts", 3))


# -- what they give


def test_steps_forks_joins_and_nested_chains() -> None:
    own = read(
        """
        [recipes.mine]
        about = "two ways"
        chunk = { size = 300, overlap = 20 }
        steps = [
          "QuestionEntities",
          { step = "Fork", join = "fuse_chunks", branches = [
            { step = "Dense", top_k = 7 },
            { step = "Chain", name = "graph", steps = ["NearEntities", "FactsOf", "ChunksOf"] },
          ] },
        ]
        """
    )
    mine = own.retrievers["mine"]
    fork = mine.steps[1]
    assert isinstance(fork, Fork) and fork.join is fuse_chunks
    assert fork.branches[0] == Dense(top_k=7)
    assert isinstance(fork.branches[1], Chain) and fork.branches[1].steps[0] == NearEntities()
    assert mine.chunk == Chunking(300, 20) and mine.about == "two ways"
    resolved = resolve_recipe("mine", own)
    assert resolved.agent == AGENTS["reader"].agent and resolved.chunk == mine.chunk
    assert resolve_recipe("ircot+mine", own).retrieve is mine


def test_a_base_is_changed_in_single_parameters_only() -> None:
    own = read(
        """
        [recipes.second]
        base = "first"
        set = { "Budget.total" = 9000 }
        [recipes.first]
        base = "lightrag"
        set = { NearEntities.top_k = 60, "NearEntities.least" = 0.3 }
        """
    )
    first, second = own.retrievers["first"], own.retrievers["second"]
    assert repr(first).count("top_k=60, least=0.3") == 1 and "total=30000" in repr(first)
    assert repr(second) == repr(first).replace("total=30000", "total=9000").replace(
        "name='first'", "name='second'"
    )
    assert second.chunk == RECIPES["lightrag"].chunk
    assert dict(second.notes)["NearEntities.top_k"] == "clew.toml"
    assert dict(second.notes)["Budget.facts"].startswith("LightRAG")


def test_the_source_of_a_chunk_size_is_that_of_the_size() -> None:
    own = read(
        """
        [recipes.small]
        base = "lightrag"
        chunk = { size = 300, overlap = 20 }
        [recipes.same]
        base = "lightrag"
        [recipes.searched]
        base = "lightrag"
        agent = { name = "graphsearch" }
        """
    )
    noted = {
        name: dict(own.retrievers[name].notes)["chunk"]
        for name in own.retrievers
        if name in ("small", "same", "searched", "lightrag")
    }
    assert noted["small"] == "clew.toml"
    assert noted["same"] == noted["lightrag"]
    assert noted["searched"] == AGENT_NOTES["GraphSearch.chunk"]
    assert own.retrievers["searched"].chunk == AGENTS["graphsearch"].chunk


def test_what_the_model_reads_is_replaced_or_changed_in_part() -> None:
    own = read(
        """
        [recipes.shorter]
        base = "lightrag"
        layout = { total = 5000 }
        [recipes.paths]
        base = "lightrag"
        layout.sections = [{ kind = "paths", tokens = 900, best_last = true }, { kind = "facts" }]
        """
    )
    usual = RECIPES["lightrag"].layout
    assert own.retrievers["shorter"].layout == replace(usual, total=5000)
    sections = (Section("paths", 900, best_last=True), Section("facts"))
    assert own.retrievers["paths"].layout == replace(usual, sections=sections)
    shown = [row for row in tabulate_recipe("paths", own) if row["step"] == "shows"]
    assert [row["parameter"] for row in shown] == ["paths", "facts", "total"]
    assert {row["source"] for row in shown} == {"clew.toml", ""}


def test_only_what_is_set_has_the_users_file_as_its_source() -> None:
    own = read(
        """
        [recipes.mine]
        agent = { name = "graphsearch-released", max_reflections = 2 }
        steps = [
          "LinkEntities",
          { step = "EgoSubgraph", hops = 2 },
          { step = "Fork", join = "fuse_chunks", branches = [{ step = "Dense", top_k = 7 }] },
        ]
        """
    )
    rows = tabulate_recipe("mine", own)
    users = {f"{r['step']}.{r['parameter']}" for r in rows if r["source"] == "clew.toml"}
    assert users == {"GraphSearch.max_reflections", "EgoSubgraph.hops", "Fork.join", "Dense.top_k"}
    released = {r["parameter"]: r["source"] for r in rows if r["step"] == "GraphSearch"}
    assert released["expand_on"] == "as built in"


def test_an_agent_keeps_what_is_not_given() -> None:
    own = read(
        """
        [recipes.quick]
        base = "graphsearch+pathrag"
        agent = { max_reflections = 1 }
        [recipes.alone]
        agent = { name = "graphsearch", channels = ["semantic"], expand_on = "ACCEPT" }
        set = { "GraphSearch.top_k" = 4 }
        [recipes.calm]
        base = "clew"
        """
    )
    quick, alone = resolve_recipe("quick", own), resolve_recipe("alone", own)
    assert quick.agent == replace(AGENTS["graphsearch"].agent, max_reflections=1)
    assert quick.retrieve.steps == RECIPES["pathrag"].steps
    assert quick.chunk == AGENTS["graphsearch"].chunk
    assert alone.agent.channels == ("semantic",) and alone.agent.top_k == 4
    assert alone.retrieve.steps == RECIPES["clew"].steps
    assert resolve_recipe("calm", own).agent == AGENTS["searcher"].agent
    # Its agent answers over other retrievers, and its retriever serves other agents.
    assert resolve_recipe("quick+bm25", own).agent == quick.agent
    assert resolve_recipe("react+quick", own).retrieve is quick.retrieve


# -- mistakes

WRONG = [
    ("mine = 5", "recipes.mine: must be a table"),
    ("[recipes.mine]", "recipes.mine: needs `steps`, or a `base` to start from"),
    ("mine.steps = []", "recipes.mine.steps: is empty; give at least one step"),
    ("mine.steps = 'Dense'", "recipes.mine.steps: must be a list"),
    ("mine.steps = [3]", "recipes.mine.steps[0]: must be a step's name or a table"),
    (
        "mine.steps = [{ top_k = 3 }]",
        'recipes.mine.steps[0].step: must name a step, e.g. step = "D',
    ),
    (
        "mine.steps = ['Dense', { step = 'Lexical', top_k = 'many' }]",
        "recipes.mine.steps[1].top_k: must be an integer",
    ),
    ("mine.steps = [{ step = 'Dense', top_k = true }]", "steps[0].top_k: must be an integer"),
    ("mine.steps = [{ step = 'Dense', top_k = 2.5 }]", "steps[0].top_k: must be an integer"),
    ("mine.steps = [{ step = 'Dense', top_k = -1 }]", "steps[0].top_k: must not be negative"),
    ("mine.steps = [{ step = 'Dense', top_k = 0 }]", "steps[0].top_k: must be at least 1"),
    ("mine = { base = 'naive', set = { 'Dense.top_k' = 0 } }", "Dense.top_k: must be at least 1"),
    ("mine.steps = [{ step = 'Dense', top_k = 9e30 }]", "steps[0].top_k: must be an integer"),
    (
        "mine.steps = [{ step = 'Dense', top_k = 9999999999999999 }]",
        "steps[0].top_k: must be at most 1,099,511,627,776",
    ),
    ("mine.steps = [{ step = 'Lexical', b = nan }]", "steps[0].b: must be a"),
    ("mine.steps = [{ step = 'Lexical', b = inf }]", "steps[0].b: must be a number"),
    ("mine.steps = [{ step = 'Lexical', b = -0.1 }]", "steps[0].b: must not be negative"),
    (
        "mine.steps = ['Dence']",
        "recipes.mine.steps[0].step: unknown step 'Dence'; did you mean 'Dense'?",
    ),
    (
        "mine.steps = ['Zyx']",
        "recipes.mine.steps[0].step: unknown step 'Zyx'; `clew recipes --steps` lists them",
    ),
    (
        "mine.steps = [{ step = 'Dense', topk = 3 }]",
        "recipes.mine.steps[0].topk: unknown parameter; did you mean 'top_k'?",
    ),
    ("mine.steps = [{ step = 'Keywords', x = 3 }]", "[0].x: unknown parameter; there are: none"),
    (
        "mine.steps = [{ step = 'FactsOf', order = 'degre' }]",
        "steps[0].order: must be one of 'similar', 'degree'; did you mean 'degree'?",
    ),
    (
        "mine.steps = [{ step = 'ChunksOf', of = ['facts', 'pathes'] }]",
        "steps[0].of[1]: must be one of 'entities', 'facts', 'paths'; did you mean 'paths'?",
    ),
    ("mine.steps = [{ step = 'NearEntities', each = 1 }]", "[0].each: must be true or false"),
    ("mine.steps = [{ step = 'Reports', tree = 1 }]", "[0].tree: must be a text"),
    ("mine.steps = [{ step = 'EntityPairs', otherwise = 1 }]", "[0].otherwise: must be a table"),
    (
        "mine.steps = [{ step = 'EntityPairs', otherwise = { tokens = 'x' } }]",
        "steps[0].otherwise.tokens: must be an integer",
    ),
    ("mine.steps = [{ step = 'Fork', branches = ['Dense'] }]", "steps[0].join: is missing"),
    (
        "mine.steps = [{ step = 'Fork', join = 'fuse', branches = ['Dense'] }]",
        "steps[0].join: must be one of 'fuse_chunks', 'in_turns', 'reciprocal_facts'",
    ),
    ("mine.steps = [{ step = 'Fork', join = 'in_turns', branches = [] }]", "branches: is empty"),
    ("mine.base = 'lightrg'", "recipes.mine.base: no recipe 'lightrg'; did you mean 'lightrag'?"),
    ("mine.base = 7", "recipes.mine.base: must be a text"),
    ("mine.base = 'mine'", "recipes.mine.base: mine → mine goes in a circle"),
    (
        "a.base = 'b'\nb.base = 'c'\nc.base = 'react+a'",
        "recipes.c.base: a → b → c → a goes in a circle",
    ),
    ("mine.bse = 'clew'", "recipes.mine.bse: unknown parameter; did you mean 'base'?"),
    ("mine = { base = 'clew', set = 3 }", "recipes.mine.set: must be a table"),
    (
        "mine = { base = 'clew', set = { 'Walk.hop' = 2 } }",
        "recipes.mine.set.Walk.hop: no such parameter; did you mean 'Walk.hops'?",
    ),
    (
        "mine = { base = 'clew', set = { 'Walk.hops' = 'x' } }",
        "recipes.mine.set.Walk.hops: must be an integer",
    ),
    ("mine = { base = 'naive', agent = 3 }", "recipes.mine.agent: must be an agent's name or a t"),
    (
        "mine = { base = 'naive', agent = 'graphserch' }",
        "recipes.mine.agent.name: no agent 'graphserch'; did you mean 'graphsearch'?",
    ),
    ("mine = { base = 'naive', agent = { top_k = 3 } }", "recipes.mine.agent.name: is missing"),
    (
        "mine = { base = 'naive', agent = { name = 'react', turn = 3 } }",
        "recipes.mine.agent.turn: unknown parameter; did you mean 'turns'?",
    ),
    (
        "mine = { base = 'naive', chunk = { size = 0 } }",
        "recipes.mine.chunk: size must be at least",
    ),
    ("mine = { base = 'naive', chunk = { size = -5 } }", "chunk.size: must not be negative"),
    ("mine = { base = 'naive', chunk = { by = 'page' } }", "chunk.by: must be one of 'sentences'"),
    ("mine = { base = 'naive', layout = { totl = 3 } }", "layout.totl: unknown parameter; did you"),
    ("mine = { base = 'naive', layout = { sections = [] } }", "layout.sections: is empty; give"),
    (
        "mine = { base = 'naive', layout = { sections = [{ kind = 'passage' }] } }",
        "sections[0].kind: must be one of 'entities', 'facts', 'paths', 'communities', 'passages'",
    ),
    (
        "mine = { base = 'naive', layout = { sections = [{ tokens = 5 }] } }",
        "recipes.mine.layout.sections[0].kind: is missing",
    ),
    ("mine = { base = 'naive', about = 3 }", "recipes.mine.about: must be a text"),
    (
        "mine = { base = 'naive', chunk = { size = 100, overlap = 51 } }",
        "recipes.mine.chunk: overlap must be at most half of size, which is 100",
    ),
    ("mine = { base = 'naive', notes = 3 }", "recipes.mine.notes: must be a table"),
    ("mine = { base = 'naive', notes = { a = 3 } }", 'recipes.mine.notes."a": must be a text'),
    ("lightrag.base = 'naive'", "recipes.lightrag: is the name of a built-in recipe; choose ano"),
    ("reader.base = 'naive'", "recipes.reader: is the name of a built-in recipe"),
    ("none.base = 'naive'", "recipes.none: is the name of a built-in recipe"),
    ("'a+b'.base = 'naive'", "recipes.'a+b': a recipe's name has letters, digits"),
    ("''.base = 'naive'", "recipes.'': a recipe's name has letters, digits"),
    ("'a b'.base = 'naive'", "recipes.'a b': a recipe's name has letters"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_mistake_is_one_sentence_that_names_the_key(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "clew.toml"
    file.write_text(text if text.startswith("[") else f"[recipes]\n{text}", encoding="utf-8")
    settings = load_settings(file)
    with pytest.raises(ConfigError) as raised:
        add_own_recipes(settings.recipes, settings.file)
    message = str(raised.value)
    assert message.startswith(f"{file}: recipes.") and said in message
    assert "\n" not in message and not message.endswith(".")


def nest(depth: int) -> dict[str, Any]:
    step: Any = "Dense"
    for _ in range(depth):
        step = {"step": "Chain", "name": "x", "steps": [step]}
    return {"mine": {"steps": [step]}}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"mine": {"steps": ["Dense"] * 10_000}}, "has 10,000 entries, and at most 200 are"),
        (nest(3000), "is nested more than 12 deep"),
        ({f"r{n}": {"base": "naive"} for n in range(10_000)}, "has 10,000 recipes, and at most"),
        ({3: {"base": "naive"}}, "recipes.3: a recipe's name must be a text"),
        ({"mine": {3: "naive"}}, "recipes.mine: 3 is not a text"),
        ({"x" * 200: {"base": "naive"}}, "and at most 80 of them"),
    ],
)
def test_what_no_file_should_hold_is_refused(tables: Any, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        add_own_recipes(tables)
    assert said in str(raised.value) and len(str(raised.value)) < 400


def test_a_long_chain_of_bases_is_followed_or_refused() -> None:
    tables: dict[str, Any] = {f"r{n}": {"base": f"r{n + 1}"} for n in range(300)}
    tables["r300"] = {"base": "naive"}
    with pytest.raises(ConfigError, match=r"recipes\.r\d+\.base: follows more than 20 bases"):
        add_own_recipes(tables)
    few = {name: table for name, table in tables.items() if int(name[1:]) > 290}
    assert add_own_recipes(few).retrievers["r291"].steps == RECIPES["naive"].steps


def test_a_file_nested_too_deeply_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "clew.toml"
    deep = 10 * sys.getrecursionlimit()
    file.write_text("recipes = " + "[" * deep + "]" * deep)
    with pytest.raises(ConfigError, match="is not valid TOML"):
        load_settings(file)


# -- where they work


async def test_recipes_of_the_settings_are_those_of_the_knowledge_base(
    valley: KnowledgeBase,
) -> None:
    tables = {"mine": {"base": "bm25", "agent": "react"}, "few": {"steps": ["Lexical"]}}
    own = KnowledgeBase(
        valley.store, valley.settings.model_copy(update={"recipes": tables}), valley.embed
    )
    assert (await own.search(ASKED, recipe="mine")).recipe == "mine"
    assert (await own.ask(ASKED, recipe="ircot+few")).recipe == "ircot+few"
    with pytest.raises(ConfigError, match="no recipe 'mine'"):  # another one has its own
        await valley.search(ASKED, recipe="mine")
    usual = own.settings.model_copy(update={"recipe": "mine"})
    default = KnowledgeBase(valley.store, usual, valley.embed)
    assert (await default.ask(ASKED)).recipe == "mine"
    wrong = KnowledgeBase(valley.store, Settings(recipes={"mine": {"base": 3}}), valley.embed)
    with pytest.raises(ConfigError, match=r"^clew\.toml: recipes\.mine\.base: must be a text$"):
        await wrong.search(ASKED, recipe="naive")


async def test_any_step_alone_and_with_zeros_finds_something_or_says_what_it_lacks(
    valley: KnowledgeBase,
) -> None:
    await valley.builder.make_tree_manager().build(["dual", "leiden", "raptor", "e2"])
    tables: dict[str, Any] = {}
    for name, owner in STEPS.items():
        if name in ("Chain", "Fork"):
            continue
        required: dict[str, Any] = {"step": name} | ({"route": {}} if name == "IfGrown" else {})
        if "inner" in {one.name for one in fields(owner)}:
            required["inner"] = "LinkNames"
        zeros = {
            f.name: int(f.name == "top_k") for f in fields(owner) if type(f.default) in (int, float)
        }
        before = [{"step": "NearEntities", "of": "question"}, "NearFacts"]
        tables[f"{name}-alone"] = {"steps": [required]}
        tables[f"{name}-zeros"] = {"steps": [*before, required | zeros, "ChunksOf"]}
    settings = valley.settings.model_copy(update={"recipes": tables})
    own = KnowledgeBase(valley.store, settings, valley.embed)
    lacking = 0
    for name in tables:
        try:
            assert len((await own.search(ASKED, recipe=name, k=2)).evidence.chunks) <= 2
        except ClewError as error:  # anything else is a fault of the step
            lacking += 1
            assert "\n" not in str(error)
    assert lacking < len(tables) / 4


def test_the_example_of_the_template_is_a_recipe() -> None:
    example = TEMPLATE[TEMPLATE.index("# [recipes.mine]") :].replace("\n# ", "\n").lstrip("# ")
    mine = resolve_recipe("mine", read(example))
    assert mine.chunk == Chunking(1200, 100, "tokens") and "top_k=60" in repr(mine.retrieve)
    assert mine.agent == replace(AGENTS["graphsearch"].agent, max_reflections=1)


def test_more_hops_than_a_step_searches_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"FlowPaths\.hops is 60: at most 3"):
        read('[recipes.far]\nbase = "pathrag"\nset = { "FlowPaths.hops" = 60 }\n')
