"""Condense a follow-up question and its conversation into one standalone question.

With a model, or by rules that replace pronouns by what earlier questions and answers name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from clew.agents.core.messages import CANDIDATE_LABEL
from clew.agents.rules.question_analysis import find_names
from clew.context import Context
from clew.index.view import View
from clew.llm.chat import UNUSABLE_REPLY, Chat, Request
from clew.llm.prompt import Prompt
from clew.retrieve.question import OPENING_WORDS, QUESTION_WORDS
from clew.text.language import prompt_language
from clew.text.names import name_key
from clew.text.unicode import UNSPACED_CHAR, split_words

_PERSON_PRONOUNS = frozenset("he she him his her 他 她".split())
_THING_PRONOUNS = frozenset("it its 它".split())
_PRONOUN = re.compile(
    r"\b(?:he|she|him|his|her|it|its|they|them|their)\b|[他她它](?!们)", re.IGNORECASE
)
_POSSESSIVE = re.compile(
    # "her" is possessive before a noun: not at the end, not before a preposition or conjunction.
    r"\b(?:his|its|their|her(?=\s+(?!(?:in|at|on|to|for|by|with|from|and|or|when|where|who|as)\b)"
    r"\w))\b",
    re.IGNORECASE,
)
_WHO_IS = re.compile(r"\s*who(?:'s|\s+(?:is|was))\s+", re.IGNORECASE)
_ASKS_WHO = re.compile(r"\b(?:who|whom|whose)\b|谁", re.IGNORECASE)
_MAX_TURNS = 6  # latest turns that are used
_MAX_ANSWER_CHARS = 300  # characters of each answer
_MAX_QUESTION_CHARS = 2000  # and of each question
# Words that a condensed question may lose: question words, but not what is asked for.
_OPTIONAL_WORDS = OPENING_WORDS - frozenset("born die died film song album book".split())
# A reference to something earlier may be replaced by its name: "the bridge", "that year".
_DEFINITE_NOUN = re.compile(r"\b(?:the|this|that|these|those)\s+(?P<noun>\w+)", re.IGNORECASE)
_STEM_LETTERS = 4  # letters by which two forms of a word count as the same
_CONTEXT_WORDS = re.compile(
    r"\b(?:he|she|it|they|him|her|them|his|hers|its|their|theirs|this|that|these|those|there|"
    r"then|the (?:same|first|second|latter|former|other)|also|too|else|ones)\b|"
    r"^(?:and|but|what about|how about|why|so)\b",
    re.IGNORECASE,
)
# Pronouns, but not as part of a word (吉他, 其他, 马耳他, 犹他; 那不勒斯), and bare question words.
_CONTEXT_WORDS_CJK = re.compile(
    r"(?<![吉其耳犹])他(?!那)|[她它]|[这那](?:[个些里位部座本家儿种次年时是]|么)|^[这那](?!不勒斯)|"
    r"呢\s*[？?]?$|其(?=[父母妻夫子女导作])|前者|后者|彼女?[はがのを]|それ|その|그(?:는|녀|의|것|들)|"
    r"^(?:为什么|为何|何时|什么时候|在?哪里|在?哪儿|谁|多少|怎么样?|然后|还有)(?:呢|的)?\s*[？?]?$"
)
# A word that joins a follow-up to what was said, and nothing else.
_CONNECTIVE = re.compile(
    r"^(?:(?:and|but|so|then|also)\b[\s,]*|(?:那么|然后|还有|另外)[，,]?)+", re.IGNORECASE
)
# A follow-up that only names another subject: "What about N?", "And N?", "N呢？".
_ELLIPSIS = re.compile(
    r"(?:what|how) about (?P<name>[^?]+?)\??|(?:那么?)?(?P<zh>[^?？]{2,20})呢\s*[?？]?",
    re.IGNORECASE,
)
# A follow-up that only names other things of the same kind: "the C# ones by N".
_ONES = re.compile(
    r"(?:the\s+)?(?P<which>(?:[\w#+.’'-]+\s+){0,4}?)ones?\b(?:\s+(?P<tie>[a-z]+)\b[^?]*)?",
    re.IGNORECASE,
)
_THERE = re.compile(r"\b(?:(?P<where>in|from|at|to|near) )?there\b", re.IGNORECASE)
_THERE_IS = re.compile(
    r"\bthere\s+(?:is|are|was|were|be|been|any|an?|no)\b|\b(?:is|are|was|were)\s+there\s+\w",
    re.IGNORECASE,
)
_CITATION_MARK = re.compile(r"\s*\[\d+\]")
_CITED_SENTENCE = re.compile(r"[^\[\]]+(?:\[\d+\]\s*)+[.。]")
_REFUSAL_PREFIXES = ("Refused:", "无法回答")
_NAME_PARTICLES = frozenset(
    "of the and de von van der den la le du di da del al bin in on y".split()
)
_MAX_NAME_WORDS = 8  # words of a short answer
_CHINESE_NAME = re.compile("[\u4e00-\u9fff·]{2,12}")


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One earlier question of a conversation and its answer."""

    question: str
    answer: str = ""


