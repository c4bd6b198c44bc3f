"""What Clew says itself, in the language of the question; and names that are only a capital."""

from pathlib import Path
from string import Template

import pytest
from agent_asking import Ask, asking

from clew.agents.ask import AskOptions
from clew.agents.conversation import ConversationTurn
from clew.agents.core.messages import OWN_KNOWLEDGE_MARK, TRANSLATIONS, UNSUPPORTED_MARK, localise
from clew.agents.graph_r1_protocol import (
    FINAL_ANSWER_REQUEST_BY_LANGUAGE,
    FORMAT_REMINDER_BY_LANGUAGE,
    NO_RESULTS_BY_LANGUAGE,
    GraphR1Protocol,
)
from clew.agents.rules.question_analysis import find_names
from clew.engine import KnowledgeBase
from clew.testing.fakes import AgentScript
from conftest import document, stream

ZH = "玛罗桥的设计者出生在哪里？"
EN = "Where was the designer born?"
PROMPTS = Path(__file__).parents[2] / "src" / "clew" / "prompts"


@pytest.fixture
async def ask(base: KnowledgeBase) -> Ask:
    """Ask a Chinese knowledge base with a scripted model."""
    pages = [document("qiao", "玛罗桥是一座石桥，由伊尔莎设计。", "玛罗桥")]
    await base.take(stream(pages))
    return asking(base)


@pytest.mark.parametrize("language", list(TRANSLATIONS))
def test_both_sides_of_a_wording_hold_the_same(language: str) -> None:
    for english, other in TRANSLATIONS[language].items():
        ours, theirs = Template(english), Template(other)
        assert ours.is_valid()
        assert theirs.is_valid()
        assert set(ours.get_identifiers()) == set(theirs.get_identifiers()), english


def test_wordings_follow_the_question() -> None:
    said = "the documents do not mention A, B (relevance 0.10 is below 0.35)"
    assert localise(EN, said) == said
    assert localise(ZH, said) == "文档没有提到A, B（相关度 0.10 低于 0.35）"
    assert (
        localise(ZH, UNSUPPORTED_MARK)
        != UNSUPPORTED_MARK
        != localise(EN, OWN_KNOWLEDGE_MARK)
        == OWN_KNOWLEDGE_MARK
    )
    assert localise(ZH, "what a model said") == "what a model said"
    assert localise(ZH, "Refused: 缺少。") == "无法回答：缺少。"


@pytest.mark.parametrize("recipe", ["reader+clew", "rograg+clew", "graphsearch+clew", "llm"])
async def test_a_chinese_question_is_refused_in_chinese(ask: Ask, recipe: str) -> None:
    answer = await ask(AgentScript({}), ZH, recipe=recipe, mode="reject")
    assert answer.verdict == "refused"
    assert answer.answer.startswith("无法回答：")
    assert answer.missing.isascii() is False


async def test_without_a_model_too(ask: Ask, base: KnowledgeBase) -> None:
    answer = await base.ask("海王星有几个卫星？", mode="reject", recipe="reader+clew")
    if answer.verdict == "refused":
        assert answer.answer.startswith("无法回答：")
        assert answer.missing


async def test_what_nothing_bears_out_is_marked_in_chinese(ask: Ask) -> None:
    told = AgentScript(
        {
            "answer": {
                "enough": True,
                "sentences": [
                    {"text": "玛罗桥由伊尔莎设计。", "sources": [1]},
                    {"text": "大象发明了活字印刷术。", "sources": [1]},
                ],
                "short": "伊尔莎",
            }
        }
    )
    answer = await ask(told, ZH, recipe="reader+clew", mode="open")
    assert "（证据未能支持）" in answer.answer


# -- Graph-R1's words


@pytest.mark.parametrize("page", ["graph_r1", "graph_r1_alone"])
def test_both_languages_of_the_loop_use_the_same_variables_and_tags(page: str) -> None:
    texts = [(PROMPTS / f"{page}{end}").read_text("utf-8") for end in (".md", ".zh.md")]
    uses = [set(Template(text).get_identifiers()) for text in texts]
    assert uses[0] == uses[1]
    for tag in ("<think>", "</think>", "<query>", "<knowledge>", "<answer>", "</answer>"):
        assert len({text.count(tag) for text in texts}) == 1, tag


