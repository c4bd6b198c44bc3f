"""Questions of every kind with a small corpus, and models that know everything, nothing or lies."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clew.config import ROLES, ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.evaluate.datasets import Question
from clew.llm.chat import Request
from clew.llm.structured import pin_mode
from clew.models import Models
from clew.testing.fakes import ScriptedChat, prompt_name

CORPUS: Mapping[str, tuple[str, str]] = {
    "bridge": ("Marrow Bridge", "Marrow Bridge spans the Tarn. It was designed by Ilse Brandvik."),
    "ilse": ("Ilse Brandvik", "Ilse Brandvik was an engineer. She was born in Hallowmere."),
    "anton": ("Anton Reeve", "Anton Reeve was a poet. He was born in Vessen. He wrote Salt."),
    "mill": ("Old Mill", "The Old Mill was built by Anton Reeve and by Ilse Brandvik."),
    "song": ("Salt", "Salt was written by Anton Reeve in 1911."),
    "ship": ("Log", "The log calls Captain Ahab PERSON#7. It calls his ship Pequod SHIP#4."),
    "lin": ("林清远", "林清远是一位工程师。林清远出生于云溪。"),
    "dam": ("云溪大坝", "云溪大坝由林清远设计。"),
}


@dataclass(frozen=True)
class Known:
    """A question, and what a perfect model says: sentences of the documents and a short answer."""

    question: Question
    says: Sequence[str]
    short: str


def _known(name: str, text: str, says: Sequence[str], short: str, **gold: Any) -> Known:
    return Known(Question(name, text, **({"answers": (short,)} | gold)), says, short)


TOWNS = {"A": "Vessen", "B": "Hallowmere", "C": "Pellworth", "D": "Quarn"}
BUILDERS = {"A": "Anton Reeve", "B": "Orla Quist", "C": "Ilse Brandvik"}
KNOWN = (
    _known(
        "one hop",
        "Where was Ilse Brandvik born?",
        ["Ilse Brandvik was born in Hallowmere."],
        "Hallowmere",
        gold=("ilse",),
    ),
    _known(
        "two hops",
        "Where was the designer of Marrow Bridge born?",
        ["Marrow Bridge was designed by Ilse Brandvik.", "Ilse Brandvik was born in Hallowmere."],
        "Hallowmere",
        gold=("bridge", "ilse"),
    ),
    _known(
        "yes or no",
        "Was Anton Reeve born in Vessen?",
        ["Anton Reeve was born in Vessen."],
        "yes",
        gold=("anton",),
    ),
    _known(
        "yes alone",
        "Was the poet Anton Reeve born in Vessen, too?",
        ["Yes."],
        "yes",
        gold=("anton",),
    ),
    _known(
        "no about two",
        "Were Ilse Brandvik and Anton Reeve both born in Vessen?",
        ["No."],
        "no",
        gold=("ilse", "anton"),
    ),
    _known(
        "named by a phrase",
        "In which place was Ilse Brandvik born?",
        ["The answer is Hallowmere."],
        "Hallowmere",
        gold=("ilse",),
    ),
    _known(
        "named by a Chinese phrase",
        "工程师林清远出生于哪里？",
        ["答案是云溪。"],
        "云溪",
        gold=("lin",),
    ),
    _known(
        "choice",
        "Where was Ilse Brandvik born?",
        ["Ilse Brandvik was born in Hallowmere."],
        "B",
        gold=("ilse",),
        options=TOWNS,
    ),
    _known(
        "a letter alone",
        "Which is the birthplace of Ilse Brandvik?",
        ["B"],
        "B",
        gold=("ilse",),
        options=TOWNS,
    ),
    _known(
        "several letters",
        "Who built the Old Mill?",
        ["The Old Mill was built by Anton Reeve and by Ilse Brandvik."],
        "A, C",
        answers=("A", "C"),
        gold=("mill",),
        options=BUILDERS,
    ),
    _known(
        "a list",
        "Which people built the Old Mill?",
        ["The Old Mill was built by Anton Reeve and by Ilse Brandvik."],
        "Anton Reeve, Ilse Brandvik",
        answers=("Anton Reeve", "Ilse Brandvik"),
        gold=("mill",),
    ),
    _known("chinese", "林清远出生于哪里？", ["林清远出生于云溪。"], "云溪", gold=("lin",)),
    _known(
        "chinese, two hops",
        "云溪大坝的设计者出生于哪里？",
        ["云溪大坝由林清远设计。", "林清远出生于云溪。"],
        "云溪",
        gold=("dam", "lin"),
    ),
    _known(
        "topic",
        "Who wrote Salt with the poet Anton Reeve?",
        ["Salt was written by Anton Reeve in 1911."],
        "Anton Reeve",
        gold=("song",),
        entities=("Anton Reeve",),
    ),
)
REVERSION = _known(
    "reversion",
    "Which names do [SHIP#4] and [PERSON#7] stand for?",
    ["SHIP#4——Pequod", "PERSON#7——Captain Ahab"],
    "SHIP#4——Pequod; PERSON#7——Captain Ahab",
    answers=(),
    originals={"SHIP#4": ("Pequod",), "PERSON#7": ("Captain Ahab",)},
    gold=("ship",),
)
UNANSWERABLE = Known(
    Question("unanswerable", "When did Anton Reeve die?", answerable=False), [], ""
)
WRONG = "Orrin Thackeray"


SUB_QUESTIONS = {
    "designer of Marrow Bridge": "Ilse Brandvik",
    "birthplace of Ilse Brandvik": "Hallowmere",
    "Ilse Brandvik born": "Hallowmere",
    "birthplace of Anton Reeve": "Vessen",
    "云溪大坝的设计者": "林清远",
    "林清远出生于": "云溪",
}


PLANS = {
    "two hops": ("What is the designer of Marrow Bridge?", "Where was #1 born?"),
    "chinese, two hops": ("云溪大坝的设计者是谁？", "#1出生于哪里？"),
}
"""Questions that are looked up one after the other."""

READING = ("read", "read_graph", "refine_read", "refine_read_graph")
"""Prompts that look one thing up in a page of evidence."""


def find_known(message: str) -> Known | None:
    """Return the question of the set that a message asks; the longest text that it contains."""
    asked = [one for one in (*KNOWN, REVERSION, UNANSWERABLE) if one.question.text in message]
    options = [one for one in asked if "\nB. " in message and one.question.options]
    plain = [one for one in asked if "\nB. " not in message and not one.question.options]
    return max(options or plain, key=lambda one: len(one.question.text), default=None)


def perfect(messages: Sequence[Mapping[str, str]]) -> str:
    """Answer every prompt from the gold."""
    name, last = prompt_name(messages), messages[-1]["content"]
    known = find_known("\n".join(message["content"] for message in messages[-3:]))
    if name.startswith("judge"):
        return _judge(messages)
    if name in PLANNING and known is not None and (known.short or name != "logic"):
        return json.dumps(_plan(name, PLANS.get(known.question.id, [known.question.text])))
    parts = [answer for words, answer in SUB_QUESTIONS.items() if words in last]
    if name in READING and parts and (known is None or known.question.text not in last):
        return _reply(name, [], parts[0])
    if known is None or not known.short:
        return _reply(name, [], "unknown", enough=False)
    return _reply(name, known.says or [known.short], known.short)


PLANNING = ("decompose", "involved", "relations", "logic")
LOGIC = {
    PLANS["two hops"]: (("Marrow Bridge", "designer"), ("#1", "birthplace")),
    ("Were Ilse Brandvik and Anton Reeve both born in Vessen?",): (
        ("Ilse Brandvik", "birthplace"),
        ("Anton Reeve", "birthplace"),
    ),
}
CHAIN = (("Marrow Bridge", "designer", "Entity#1"), ("Entity#1", "birthplace", "Entity#2"))


def _plan(name: str, questions: Sequence[str]) -> dict[str, Any]:
    if name == "relations":
        facts = CHAIN if questions == PLANS["two hops"] else ()
        keys = ("subject", "relation", "object")
        return {"facts": [dict(zip(keys, fact, strict=True)) for fact in facts]}
    if name == "logic":
        steps = LOGIC.get(tuple(questions), [("it", questions[-1])])
        return {"steps": [{"op": "retrieve", "args": [*step, "?"]} for step in steps]}
    if name == "decompose":
        return {"questions": [*questions]}
    return {"parts": [{"question": question} for question in questions]}


def silent(messages: Sequence[Mapping[str, str]]) -> str:
    """Say nothing at all."""
    return ""


def wrong(messages: Sequence[Mapping[str, str]]) -> str:
    """Give the same false answer to every question."""
    if prompt_name(messages).startswith("judge"):
        return _judge(messages)
    return _reply(prompt_name(messages), [f"It was {WRONG}."], WRONG)


def _reply(name: str, says: Sequence[str], short: str, *, enough: bool = True) -> str:
    text = " ".join(says)
    replies: dict[str, Any] = {
        **dict.fromkeys(READING, {"quote": "".join(says[-1:]), "source": 1, "answer": short}),
        "know": {"answer": " ".join(says) or short, "short": short},
        "next_thought": {"sentence": " ".join(says), "done": True},
        "reflect": {"action": "answer", "text": short},
        "check_argument": {"sufficient": enough},
        "check_result": {"sufficient": enough},
        "read_values": {"values": [{"text": short, "items": [1, 2, 3]}] if enough else []},
        "graph_r1": f"<think>known</think><answer>{short}</answer>",
    }
    noted = {"text": " ".join(says), "score": 100, "reports": [1, 2, 3, 4, 5]}
    replies["map_reports"] = {"points": [noted] if enough else []}
    usual = {"enough": enough, "answer": text if enough else "", "short": short if enough else ""}
    reply = replies.get(name, usual)
    return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)


def _judge(messages: Sequence[Mapping[str, str]]) -> str:
    """Judge as a careful reader would: right unless the answer holds the false name."""
    right = WRONG not in messages[-1]["content"].rpartition("Answer to")[2]
    return json.dumps({"correct": right, "score": 10 * right})


Model = Callable[[Sequence[Mapping[str, str]]], str]


def with_model(base: KnowledgeBase, model: Model) -> KnowledgeBase:
    """Return the knowledge base with a scripted model in every role."""
    chat = ScriptedChat(
        lambda request: model([{"content": str(m.content)} for m in _messages(request)])
    )
    pin_mode(chat.name, "json")
    settings = Settings(kb=base.settings.kb, models=ModelSettings(model="m"))
    other = KnowledgeBase(base.store, settings, base.embed)
    other.reader, other.rerank = base.reader, base.rerank
    other.models = Models(settings.models, base.store, chats=dict.fromkeys(ROLES, chat))
    return other


def _messages(request: Request) -> Sequence[Any]:
    return request.messages