class CondensedQuestion(BaseModel, title="Condensed"):
    """What the model must answer."""

    question: str


CONDENSE = Prompt("condense", CondensedQuestion, {"history", "question"}, documents={"history"})


def needs_history(question: str) -> bool:
    """Whether a question seems to depend on earlier turns.

    Length means nothing in scripts without spaces: there only pronouns or a bare question word do.
    """
    if UNSPACED_CHAR.search(question):
        return _CONTEXT_WORDS_CJK.search(question.strip()) is not None
    return len(question.split()) <= 3 or _CONTEXT_WORDS.search(question) is not None


async def condense_question(ctx: Context, history: Sequence[ConversationTurn]) -> str:
    """Rewrite the context's question so that it can be understood without the history."""
    asked_turns = [turn for turn in history if turn.question.strip()][-_MAX_TURNS:]
    recent = [
        ConversationTurn(turn.question[:_MAX_QUESTION_CHARS], turn.answer) for turn in asked_turns
    ]
    if not recent:
        return ctx.question
    async with ctx.step("condense", ctx.question) as step:
        chat = step.ctx.chat("plan")
        condensed = await _condense_by_model(step.ctx, chat, recent) if chat else ""
        step.output = question = condensed or _condense_by_rules(ctx, recent)
        if chat and not condensed:
            step.output += " (the model's reply is not usable: condensed by rules)"
        return question


def _condense_by_rules(ctx: Context, recent: Sequence[ConversationTurn]) -> str:
    """Replace what points back; only a question that names nothing takes over earlier names.

    The earlier question is never asked again: its names, or its words where it has none, follow in
    brackets.
    """
    if not needs_history(ctx.question):
        return ctx.question
    question, view = _drop_connective(ctx.question), ctx.view
    meant = _follow_referents(view, recent)
    if about := _find_other_subject(view, question):
        return _ask_about(view, recent[-1].question, about)
    rewritten = _replace_pronouns(view, _replace_there(question, meant), meant)
    if rewritten != question or find_names(view, rewritten):
        return rewritten
    last = recent[-1]
    carried = [*find_names(view, last.question)]
    carried += [extract_answer_name(view, last.question, last.answer)]
    kept = ", ".join(dict.fromkeys(filter(None, carried))) or last.question.rstrip(" ?？")
    return f"{question.rstrip(' ?？')} ({kept})?"


def _drop_connective(question: str) -> str:
    """Return a question without the word that joins it to the one before: "And where …"."""
    rest = _CONNECTIVE.sub("", question.strip(), count=1)
    return rest[:1].upper() + rest[1:] if rest.strip(" ?？") else question


def _find_other_subject(view: View, question: str) -> str:
    """Return the name that is all of a follow-up: "What about N?", "And N?"."""
    if found := _ELLIPSIS.fullmatch(question.strip()):
        return (found["name"] or found["zh"]).strip()
    bare = question.strip(" ?？")
    if _ONES.fullmatch(bare) and find_names(view, bare):
        return bare
    return bare if find_names(view, bare) == [bare] else ""