def test_the_loop_speaks_the_language_of_the_question() -> None:
    zh = GraphR1Protocol(turns=2, language="zh")
    assert "2 次查询" in zh.initial_messages(ZH)[1][1]
    assert (
        zh.format_reminder(1)
        == FORMAT_REMINDER_BY_LANGUAGE["zh"]
        != FORMAT_REMINDER_BY_LANGUAGE["en"]
    )
    assert zh.format_knowledge("事实", 2).endswith(FINAL_ANSWER_REQUEST_BY_LANGUAGE["zh"])
    assert NO_RESULTS_BY_LANGUAGE["zh"] in zh.format_knowledge(" ", 1)
    assert "query" not in GraphR1Protocol(turns=0, language="zh").initial_messages(ZH)[1][1]


async def test_a_chinese_question_gets_the_chinese_loop(ask: Ask) -> None:
    openings = []

    def say(messages: list[dict[str, str]]) -> str:
        openings.append(messages[0]["content"])
        return "<think>想</think><answer>伊尔莎"

    await ask(say, ZH, recipe="graph-r1+clew")
    assert openings[0].startswith("你通过逐步查阅知识库")


def test_the_english_loop_is_what_models_were_trained_with() -> None:
    """Its bytes are part of every trained policy."""
    from hashlib import sha256

    def mark(text: str) -> str:
        return sha256(text.encode()).hexdigest()[:16]

    system, user = GraphR1Protocol(turns=5).initial_messages("Q?")
    assert mark(system[1] + user[1]) == "7473ae9565ada662"
    assert (
        mark(
            FORMAT_REMINDER_BY_LANGUAGE["en"]
            + FINAL_ANSWER_REQUEST_BY_LANGUAGE["en"]
            + NO_RESULTS_BY_LANGUAGE["en"]
        )
        == "83b87564a501c240"
    )


# -- a capital that only opens a sentence


@pytest.mark.parametrize(
    "opening",
    ["Tell me about", "Explain", "List", "Give me", "Please describe", "Show", "Frobnicate"],
)
async def test_orders_are_no_names(valley: KnowledgeBase, opening: str) -> None:
    async with valley.store.snapshot() as snapshot:
        view = (await valley.context(snapshot, "x")).view
    assert find_names(view, f"{opening} Ilse Brandvik") == ["Ilse Brandvik"]
    said = {"sentences": [{"text": "She was born in Hallowmere.", "sources": [1]}]}
    told = AgentScript({"answer": {"enough": True, "short": "Hallowmere", **said}})
    asked = f"{opening} Ilse Brandvik"
    answer = await asking(valley)(told, asked, recipe="reader+clew", mode="reject")
    assert answer.verdict == "answered", answer.missing


async def test_a_stranger_who_opens_a_sentence_is_still_a_name(valley: KnowledgeBase) -> None:
    async with valley.store.snapshot() as snapshot:
        view = (await valley.context(snapshot, "x")).view
    assert find_names(view, "Gundula Pfefferkorn was born where?") == ["Gundula Pfefferkorn"]
    assert find_names(view, "Gundula's mother was who?") == ["Gundula"]
    assert find_names(view, '"Gundula" was made by whom?') == ["Gundula"]
    assert find_names(view, "Hallowmere is where?") == ["Hallowmere"]
    assert find_names(view, "Whistle about Gundula") == ["Gundula"]
    assert find_names(view, "Whistle about it. Describe nothing.") == []


async def test_a_recipe_without_documents_keeps_its_reason(valley: KnowledgeBase) -> None:
    refused = await valley.ask("Where was Gundula Pfefferkorn born?", recipe="llm", mode="reject")
    assert refused.missing == "this recipe reads no documents"


@pytest.mark.parametrize("recipe", ["reader+clew", "rograg+clew", "graphsearch+clew", "youtu"])
async def test_without_documents_no_model_is_asked(base: KnowledgeBase, recipe: str) -> None:
    def answer(_: object) -> str:
        raise AssertionError("a model was asked")

    manner = AskOptions(history=[ConversationTurn("Who?", "Ilse Brandvik.")])
    for question, why in (
        (EN, "there are no documents to answer from"),
        (ZH, "没有可供作答的文档"),
    ):
        refused = await asking(base)(answer, question, recipe=recipe, manner=manner)
        assert (refused.verdict, refused.missing, refused.usage.calls) == ("refused", why, 0)
