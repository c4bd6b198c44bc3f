"""The default agent: one call where the evidence answers, tools where it does not."""

import json
from typing import Any

import pytest
from agent_asking import ASKED, HALLOWMERE, Ask, asking, scripted

from clew.agents.tools import TOOLS
from clew.engine import KnowledgeBase
from clew.errors import ModelError
from clew.llm.chat import Request
from clew.testing.fakes import AgentScript


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


def turns(*replies: dict[str, Any]) -> AgentScript:
    """A model that gives these replies in turn."""
    return AgentScript({"answer_or_search": list(replies)})


def wants(tool: str, **arguments: Any) -> dict[str, Any]:
    """A reply that asks for one call of a tool."""
    return {"reasoning": "look", "wants": [{"tool": tool, "arguments": arguments}]}


def of_line(prompt: str, words: str) -> int:
    """The number of the evidence line that has these words."""
    lines = [line for line in prompt.splitlines() if line.startswith("[") and words in line]
    return int(lines[0][1:].partition("]")[0])


class TestAnswers:
    async def test_an_easy_question_costs_one_call(self, ask: Ask) -> None:
        script = turns(HALLOWMERE)
        answer = await ask(script)
        assert script.prompts == ["answer_or_search"]
        assert answer.candidate == "Hallowmere" and answer.verdict == "answered"
        assert answer.usage.calls == 1 and not answer.model_error

    async def test_what_the_model_says_is_what_is_given(self, ask: Ask) -> None:
        """Also what no document has: it is marked, and neither replaced nor dropped."""
        said = {"enough": True, "answer": "It was Vladivostok, in 1777.", "short": "Vladivostok"}
        answer = await ask(turns(said))
        assert answer.candidate == "Vladivostok"
        assert answer.answer == "It was Vladivostok, in 1777. (not found in the documents)"

    async def test_each_sentence_is_cited_to_the_span_that_says_it(
        self, ask: Ask, valley: KnowledgeBase
    ) -> None:
        def say(request: Request) -> str:
            prompt = request.messages[-1].content
            bridge, ilse = of_line(prompt, "designed by"), of_line(prompt, "born in Hallowmere")
            text = f"Ilse Brandvik designed it [{bridge}]. She was born in Hallowmere [{ilse}]."
            return json.dumps({"enough": True, "answer": text, "short": "Hallowmere"})

        answer = await ask(say)
        assert answer.answer.count("[1]") == answer.answer.count("[2]") == 1
        assert [one.doc for one in answer.citations] == ["bridge", "ilse"]
        assert "born in Hallowmere" in answer.citations[1].quote
        sources = await valley.store.sources()
        async with valley.store.snapshot() as now:
            for cited in answer.citations:
                held = (await now.documents([sources[cited.doc].document])).popitem()[1]
                assert held.text[cited.start : cited.end] == cited.quote

    async def test_unknown_is_a_refusal_that_says_what_is_missing(self, ask: Ask) -> None:
        said = {"enough": False, "short": "unknown", "missing": "who founded the market"}
        answer = await ask(turns(said), "Who founded the Pellworth market?")
        assert answer.verdict == "refused" and answer.missing == "who founded the market"
        assert not answer.candidate and not answer.citations

    @pytest.mark.parametrize(("mode", "verdict"), [("open", "answered"), ("reject", "refused")])
    async def test_own_knowledge_is_for_open_mode_alone(
        self, ask: Ask, mode: str, verdict: str
    ) -> None:
        said = {"enough": False, "answer": "Paris, as is known.", "short": "Paris", "missing": "it"}
        answer = await ask(turns(said), "What is the capital of France?", mode=mode)
        assert answer.verdict == verdict

    async def test_a_cited_answer_is_not_refused_for_its_confidence(self, ask: Ask) -> None:
        answer = await ask(turns(HALLOWMERE), mode="reject", confidence=1.0)
        assert answer.verdict == "answered" and answer.candidate == "Hallowmere"

    async def test_prose_instead_of_json_is_taken_as_the_answer(self, ask: Ask) -> None:
        answer = await ask(lambda _: "She was born in Hallowmere.")
        assert answer.answer.startswith("She was born in Hallowmere.")
        assert answer.citations[0].doc == "ilse"