def _ask_about(view: View, asked: str, name: str) -> str:
    """Return the earlier question with this name instead of its own: "What about Anton Reeve?"."""
    if replaced := _replace_ones(view, asked, name):
        return replaced
    names = find_names(view, asked)
    if len(names) != 1:
        return f"{asked.rstrip(' ?？')} ({name})?"
    bare = re.sub(r"^the\s+", "", names[0], flags=re.IGNORECASE)
    whole = re.compile(rf"(?:\bthe\s+)?{re.escape(bare)}", re.IGNORECASE)
    return whole.sub(lambda _: name, asked, count=1)


def _replace_ones(view: View, asked: str, other: str) -> str:
    """Return the earlier question about others of a kind: "the C# ones by N" for "C++ books by M".

    The noun stands before the word that ties a name to it, or behind the name that tells which.
    """
    found = _ONES.fullmatch(other.strip(" ?？"))
    names = [re.escape(name) for name in find_names(view, asked)]
    if found is None or not names:
        return ""
    name, tie = "|".join(names), re.escape(found["tie"] or "")
    behind = rf"\s+{tie}\s+(?:the\s+)?(?:{name})" if tie else ""
    which = rf"(?:(?:{name})\s+)" + ("?" if tie else "")
    place = re.search(rf"{which}(?P<noun>[a-z]\w*){behind}(?!\w)", asked)
    if place is None:
        return ""
    same = re.sub(r"\bones?\b", place["noun"], found[0], count=1, flags=re.IGNORECASE)
    same = re.sub(r"^the\s+", "", same, flags=re.IGNORECASE)
    before = asked[: place.start()]
    told = re.search(r"\b([a-z]+)\s+$", before)  # "stone" of "stone bridges"
    if found["which"] and told and told[1] not in QUESTION_WORDS | OPENING_WORDS:
        before = before[: told.start()]
    return before + same + asked[place.end() :]


def _replace_there(question: str, meant: "_Referents") -> str:
    """Replace "there" by the place that was named last; not where it only begins a clause."""
    if not meant.thing or _THERE_IS.search(question):
        return question
    return _THERE.sub(lambda found: f"{found['where'] or 'in'} {meant.thing}", question)


async def _condense_by_model(ctx: Context, chat: Chat, recent: Sequence[ConversationTurn]) -> str:
    """Ask the model; return "" when its rewrite is unusable or loses the question."""
    past = "\n".join(
        f"Q: {t.question}\nA: {' '.join(t.answer.split())[:_MAX_ANSWER_CHARS]}" for t in recent
    )
    try:
        reply = await CONDENSE.ask(
            chat,
            language=prompt_language(ctx.question),
            like=Request(max_tokens=120),
            history=past,
            question=ctx.question,
        )
    except UNUSABLE_REPLY:
        return ""
    question = reply.question.strip()
    known = {*split_words(past), *split_words(ctx.question)} - QUESTION_WORDS
    return question if known & set(split_words(question)) and _keeps_question(ctx, question) else ""


def _keeps_question(ctx: Context, condensed: str) -> bool:
    """Whether a condensed question keeps the names and content words of the original.

    Given a history about Anton Reeve, a model may ask about him again, whoever the question names.
    """
    kept = split_words(condensed)
    names = {word for name in find_names(ctx.view, ctx.question) for word in split_words(name)}
    if not names <= set(kept):
        return False
    if UNSPACED_CHAR.search(ctx.question):  # character pairs, of which a pronoun changes two
        pairs = split_words(ctx.question)
        return 2 * sum(pair in kept for pair in pairs) >= len(pairs)
    replaced = {
        word for found in _DEFINITE_NOUN.finditer(ctx.question) for word in split_words(found[1])
    }
    wanted = set(split_words(ctx.question)) - _OPTIONAL_WORDS - replaced
    return all(any(word.startswith(want[:_STEM_LETTERS]) for word in kept) for want in wanted)


