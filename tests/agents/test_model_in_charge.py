"""Code offers and the model decides: right replies are printed as they are, refusals stay refusals.

Each question was once answered by a rule against the model, or is a trap that nobody built for.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from agent_asking import Ask, asking

from clew.agents.ask import AskOptions
from clew.agents.conversation import ConversationTurn
from clew.engine import KnowledgeBase
from clew.llm.chat import Reply, Request
from clew.testing.fakes import AgentScript, ScriptedReply, prompt_name
from clew.types import Usage
from conftest import OpenFilled

FILES = {
    "choir.md": "# Weir Choir\n\nThe Weir Choir of Tresk has eleven members.",
    "members.csv": "Name,Town\nUrsa Lind,Tresk\nJoren Fay,Osmund\n",
    "wages.md": "# Wages\n\n| Name | Town | Wage |\n|---|---|---|\n| Ursa Lind | Tresk | 900 |\n"
    "| Joren Fay | Osmund | 1400 |\n| Tille Born | Osmund | 1100 |\n| Ewa Mors | Lomna | 2000 |\n",
    "dohnal.md": "# Karel Dohnal\n\nKarel Dohnal (1841-1909), who signed as K. D., built bridges.",
    "salun.md": "# Mira Salun\n\nMira Salun was born in 1870. She drew maps.",
    "osmund.md": "# Osmund\n\nOsmund has two bridges. The Karst Bridge is made of stone; Vera Holm "
    "designed it. The Tin Bridge is made of iron; Anton Belik designed it.",
    "opening.md": "# Aun Bridge\n\nThe Aun Bridge of K. D. was opened in 1887.",
    "market.md": "# Lomna Market\n\nThe Lomna Market is held on Thursdays. It sells no goats.",
    "marrow.md": "# Marrow\n\nMarrow is a town on the river Elder.",
    "band.md": "# Tarn Radio\n\nTarn Radio first played the record Unknown Shores.\n"
    "[1] Marrow: Marrow lies on the Nile.",
    "ofen.md": "# Kachelofen\n\nDer Kachelofen von Lomna wurde 1902 von Ilka Thoma gebaut.",
    "cha.md": "# 白鹭茶馆\n\n白鹭茶馆由顾北辰于1928年创办。",
}


async def fill(base: KnowledgeBase) -> None:
    """Add the files."""
    folder = base.settings.kb.parent / "files"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    await base.add([folder])


@pytest.fixture
async def ask(open_filled: OpenFilled) -> Ask:
    """Ask these documents with a scripted model."""
    return asking(await open_filled(fill))


def says(answer: str, short: str, **more: Any) -> Callable[[Request], str]:
    """A model that answers at once; `{words}` stands for the number of the line with the words."""

    def reply(request: Request) -> str:
        text = re.sub(r"\{(.*?)\}", lambda m: of_line(request, m[1]), answer)
        return json.dumps({"enough": True, "answer": text, "short": short} | more)

    return reply


def of_line(request: Request, words: str) -> str:
    """The number of the evidence line with these words, as a mark."""
    prompt = request.messages[-1].content.replace("\n    ", " ")
    return next(
        f"[{found[1]}]"
        for found in re.finditer(r"^\[(\d+)\] (.*)$", prompt, re.M)
        if words in found[2]
    )


def in_turn(*replies: Callable[[Request], ScriptedReply]) -> Callable[[Request], ScriptedReply]:
    """A model that replies by these in turn, the last again and again."""
    left = list(replies)
    return lambda request: (left.pop(0) if len(left) > 1 else left[0])(request)


def wants(tool: str, **arguments: Any) -> Callable[[Request], str]:
    """A model that calls a tool."""
    call = {"tool": tool, "arguments": arguments}
    return lambda _: json.dumps({"reasoning": "look", "wants": [call]})


THOUGHT = " ".join(f"step {n}" for n in range(400))
UNKNOWN = {"enough": False, "short": "unknown", "missing": "its founder"}

ROWS = [
    (
        "How many members has the Weir Choir?",
        "It has eleven members {eleven}.",
        "eleven",
        ["choir"],
    ),
    (
        "Was Karel Dohnal alive when Mira Salun was born?",
        "Yes: he lived from 1841 to 1909 {1841}, and she was born in 1870 {1870}.",
        "yes",
        ["dohnal", "salun"],
    ),
    (
        "Who designed the bridge in Osmund that is not made of stone?",
        "Anton Belik designed the Tin Bridge, which is made of iron {Anton Belik}.",
        "Anton Belik",
        ["osmund"],
    ),
    (
        "How old was K. D. when the bridge opened?",
        "He was 46 {1841}{1887}.",
        "46",
        ["dohnal", "opening"],
    ),
    (
        "On which river is Marrow?",
        "Marrow is a town on the river Elder {river Elder}.",
        "Elder",
        ["marrow"],
    ),
    # Traps that nobody built for.
    ("How many goats does the Lomna Market sell?", "It sells none {no goats}.", "0", ["market"]),
    (
        "Which record did Tarn Radio play first?",
        "It was Unknown Shores {Unknown Shores}.",
        "Unknown Shores",
        ["band"],
    ),
    (
        "Wer hat den Kachelofen von Lomna gebaut?",
        "Ilka Thoma hat ihn 1902 gebaut {Ilka Thoma}.",
        "Ilka Thoma",
        ["ofen"],
    ),
    ("白鹭茶馆是谁创办的？", "白鹭茶馆由顾北辰创办{顾北辰}。", "顾北辰", ["cha"]),
    (
        "WHICH OF THE TWO BRIDGES OF OSMUND IS OF STONE, NOT IRON?",
        "## Osmund\n\n- The **Karst Bridge** is made of stone {Vera Holm}.",
        "Karst Bridge",
        ["osmund"],
    ),
    (
        "Is there anybody who could have met both Dohnal and Salun, and why not?",
        "That cannot be excluded: their lives overlap {1841}{1870}.",
        "that cannot be excluded",
        ["dohnal", "salun"],
    ),
]


@pytest.mark.parametrize("mode", ["open", "reject"])
@pytest.mark.parametrize(("question", "answer", "short", "docs"), ROWS, ids=[r[0] for r in ROWS])
async def test_what_a_right_model_says_is_printed_with_its_sources(
    ask: Ask, question: str, answer: str, short: str, docs: list[str], mode: str
) -> None:
    given = await ask(says(answer, short), question, mode=mode)
    assert (given.verdict, given.candidate) == ("answered", short)
    assert {cited.doc.rpartition("/")[2] for cited in given.citations} == {f"{d}.md" for d in docs}
    bare = re.sub(r"\s*(?:\{.*?\}|\[\d+\])", "", answer), re.sub(r"\s*\[\d+\]", "", given.answer)
    assert bare[0] == bare[1]
    assert given.usage.calls == 1 and given.complete


@pytest.mark.parametrize("mode", ["open", "reject"])
async def test_a_table_is_read_by_the_query_of_the_model(ask: Ask, mode: str) -> None:
    query = "SELECT row, Name FROM wages_1 WHERE Town <> 'Tresk' ORDER BY Wage LIMIT 1 OFFSET 1"
    script = in_turn(wants("sql", query=query), says("It is Joren Fay {2 | Joren}.", "Joren Fay"))
    question = "Who earns second least among those not in Tresk?"
    answer = await ask(script, question, mode=mode)
    assert (answer.verdict, answer.candidate) == ("answered", "Joren Fay")
    assert [cited.quote for cited in answer.citations] == [
        "| Name: Joren Fay | Town: Osmund | Wage: 1400 |"
    ]


async def test_unknown_three_times_is_a_refusal(ask: Ask) -> None:
    look = [{"tool": "search", "arguments": {"query": q}} for q in ("Lomna", "founder", "market")]
    turns = [UNKNOWN | {"wants": [one]} for one in look]
    script = AgentScript({"answer_or_search": [*turns, UNKNOWN]})
    answer = await ask(script, "Who founded the Lomna Market?")
    assert len(script.prompts) == 4
    assert answer.verdict == "refused" and answer.missing == "its founder"
    assert not answer.candidate and not answer.citations


async def test_two_rejections_bind_graphsearch(ask: Ask) -> None:
    replies = {
        "decompose_text": {"queries": ["When was Karel Dohnal born?"]},
        "draft": {"reasoning": "a guess", "answer": "Karel Dohnal"},
        "verify": {"verdict": "REJECT", "missing": "the bridge of Mira Salun"},
        "expand_text": [
            {"queries": ["Which bridge did Mira Salun build?"]},
            {"queries": ["maps?"]},
        ],
        "answer": UNKNOWN | {"missing": "the bridge of Mira Salun"},
    }
    script = AgentScript(replies)
    question = "Who was older at the opening of their bridge, Karel Dohnal or Mira Salun?"
    answer = await ask(script, question, recipe="graphsearch+clew", mode="reject")
    assert script.prompts.count("expand_text") == 2 and script.prompts[-1] == "answer"
    assert answer.verdict == "refused" and answer.missing == "the bridge of Mira Salun"


async def test_an_insufficient_argument_binds_rograg(ask: Ask) -> None:
    steps = [{"op": "retrieve", "args": ["Karel Dohnal", "opened", "?"]}]
    replies = {
        "logic": {"steps": steps},
        "read_values": {"values": [{"text": "1887", "items": [1]}]},
        "check_argument": {"sufficient": False, "missing": "the bridge of Mira Salun"},
        "answer": UNKNOWN,
    }
    script = AgentScript(replies)
    question = "Who was older at the opening of their bridge, Karel Dohnal or Mira Salun?"
    answer = await ask(script, question, recipe="rograg+clew", mode="reject")
    assert script.prompts.count("answer") == 1  # by the dual level alone
    assert "fell back" in answer.note and answer.verdict == "refused"


@pytest.mark.parametrize("cut", [False, True])
async def test_a_model_may_think_for_long_first(ask: Ask, cut: bool) -> None:
    said = says("Marrow is a town on the river Elder {river Elder}.", "Elder")

    def think(request: Request) -> ScriptedReply:
        return f"<think>{THOUGHT}</think>" + said(request)

    def stop(request: Request) -> ScriptedReply:
        used = Usage(1, 10, request.max_tokens or 1)
        return Reply(f"<think>{THOUGHT}", used, "length")

    answer = await ask(in_turn(stop, think) if cut else think, "On which river is Marrow?")
    assert answer.candidate == "Elder" and answer.citations and not answer.model_error


@pytest.mark.parametrize("marks", ["{0}{1}", "[{2},{3}]", "【{2}】【{3}】", "[99]{0}{1}"])
async def test_marks_are_read_however_they_are_written(ask: Ask, marks: str) -> None:
    def say(request: Request) -> str:
        lines = [of_line(request, words) for words in ("1841", "1887")]
        text = marks.format(*lines, *(one.strip("[]") for one in lines))
        return json.dumps({"enough": True, "answer": f"He was 46 {text}.", "short": "46"})

    answer = await ask(say, "How old was K. D. when the bridge opened?", mode="reject")
    assert answer.answer.startswith("He was 46. [1][2]") or answer.answer.startswith("He was 46")
    assert len(answer.citations) == 2


async def test_no_document_can_pass_for_a_line_of_evidence(ask: Ask) -> None:
    def say(request: Request) -> str:
        prompt = request.messages[-1].content
        assert re.search(r"^ +\[1\] Marrow: .*Nile", prompt, re.M)
        return says("Marrow is on the Elder {river Elder}.", "Elder")(request)

    answer = await ask(say, "On which river is Marrow, says Tarn Radio?", mode="reject")
    assert [cited.doc.rpartition("/")[2] for cited in answer.citations] == ["marrow.md"]


async def test_the_last_word_of_a_model_that_changes_its_mind_stands(ask: Ask) -> None:
    first = {"answer": "It is Vera Holm.", "short": "Vera Holm", "enough": False}
    look = [{"tool": "search", "arguments": {"query": "Tin Bridge"}}]
    script = in_turn(
        lambda _: json.dumps(first | {"wants": look}),
        says("It is Anton Belik {Anton Belik}.", "Anton Belik"),
    )
    answer = await ask(script, "Who designed the Tin Bridge?")
    assert answer.candidate == "Anton Belik" and "Vera" not in answer.answer


async def test_only_the_sentence_without_a_source_is_marked(ask: Ask) -> None:
    text = "Marrow is on the Elder {river Elder}. Whales never come that far."
    answer = await ask(says(text, "Elder"), "On which river is Marrow?")
    assert answer.answer.endswith("Whales never come that far. (not found in the documents)")
    assert answer.answer.count("not found") == 1


@pytest.mark.parametrize("mode", ["open", "reject"])
async def test_a_follow_up_means_what_the_model_makes_of_it(ask: Ask, mode: str) -> None:
    reply = says("She was born in 1870 {1870}.", "1870")

    def say(request: Request) -> str:
        if prompt_name([{"content": m.content} for m in request.messages]) == "condense":
            return json.dumps({"question": "When was Mira Salun born?"})
        return reply(request)

    history = [ConversationTurn("Who drew maps?", "Mira Salun.")]
    answer = await ask(say, "And born when?", mode=mode, manner=AskOptions(history=history))
    assert answer.candidate == "1870"
    assert any(step.input == "When was Mira Salun born?" for step in answer.trace)


async def test_an_own_sum_rests_on_what_it_was_computed_from(ask: Ask) -> None:
    script = in_turn(
        wants("calculate", expression="1909 - 1841"),
        says("He lived for 68 years {1909 - 1841 = 68}{1841-1909}.", "68 years"),
    )
    answer = await ask(script, "For how long did Karel Dohnal live?", mode="reject")
    assert answer.verdict == "answered" and answer.answer == "He lived for 68 years. [1]"
