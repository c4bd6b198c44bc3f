"""Tells whether a question wants breadth: an account or a list, not one fact.

Two look at it. Rules go by how a question is built: an order to give an account, a word for a
summary, several things asked for by what they matter ("the main …") or by all of them, what a whole
document says, and how something changed. A linear model on the question's vector and shape, for the
default embedder, knows wordings that no rule lists, and objects to orders that ask for one fact; it
is fitted on wordings of our own (`clew.retrieve.wording`).
"""

import re
from collections.abc import Sequence

from clew.context import Context
from clew.retrieve.question import QUESTION_WORDS, strip_courtesy
from clew.retrieve.question_shape import is_plural
from clew.retrieve.wording import can_judge, judge
from clew.text.names import Tokens, tokenize_question

_ORDERS = frozenset(
    """
    summarise summarize describe outline discuss explain trace characterise characterize list
    enumerate compare contrast overview review survey recap
    """.split()
)
_GIVING = frozenset("name give show find identify mention provide state tell get collect".split())
_MAX_ORDER_POSITION = 4  # words before an order: "could you please summarise"
_SUMMARIES = frozenset(
    "summary summaries overview synopsis recap rundown outline gist takeaways".split()
)
_WITHIN = frozenset("in from by on within".split())  # "in the overview"
_IMPORTANCE = frozenset(
    "main major key important significant notable principal primary chief central core essential "
    "crucial leading top".split()
)
_TOTALITY = frozenset("all every each various different".split())
ORDERS = _ORDERS | _GIVING
"""Verbs that a request may begin with instead of a question word."""
BREADTH_WORDS = ORDERS | _SUMMARIES | _IMPORTANCE | _TOTALITY
"""They say that breadth is wanted, not of what."""
_ONE_FACT = frozenset("who whom whose when where which how".split())
# They may stand between "what are" and the word that says which: "the company's main …".
_DETERMINERS = frozenset("the a an his her its their our my your this these those s".split())
_OPEN_NUMBER = frozenset("some several most".split())  # not "two": that asks for as many facts
_MAX_BETWEEN = 6
_MAX_ADJECTIVES = 3  # words between "main" and its noun
# Nouns of which there are several parts to tell: two of them ask for an account by themselves.
_ACCOUNT_NOUNS = frozenset(
    """
    history evolution development overview consequences causes effects impact impacts features
    aspects factors trends challenges criticisms measures policies steps stages events reasons
    circumstances advantages disadvantages differences similarities methods approaches
    """.split()
)
_ODD_PLURALS = frozenset("people men women children criteria phenomena data media feet".split())
DOCUMENTS = re.compile(
    r"\b(?:these|this|those|the|our|my|your|all)\s+(?:\w+\s+)?"
    r"(?:documents?|docs|corpus|collection|files?|pages?|texts?|papers?|articles?|notes|reports?|"
    r"knowledge base|sources?|material|archive)\b"
)
"""Names what is asked as a whole: "these documents", "our knowledge base"."""
_SAYING = re.compile(
    r"\b(?:about|covers?|covered|contains?|deals?|discuss\w*|includes?|addresse?s?|treats?)\b"
)
_WHAT_IS_KNOWN = re.compile(
    r"\bwhat(?:'s|’s)?\s.{0,24}\b(?:know|known|tell|say|said)\s(?:me |us )?about\b"
    r"|\btell (?:me |us )?(?:\w+ ){0,2}about\b|\A(?:\w+ ){0,2}(?:everything|all|more) about\b"
)
_DIFFERENCE = re.compile(
    r"\Awhat (?:is|are|was|were) (?:the |some )?(?:main |key |major )?"
    r"(?:differences?|distinctions?|similarit(?:y|ies)) (?:between|of)\b"
)
_CHANGE = re.compile(r"\Ahow (?:has|have|had|did)\b.*\b(?:change|evolve|develop(?=e?d?\b))e?d?\b")
_HEARD_ABOUT = re.compile(r"\A(?:something |anything |more |a bit |a little )?about\b")
_SIGNS_ZH = re.compile(
    "总结|概述|概括|综述|归纳|梳理|概要|概况|列出|列举|描述|哪些|比较|介绍一?下|(?:\\A|请|简单|简要|详细)介绍"
    "|[讲说谈]一?[讲说谈下]|(?:告诉我|说出|给出|找出).{0,3}(?:所有|全部|每)"
    "|(?:主要|关键|重要|核心|重大)[^是]{1,10}(?:是什么|有什么|包括什么|都是|是啥)"
    "|(?:如何|怎样|怎么)(?:变化|演变|发展)|所有.{1,10}是什么"
)


