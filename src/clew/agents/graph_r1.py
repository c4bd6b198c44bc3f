"""Graph-R1's think–query–answer protocol: what is said, how it is read. No model and no store.

The served agent and training share this module, so what is trained is what is served. A step of
the model is `<think>…</think>` and then `<query>…</query>` or `<answer>…</answer>`; what the
knowledge base holds comes back as the next user turn, in `<knowledge>…</knowledge>`.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Literal

Kind = Literal["query", "answer", "none"]

STOPS = ("</query>", "</answer>")
"""A step ends where one of these closes; give them to a chat endpoint as stop sequences."""
NUDGE = "That was neither a query nor an answer. Think, then write one <query> or one <answer>."
LAST = "No queries are left. Think, then write the <answer>."
NOTHING = "(nothing was found)"
Language = Literal["en", "zh"]
NUDGES: dict[Language, str] = {
    "en": NUDGE,
    "zh": "这既不是查询，也不是答案。先思考，再写一个 <query> 或一个 <answer>。",
}
LASTS: dict[Language, str] = {"en": LAST, "zh": "查询次数已用完。先思考，再写出 <answer>。"}
NOTHINGS: dict[Language, str] = {"en": NOTHING, "zh": "（没有找到任何内容）"}

_DIVIDER = "\n=== user ===\n"
_TAGS = re.compile(r"</?(?:think|query|answer|knowledge)>")
_BLOCK = re.compile(r"<(query|answer)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_STEP = re.compile(r"\s*<think>(.*?)</think>\s*<(query|answer)>(.*?)</\2>\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Move:
    """One step of the model, as read; `formed` says that it kept to the form exactly."""

    kind: Kind
    text: str
    think: str = ""
    formed: bool = False


def read_move(said: str) -> Move:
    """Read a step; what strays from the form is still understood where it can be."""
    exact = _STEP.fullmatch(said)
    if exact is not None:
        think, kind, text = exact[1].strip(), exact[2], _unwrapped(exact[3])
        if think and text and not any(_TAGS.search(part) for part in (think, exact[3])):
            return Move("query" if kind == "query" else "answer", text, think, formed=True)
    think = said.partition("<think>")[2].partition("</think>")[0].strip()
    # What is written while thinking is no move.
    rest = said.rpartition("</think>")[2]
    block = _BLOCK.search(rest)
    text = _unwrapped(_TAGS.sub(" ", block[2])) if block is not None else ""
    if block is None or not text:
        return Move("none", "", think)
    return Move("query" if block[1] == "query" else "answer", text, think)


def _unwrapped(text: str) -> str:
    """The words of a query; some models write it as JSON `{"query": …}`."""
    text = text.strip()
    if text.startswith("{"):
        try:
            held = json.loads(text)
        except ValueError:
            return text
        if isinstance(held, dict) and isinstance(held.get("query"), str):
            return str(held["query"]).strip()
    return text


def closed(said: str) -> str:
    """Put back the closing tag that an endpoint cut off as its stop sequence."""
    block = _BLOCK.search(said.rpartition("</think>")[2])
    if block is None or block[0].endswith(f"</{block[1]}>"):
        return said
    return f"{said.rstrip()}</{block[1]}>"


@dataclass(frozen=True, slots=True)
class Protocol:
    """How many queries an episode has, and whether it has a knowledge base at all."""

    turns: int = 5
    """Queries before the final answer is demanded; 0 is R1, which answers from memory."""
    brief: bool = False
    """Only the question, no instructions: for a model trained until it knows the form."""
    language: Language = "en"
    """Of the instructions. Training keeps to English, and a brief model knows no others."""

    def opening(self, question: str) -> tuple[tuple[str, str], ...]:
        """The first messages, as (role, text)."""
        if self.brief:
            return (("user", question),)
        page = "graph_r1" if self.turns else "graph_r1_alone"
        system, user = _page(page if self.language == "en" else f"{page}.{self.language}")
        filled = Template(user).substitute(question=question, turns=self.turns)
        return ("system", system), ("user", filled)

    def knowledge(self, found: str, asked: int) -> str:
        """What the knowledge base says to the query numbered `asked`, from 1."""
        body = neutral(found).strip() or NOTHINGS[self.language]
        said = f"<knowledge>\n{body}\n</knowledge>"
        return f"{said}\n{LASTS[self.language]}" if asked >= self.turns else said

    def nudge(self, asked: int) -> str:
        """What to say to a step that was neither a query nor an answer."""
        return (LASTS if asked >= self.turns else NUDGES)[self.language]


def listed(facts: Sequence[str]) -> str:
    """Facts as the lines of one knowledge text."""
    return "\n".join(f"- {' '.join(fact.split())}" for fact in facts)


def titled(title: str, text: str) -> str:
    """A text under the name of what it is about, unless it says so itself."""
    return text if not title or title.lower() in text.lower() else f"{title}: {text}"


def paged(facts: Sequence[tuple[str, int, str]]) -> str:
    """Facts (title, place in the page, text) as a line a page, each page in its own order."""
    pages: dict[str, list[tuple[int, int, str]]] = {}
    for number, (title, place, text) in enumerate(facts):
        pages.setdefault(title or f"\0{number}", []).append((place, number, text))
    return listed(
        [
            titled(
                title if title[:1] != "\0" else "",
                " ".join(dict.fromkeys(text for _, _, text in sorted(said))),
            )
            for title, said in pages.items()
        ]
    )


def neutral(text: str) -> str:
    """Documents are material: a tag of the protocol inside one must not act as a tag."""
    return _TAGS.sub(lambda tag: tag[0].replace("<", "‹").replace(">", "›"), text)


@cache
def _page(name: str) -> tuple[str, str]:
    # Read here, not through clew.llm.prompt: training machines have no pydantic.
    text = (files("clew") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    system, _, user = text.partition(_DIVIDER)
    return system.strip(), user.strip()