@dataclass(frozen=True, slots=True)
class _Referents:
    """The person and the thing that the conversation is about."""

    person: str = ""
    thing: str = ""

    def resolve(self, pronoun: str) -> str:
        """Return what a pronoun stands for, or ""."""
        word = pronoun.lower()
        if word in _PERSON_PRONOUNS:
            return self.person
        return self.thing if word in _THING_PRONOUNS else self.person or self.thing


def resolve_pronouns(view: View, question: str, before: Sequence[ConversationTurn]) -> str:
    """Replace the pronouns of a question where rules can resolve them."""
    return _replace_pronouns(view, question, _follow_referents(view, before))


def _follow_referents(view: View, turns: Sequence[ConversationTurn]) -> _Referents:
    """Return whom and what a conversation is about at its end."""
    meant = _Referents()
    for turn in turns:
        asked = _replace_pronouns(view, turn.question, meant)
        meant = _update_referents(view, meant, asked, turn.answer)
    return meant


def _update_referents(view: View, meant: _Referents, asked: str, answer: str) -> _Referents:
    names, answer_name = find_names(view, asked), extract_answer_name(view, asked, answer)
    about = names[0] if len(names) == 1 else ""
    if _ASKS_WHO.search(asked) is not None:
        # "Who made X?" asks for a person and is about a thing; "who was X?" is about a person.
        if _asks_who_is(asked, about):
            return _Referents(about, meant.thing)
        return _Referents(answer_name or (meant.person if about == meant.person else ""), about)
    # A new name may be a person or a thing; a known thing stays one.
    person = meant.person if about in ("", meant.thing) else _describe_owner(asked, about)
    return _Referents(person, answer_name or about or meant.thing)


def _describe_owner(asked: str, name: str) -> str:
    """Return "the engineer of N" where a question is about that person, else the name N."""
    found = re.search(rf"\bthe (?:\w+ )?\w+ of (?:the )?{re.escape(name)}", asked, re.IGNORECASE)
    return found[0] if found else name


def _replace_pronouns(view: View, question: str, meant: _Referents) -> str:
    # A name in the question itself may be what the pronoun means.
    if find_names(view, question):
        return question

    def instead(found: re.Match[str]) -> str:
        name = meant.resolve(found[0])
        if not name:
            return found[0]
        return f"{name}'s" if _POSSESSIVE.match(question, found.start()) else name

    return _PRONOUN.sub(instead, question)


def _asks_who_is(asked: str, name: str) -> bool:
    found = _WHO_IS.match(asked)
    return found is not None and asked[found.end() :].strip(" ?") == name


def extract_answer_name(view: View, asked: str, answer: str) -> str:
    """Return the name an answer gives: its short form, or the only new name in its first line."""
    lines = answer.strip().splitlines()
    if not lines or answer.strip().startswith(_REFUSAL_PREFIXES):
        return ""
    line = lines[0].removeprefix(CANDIDATE_LABEL).strip()
    first = _strip_marks(line)
    # "Ada Quill [1]. She was …": a first sentence that is nothing but a name is the answer.
    opening = _CITED_SENTENCE.match(line)
    for text in (first, _strip_marks(opening[0]) if opening else ""):
        if _looks_like_name(text):
            return text
    known = {name_key(name) for name in find_names(view, asked)}
    added = dict.fromkeys(name for name in find_names(view, first) if name_key(name) not in known)
    names = [name for name in added if not any(char.isdigit() for char in name)]
    return names[0] if len(names) == 1 else ""


def _strip_marks(text: str) -> str:
    """Return a text without citation marks, its last stop and spaces beyond one."""
    return " ".join(_CITATION_MARK.sub("", text).split()).rstrip(" .。")


def _looks_like_name(text: str) -> bool:
    words = text.split()
    if _CHINESE_NAME.fullmatch(text):
        return True
    if not words or len(words) > _MAX_NAME_WORDS or any(char.isdigit() for char in text):
        return False
    if text.casefold() in ("yes", "no", "unknown"):
        return False
    return words[0][0].isupper() and all(w[0].isupper() or w in _NAME_PARTICLES for w in words)