_LIKELY, _POSSIBLE = 0.5, 0.1  # least probability by the model alone, and where a rule agrees


async def judge_breadth(ctx: Context, likely: float = _LIKELY) -> bool:
    """Tell whether a question wants breadth, by rules and, where it knows the words, the model.

    `likely` is the least probability by the model alone: ranking loses little by an error.
    """
    ruled = wants_breadth(ctx.question)
    several = _asks_for_several(list(tokenize_question(ctx.question).keys))
    if ruled and (several or _SIGNS_ZH.search(ctx.question)):
        return True
    if not can_judge(ctx):
        return ruled
    [chance] = await judge(ctx, "breadth", [ctx.question])
    return chance > (_POSSIBLE if ruled else likely)


def wants_breadth(question: str) -> bool:
    """Tell by its wording whether a question asks for an account with several parts."""
    if _SIGNS_ZH.search(question):
        return True
    plain = strip_courtesy(question)
    t = tokenize_question(plain)
    keys = list(t.keys)
    if not keys:
        return False
    said = plain.lower()
    return (
        _orders_account(t)
        or (keys[0] not in _ONE_FACT and _names_summary(t))
        or _asks_for_several(keys)
        or sum(key in _ACCOUNT_NOUNS for key in keys) > 1
        or (keys[0] == "what" and bool(DOCUMENTS.search(said) and _SAYING.search(said)))
        or any(one.search(said) for one in (_WHAT_IS_KNOWN, _DIFFERENCE, _CHANGE))
        or (said != question.lower().strip() and bool(_HEARD_ABOUT.search(said)))
    )


def _orders_account(t: Tokens) -> bool:
    """Whether it begins with an order: "describe …", "name all …", "give the members of …"."""
    for at, key in enumerate(t.keys[:_MAX_ORDER_POSITION]):
        if key in _ORDERS and not (at and t.upper[at]):
            asked = {"what", *_ONE_FACT} - {"how"}  # "how would you describe" is an order, too
            if t.keys[at + 1 : at + 2] and t.keys[at + 1] in asked - {"what"}:
                return False  # "explain who founded it" asks for one fact
            return all(one in QUESTION_WORDS and one not in asked for one in t.keys[:at])
    if t.keys[0] not in _GIVING:
        return False
    rest = [key for key in t.keys[1:] if key not in ("me", "us")]
    if rest[:1] and rest[0] in _TOTALITY:
        return True
    return bool(rest) and rest[0] in _DETERMINERS and _has_plural(rest[1:])


def _names_summary(t: Tokens) -> bool:
    """Whether a summary is asked for: not part of a name, and not where something stands."""
    return any(
        key in _SUMMARIES and not t.upper[at] and not _WITHIN & set(t.keys[max(0, at - 3) : at])
        for at, key in enumerate(t.keys)
        if at
    )


def _asks_for_several(keys: Sequence[str]) -> bool:
    """Whether things are asked for by their importance or all of them: "what are the main …"."""
    for at, key in enumerate(keys):
        if key != "what" and (at or key not in ("which", "who")):
            continue
        plural = keys[at + 1 : at + 2] in (["are"], ["were"])
        if key == "who" and not plural:
            continue
        wanted = _IMPORTANCE | _TOTALITY | (_OPEN_NUMBER if plural else frozenset())
        begin = at + 1 + plural
        for place in range(begin, min(begin + _MAX_BETWEEN, len(keys))):
            if keys[place] in wanted:
                rest = keys[place + 1 :]
                if (plural and rest and key != "who") or _has_plural(rest):
                    return True
                break
            names = keys[place] not in QUESTION_WORDS and plural
            if not names and keys[place] not in _DETERMINERS:
                break
    return False


def _has_plural(keys: Sequence[str]) -> bool:
    """Whether the noun that these words begin with is a plural: "new members of", "bugs"."""
    for key in keys[: _MAX_ADJECTIVES + 1]:
        if key in _ODD_PLURALS:
            return True
        if key in QUESTION_WORDS and key not in _IMPORTANCE | _TOTALITY | _DETERMINERS:
            return False
        if is_plural(key):
            return True
    return False
