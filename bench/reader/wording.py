"""Varies how a question is put: case, mark, politeness, and now and then a slip of the keyboard."""

import random

POLITE = (
    "Could you tell me",
    "Please tell me",
    "I would like to know",
    "Do you know",
    "Quick question",
    "Tell me",
    "I need to find out",
    "Can you help me out",
    "hi",
    "Please answer",
)
CLOSING = ("please", "thanks", "if you know", "according to the text")
SLIP_SHARE = 0.12  # of varied questions
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def vary_question(question: str, rng: random.Random) -> str:
    """Change the wording of a question in one or two ways that leave its meaning."""
    out = question.strip()
    way = rng.random()
    if way < 0.30:
        out = out.lower()
    elif way < 0.50:
        out = out.rstrip("?").rstrip()
    elif way < 0.62:
        out = out.lower().rstrip("?").rstrip()
    elif way < 0.82:
        out = f"{rng.choice(POLITE)}{rng.choice((': ', ', ', ' - '))}{_lower_first(out)}"
    elif way < 0.88:
        out = f"{out.rstrip('?').rstrip()}, {rng.choice(CLOSING)}?"
    if rng.random() < SLIP_SHARE:
        out = _slip(out, rng)
    return out


def _lower_first(text: str) -> str:
    """Lower-case the first letter, unless the word looks like a name or an acronym."""
    word = text.split(" ", 1)[0]
    if word.lower() in _OPENERS:
        return text[:1].lower() + text[1:]
    return text


_OPENERS = frozenset(
    (
        "who what when where which why how whose whom is are was were do does did can could in on "
        "at by for from to the a an of during name give list"
    ).split()
)


def _slip(text: str, rng: random.Random) -> str:
    """Swap, drop or double one letter inside a long word that is no name or number."""
    words = text.split(" ")
    long = [
        at for at, word in enumerate(words) if len(word) > 4 and word.isalpha() and word.islower()
    ]
    if not long:
        return text
    at = rng.choice(long)
    word, place = words[at], rng.randint(1, len(words[at]) - 2)
    kind = rng.randint(0, 3)
    if kind == 0:
        word = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    elif kind == 1:
        word = word[:place] + word[place + 1 :]
    elif kind == 2:
        word = word[:place] + word[place] + word[place:]
    else:
        word = word[:place] + rng.choice(_LETTERS) + word[place + 1 :]
    return " ".join([*words[:at], word, *words[at + 1 :]])