class TestTools:
    async def test_what_is_missing_is_asked_for_and_shown(self, ask: Ask) -> None:
        seen: list[str] = []

        def last(prompt: str) -> dict[str, Any]:
            seen.append(prompt)
            return HALLOWMERE

        script = AgentScript(
            {"answer_or_search": [wants("search", query="mosses of the Grey Coast"), last]}
        )
        answer = await ask(script, "Who described plants?", recipe="searcher+bm25", k=1)
        assert "Clara Lindqvist described" in seen[0]
        assert "search(query='mosses of the Grey Coast')" in seen[0]
        assert answer.evidence.chunks

    async def test_several_calls_run_in_one_round(self, ask: Ask) -> None:
        both = {
            "wants": [
                {"tool": "entity", "arguments": {"name": "Ilse Brandvik"}},
                {"tool": "calculate", "arguments": {"expression": "1921 - 1875"}},
            ]
        }
        seen: list[str] = []
        script = AgentScript(
            {"answer_or_search": [both, lambda prompt: seen.append(prompt) or HALLOWMERE]}
        )
        await ask(script)
        assert len(script.prompts) == 2
        assert "1921 - 1875 = 46" in seen[0] and "Ilse Brandvik" in seen[0]

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (wants("shell", command="rm"), "there is no tool 'shell'"),
            (wants("entity", name="Nobody"), "no entity is named 'Nobody'"),
            (wants("entity"), "name: field required"),
            (wants("calculate", expression="__import__('os')"), "cannot be computed"),
            (wants("calculate", expression="9**9**9**9"), "too large"),
        ],
    )
    async def test_a_wrong_call_is_explained_to_the_model(
        self, ask: Ask, call: dict[str, Any], said: str
    ) -> None:
        seen: list[str] = []
        script = AgentScript(
            {"answer_or_search": [call, lambda prompt: seen.append(prompt) or HALLOWMERE]}
        )
        answer = await ask(script)
        assert said in seen[0] and answer.candidate == "Hallowmere"

    async def test_a_model_that_asks_for_ever_must_answer_in_the_end(self, ask: Ask) -> None:
        asked: list[str] = []

        def more(prompt: str) -> dict[str, Any]:
            asked.append(prompt)
            return {**wants("search", query=f"more {len(asked)}"), "answer": "Vessen [1]."}

        answer = await ask(AgentScript({"answer_or_search": more}))
        assert len(asked) == 4 and "Further rounds of calls: 0" in asked[-1]
        assert answer.answer.startswith("Vessen")

    async def test_the_same_call_twice_ends_the_search(self, ask: Ask) -> None:
        again = {**wants("search", query="towns"), "answer": "Vessen [1].", "short": "Vessen"}
        script = AgentScript({"answer_or_search": again})
        answer = await ask(script)
        assert len(script.prompts) == 2 and answer.candidate == "Vessen"

    async def test_the_last_call_offers_no_tools(self, ask: Ask) -> None:
        chat = scripted(AgentScript({"answer_or_search": wants("search", query="x")}))
        assert set(TOOLS) >= {"search", "facts", "entity", "neighbours", "paths", "read"}
        answer = await ask(chat.script)
        assert answer.verdict == "refused"


class TestSettings:
    async def test_k_reaches_what_is_read(self, ask: Ask) -> None:
        seen: list[str] = []
        script = AgentScript({"answer_or_search": lambda prompt: seen.append(prompt) or HALLOWMERE})
        for k in (1, 4):
            await ask(script, k=k, recipe="searcher+bm25")
        lines = [
            sum(line.startswith("[") and line[1].isdigit() for line in p.splitlines()) for p in seen
        ]
        assert lines[0] == 1 and lines[1] > 2

    async def test_hints_are_marked_and_a_switch(self, ask: Ask) -> None:
        seen: list[str] = []
        script = AgentScript({"answer_or_search": lambda prompt: seen.append(prompt) or HALLOWMERE})
        for hints in (False, True):
            await ask(script, "Where was Ilse Brandvik born?", hints=hints)
        said = "a guess made without a language model"
        assert said not in seen[0] and said in seen[1]

    async def test_verify_asks_whether_the_quotes_say_it(self, ask: Ask) -> None:
        no = {"reasoning": "only one half", "entailed": False}
        script = AgentScript({"answer_or_search": HALLOWMERE, "verify_cited": no})
        answer = await ask(script, verify=True)
        assert answer.signals["verified"] == 0.0 and answer.candidate == "Hallowmere"
        assert "the quotes do not say all of this" in answer.note


class TestFailures:
    async def test_a_failing_model_leaves_the_answer_without_it_marked(self, ask: Ask) -> None:
        answer = await ask([ModelError("the endpoint answers 500")] * 9, ASKED)
        assert answer.model_error == "the endpoint answers 500" and not answer.complete
        assert "given without the model: the endpoint answers 500" in answer.note

    @pytest.mark.parametrize("said", ["", "{", '{"answer": ', "<html><body>502</body></html>"])
    async def test_garbage_is_one_clear_error(self, ask: Ask, said: str) -> None:
        answer = await ask(lambda _: said)
        assert "gave no usable answer" in answer.model_error
        assert answer.evidence.chunks


async def test_a_number_alone_makes_no_source(ask: Ask) -> None:
    """A passage that is about neither the question nor the sentence is none of either."""
    said = {"enough": True, "answer": "The moon is green cheese [1].", "short": "green cheese"}
    answer = await ask(turns(said), "What is the moon?", mode="reject")
    assert answer.verdict == "refused" and not answer.citations
    open_answer = await ask(turns(said), "What is the moon?")
    assert open_answer.answer == "The moon is green cheese. (not found in the documents)"
