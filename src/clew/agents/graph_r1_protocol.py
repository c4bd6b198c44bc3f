"""Graph-R1's think–query–answer protocol: its messages and their parsing, without model or store.

The served agent and training share this module, so what is trained is what is served. A step of
the model is `<think>…</think>` and then `<query>…</query>` or `<answer>…</answer>`; the retrieved
knowledge comes back as the next user turn, in `<knowledge>…</knowledge>`.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Literal

ActionKind = Literal["query", "answer", "none"]
STOP_SEQUENCES = ("</query>", "</answer>")
"""Stop sequences for a chat endpoint: a step ends where one of these tags closes."""
FORMAT_REMINDER = (
    "That was neither a query nor an answer. Think, then write one <query> or one <answer>."
)
FINAL_ANSWER_REQUEST = "No queries are left. Think, then write the <answer>."
NO_RESULTS = "(nothing was found)"
_BYTES_PER_TOKEN = 4  # as in clew.llm.openai_api, which training machines cannot import
_DIVIDER = "\n=== user ===\n"
_SCORE = re.compile(r"\s*\(score \d+\.\d\d\)")
_TAGS = re.compile(r"</?(?:think|query|answer|knowledge)>")
_ACTION_BLOCK = re.compile(r"<(query|answer)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_WELL_FORMED_STEP = re.compile(
    r"\s*<think>(.*?)</think>\s*<(query|answer)>(.*?)</\2>\s*", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class GraphR1Action:
    """One parsed step of the model; `well_formed` says that it followed the format exactly."""

    kind: ActionKind
    text: str
    think: str = ""
    well_formed: bool = False


def parse_action(text: str) -> GraphR1Action:
    """Parse a step, leniently where it deviates from the format."""
    exact = _WELL_FORMED_STEP.fullmatch(text)
    if exact is not None:
        think, body = exact[1].strip(), _unwrap_json_query(exact[3])
        if think and body and not any(_TAGS.search(part) for part in (think, exact[3])):
            kind: ActionKind = "query" if exact[2] == "query" else "answer"
            return GraphR1Action(kind, body, think, well_formed=True)
    think = text.partition("<think>")[2].partition("</think>")[0].strip()
    # Tags inside the thinking are no action.
    rest = text.rpartition("</think>")[2]
    block = _ACTION_BLOCK.search(rest)
    body = _unwrap_json_query(_TAGS.sub(" ", block[2])) if block is not None else ""
    if block is None or not body:
        return GraphR1Action("none", "", think)
    return GraphR1Action("query" if block[1] == "query" else "answer", body, think)


def _unwrap_json_query(text: str) -> str:
    """Return the text of a query; some models write it as JSON `{"query": …}`."""
    text = text.strip()
    if text.startswith("{"):
        try:
            parsed = json.loads(text)
        except ValueError:
            return text
        if isinstance(parsed, dict) and isinstance(parsed.get("query"), str):
            return str(parsed["query"]).strip()
    return text


def restore_closing_tag(text: str) -> str:
    """Restore the closing tag that an endpoint removed as its stop sequence."""
    block = _ACTION_BLOCK.search(text.rpartition("</think>")[2])
    if block is None or block[0].endswith(f"</{block[1]}>"):
        return text
    return f"{text.rstrip()}</{block[1]}>"


@dataclass(frozen=True, slots=True)
class GraphR1Protocol:
    """Settings of an episode: number of queries, and instructions."""

    turns: int = 5
    """Queries before the final answer is demanded; 0 is R1, which answers from memory."""
    brief: bool = False
    """Send only the question, without instructions: for a model trained on the format."""

    def initial_messages(self, question: str) -> tuple[tuple[str, str], ...]:
        """Return the first messages, as (role, text)."""
        if self.brief:
            return (("user", question),)
        system, user = _load_prompt("graph_r1" if self.turns else "graph_r1_alone")
        filled = Template(user).substitute(question=question, turns=self.turns)
        return ("system", system), ("user", filled)

    def format_knowledge(self, found: str, asked: int) -> str:
        """Format the result of query number `asked` (from 1) as the next user turn."""
        body = escape_tags(found).strip() or NO_RESULTS
        block = f"<knowledge>\n{body}\n</knowledge>"
        return f"{block}\n{self.format_reminder(asked)}" if asked >= self.turns else block

    def format_reminder(self, asked: int) -> str:
        """Return the reply to a step that was neither a query nor an answer."""
        return FINAL_ANSWER_REQUEST if asked >= self.turns else FORMAT_REMINDER


def format_bullets(facts: Sequence[str]) -> str:
    """Format facts as a bullet list."""
    return "\n".join(f"- {' '.join(fact.split())}" for fact in facts)


def format_scored_facts(facts: Sequence[tuple[str, str, float]], tokens: int) -> str:
    """Format facts (title, text, score) as a list, best first, as far as they fit `tokens`.

    The fused facts and their scores are all that Graph-R1 shows its agent (§4.2, figure 12).
    """
    lines: list[str] = []
    left = _BYTES_PER_TOKEN * tokens
    for title, text, score in facts:
        mark = f" (score {score:.2f})"
        line = format_bullets([prefix_title(title, text)])
        size = len(line.encode("utf-8", "replace"))
        if size + len(mark) > left and lines:
            break
        if size + len(mark) > left:  # the best is cut rather than left out
            room = max(0, left - len(mark) - 4)
            line = line.encode("utf-8", "replace")[:room].decode("utf-8", "ignore") + " …"
        lines.append(line + mark)
        left -= size + len(mark) + 1
    return "\n".join(lines)


def strip_scores(text: str) -> str:
    """Remove the scores of facts, which models copy with the fact."""
    return _SCORE.sub("", text).strip()


def prefix_title(title: str, text: str) -> str:
    """Prefix a text with its page's title, unless the text contains it."""
    return text if not title or title.lower() in text.lower() else f"{title}: {text}"


def format_pages(facts: Sequence[tuple[str, int, str]]) -> str:
    """Format facts (title, position in the page, text) as one line per page, in page order."""
    pages: dict[str, list[tuple[int, int, str]]] = {}
    for number, (title, place, text) in enumerate(facts):
        pages.setdefault(title or f"\0{number}", []).append((place, number, text))
    return format_bullets(
        [
            prefix_title(
                title if title[:1] != "\0" else "",
                " ".join(dict.fromkeys(text for _, _, text in sorted(rows))),
            )
            for title, rows in pages.items()
        ]
    )


def escape_tags(text: str) -> str:
    """Escape protocol tags inside documents, so that they do not act as tags."""
    return _TAGS.sub(lambda tag: tag[0].replace("<", "‹").replace(">", "›"), text)


@cache
def _load_prompt(name: str) -> tuple[str, str]:
    # Not through clew.llm.prompt: training machines have no pydantic.
    text = (files("clew") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    system, _, user = text.partition(_DIVIDER)
    return system.strip(), user.strip()
