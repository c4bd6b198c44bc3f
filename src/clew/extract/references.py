"""Whom a pronoun of a text stands for: who was spoken of, as a person, as a thing or as several.

What is not certain is not resolved: a wrong name does more harm than a pronoun.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.text.names import name_key, strip_disambiguation
from clew.text.unicode import UNSPACED_CHAR
from clew.types import LITERAL_TYPES

# English verbs whose past is no "-ed": each entry is a verb and its other forms.
_IRREGULAR_VERBS = """
arise arose arisen|awake awoke awoken|bear bore borne|beat beaten|become became|begin began begun
bend bent|bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken
breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen
cling clung|come came|creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt
drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt
fight fought|find found|flee fled|fly flew flown|forbid forbade forbidden
forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten
give gave given|go went gone|grow grew grown|hang hung|hear heard|hide hid hidden
hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|lean leant|learn learnt
leave left|lend lent|lie lain|light lit|lose lost|make made|mean meant|meet met|pay paid
ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought
sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown
shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid
speak spoke spoken|spend spent|spin spun|spoil spoilt|spring sprang sprung|stand stood
steal stole stolen|stick stuck|strike struck|swear swore sworn|sweep swept|swell swollen
swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told
think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn
weave wove woven|weep wept|win won|withdraw withdrew withdrawn|write wrote written
undertake undertook undertaken|overcome overcame|rebuild rebuilt|withhold withheld
"""

_BASE_OF_FORM = {
    form: verb.split()[0]
    for line in _IRREGULAR_VERBS.strip().splitlines()
    for verb in line.split("|")
    for form in verb.split()[1:]
}
"""The verb that each irregular form is of: "bought" of "buy"."""

HE, SHE, IT, THEY = "he", "she", "it", "they"
_PRONOUNS = {
    **{"he": HE, "his": HE, "she": SHE, "her": SHE, "it": IT, "its": IT},
    **{"they": THEY, "their": THEY, "他": HE, "她": SHE, "它": IT},
}
PRONOUN = re.compile(r"\b(he|she|it|they|his|her|its|their)\b(?!['’])", re.IGNORECASE)
CHINESE_PRONOUN = re.compile(r"[他她它](?!们)")
_DEFINITION = re.compile(r"\b(?:is|was|are|were)\s+(?:an?|the|one of)\s+([^.,;(]+)", re.IGNORECASE)
_BORN = re.compile(r"\bborn\b|出生|生于", re.IGNORECASE)
_GOES_ON_AS_IT = re.compile(r"\s*Its?\s+(?!is\b|was\b)\w")
_ITS_FIRST = re.compile(r"\b(he|she|his|her|him|its)\b", re.IGNORECASE)
_HE_OR_SHE = re.compile(r"\b(?:he|she|his|her|him)\b", re.IGNORECASE)
_ANY_PRONOUN = re.compile(rf"{PRONOUN.pattern}|{CHINESE_PRONOUN.pattern}", re.IGNORECASE)
_PREPOSITION = re.compile(r"of|in|on|at|for|from|by|with|to|and|or|that|which|who|where")
_NOUN_END = re.compile(rf"\w+(?:ed|ing)|{_PREPOSITION.pattern}")
_PERSON_NOUN = re.compile(r"\w{3,}(?:er|or|ist|ian|man|woman|ess)s?")
_THING_NOUN = re.compile(
    r"(?:film|movie|album|song|single|novel|book|series|play|opera|game|magazine|\w*paper|river|"
    r"town|city|village|county|district|country|island|lake|mountain|street|road|building|bridge|"
    r"church|castle|museum|school|university|college|company|band|club|team|stadium|ship|tower|"
    r"theat(?:er|re)|cent(?:er|re)|airport|station|award|battle|war|species|genus|language|disease|"
    r"software|network|journal|computer|order|number|letter|chapter|character)s?"
)
ANY = "the subject"  # stands for the subject where its name does not matter
# What stands in a place, or after an article, is no person.
_NOT_PERSON_BEFORE = re.compile(
    r"\b(?:in|at|near|on|into|across|around|over|the|an?)\s+\Z|[于在到往至从《]\Z", re.IGNORECASE
)
# "built a barn", "bought the Merz refractor"; not "is a barn" and not "in the barn".
_NEW_THING = re.compile(
    r"\b(?!(?:is|was|are|were|be|been|being|became|becomes|remains|as|in|on|at|by|of|for|with|from|to|"
    r"into|over|under|near|and|or|but|after|before|during|since|until|between|through|that|which|"
    r"than|like|all|both|when|where|while|because|if)\b)[a-z]+ (?:an?|the|two|three|many|some) "
    r"(?:[^\W\d_a-z]\w* )?[a-z]"
)
# "The studio won …", "Her first teacher was …": a subject without a name.
_UNNAMED_SUBJECT = re.compile(
    r"\W*(?:The|An?|This|That|His|Her|Its|Their|Our|One|Another) ([a-z][\w-]*)(?: ([a-z][\w-]*))?"
)
# Nouns that end a phrase for certain: "a mill in", "two novels."
_HEAD_NOUN = re.compile(
    r"\b(?:the|an?|one|two|three|his|her|its|their) (?:[a-z-]+ ){0,2}?([a-z-]{3,})"
    r"(?=[.,;:]|\s(?:in|on|at|of|by|for|from|with|to|near|and|that|which|was|is|has|had)\b)"
)
# "She bought an old mill in …": what a sentence brings in.
_OBJECT = re.compile(rf"(?={_NEW_THING.pattern})[a-z]+ (?:an?|the) ((?:[a-z-]+ )?([a-z-]+))\b")
_SURE_VERB = re.compile(r"is|was|has|had|became|also|can|could|will|would|may|does|did|\w{3,}ed")
_THIRD_PERSON = re.compile(r"\w{3,}(?<![sui])s")
_COUNT = re.compile(r"\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|no|many|some|about")
_PLURAL_VERB = re.compile(r"are|were|have")
_ARTICLES = frozenset(("the", "a", "an", "his", "her", "its", "their"))
_PHRASE_WORDS = 3  # of a subject without a name, after its article
_PERSON_BEFORE = re.compile(
    r"\b(?:brother|sister|wife|husband|son|daughter|mother|father|uncle|aunt|cousin|nephew|niece|"
    r"friend|king|queen|prince|princess|pope|saint|mrs?\.?|ms\.?|dr\.?|[a-z]{3,}(?:er|or|ist|man))"
    r"\s+\Z",
    re.IGNORECASE,
)
_UNKNOWN_TYPES = frozenset(("", "person", "name", "title", "term"))
_BEFORE_CHARS = 16  # read before a name
_PLACE_BEFORE = re.compile(
    r"\b(?:in|at|near|on|into|across|around|over|to|from|of|with|for|under|after|before)\s+"
    r"(?:the\s+)?\Z|[于在到往至从]\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A name where it stands in the document."""

    start: int
    end: int
    name: str
    type: str
    known: bool
    """Whether it is a name for certain, and not a date or number."""
    names_subject: bool

    def may_be_person(self, text: str) -> bool:
        """Whether it may name a person where it stands in the text."""
        if self.type == "person":
            return True
        if self.type in LITERAL_TYPES or self.type not in _UNKNOWN_TYPES:
            return False
        before = text[max(0, self.start - _BEFORE_CHARS) : self.start]
        if _NOT_PERSON_BEFORE.search(before) or not (self.known or self.is_called_person(text)):
            return False
        return is_unspaced(self.name[0]) or _is_person_like(self.name)

    def is_called_person(self, text: str) -> bool:
        """Whether a word for a person stands before it: "her brother Matti"."""
        before = text[max(0, self.start - _BEFORE_CHARS) : self.start]
        return _PERSON_BEFORE.search(before) is not None


def _is_person_like(name: str) -> bool:
    """Whether a name is written as persons' are: capitals only, and no noun for a thing."""
    words = strip_disambiguation(name).split()
    proper = all(word[:1].isupper() and not any(map(str.isdigit, word)) for word in words)
    return proper and not _THING_NOUN.fullmatch(words[-1].lower()) if words else False


@dataclass(slots=True)
class Reading:
    """What a reader remembers of a document: who was spoken of, and by which pronoun."""

    text: str
    subject: str = ""
    nouns: frozenset[str] = frozenset()
    """Nouns of the sentence that says what the subject is."""
    leading: str = ""
    """The name the sentence before begins with, or that its first pronoun stands for."""
    opens: bool = False
    """Whether the sentence before brings in a thing without a name, which may go on as "it"."""
    led: bool = False
    """Whether the sentence before begins with a name, or one was filled in."""
    unnamed: tuple[str, ...] = ()
    """The first words of the subject of the sentence before, if it has no name."""
    thing: str = ""
    """What has no name and goes on as "it" for certain: "the mill"."""
    heads: frozenset[str] | None = None
    """Nouns that end a phrase somewhere in the text, once they were looked for."""
    several: bool = False
    """Whether the sentence before names several things: "they" may be all of them."""
    persons: tuple[str, ...] = ()
    things: tuple[str, ...] = ()
    """The names spoken of last that may be persons, and those that may be things."""
    goes_on: bool = False
    """Whether the things are those of an earlier clause of the same sentence."""
    pronouns: dict[str, str] = field(default_factory=dict)
    """The pronoun of each name whose kind is known."""
    types: dict[str, str] = field(default_factory=dict)

    def begin(self, subject: str, sentence: str) -> None:
        """Take the subject, with what its first sentence tells about it."""
        if not subject or subject == self.subject:
            return
        self.subject = subject
        defined = _DEFINITION.search(sentence)
        lead = sentence[: defined.start()] if defined else sentence
        if not _says_name(subject, lead):
            return
        words = defined[1].lower().split() if defined else []
        end = next((at for at, word in enumerate(words) if _NOUN_END.fullmatch(word)), len(words))
        self.nouns = frozenset(words[:end])
        head = words[end - 1] if end else ""
        if defined and re.match(r"are\b|were\b", defined[0], re.IGNORECASE):
            self.pronouns[subject] = THEY
        elif _THING_NOUN.fullmatch(head) or self._is_thing(subject):
            self.pronouns[subject] = IT
        elif head and _GOES_ON_AS_IT.match(self.text.partition(sentence)[2]):
            self.pronouns[subject] = IT
        elif _BORN.search(sentence) or _PERSON_NOUN.fullmatch(head) or head:
            self._set_person(subject, certain=not head or bool(_PERSON_NOUN.fullmatch(head)))

    def _set_person(self, name: str, *, certain: bool) -> None:
        """Take the pronoun that comes first, if it is also the most frequent of both."""
        found = [_PRONOUNS[one.group().lower()] for one in _ANY_PRONOUN.finditer(self.text)]
        counts = Counter(found)
        first = next((one for one in found if certain or one != THEY), "")
        if first in (HE, SHE) and counts[first] == max(counts[HE], counts[SHE]):
            self.pronouns[name] = first
        if certain or first in (HE, SHE):
            self.types.setdefault(name, "person")

    def _is_thing(self, name: str) -> bool:
        """Whether the text says "the Tarn Valley Railway", or "its" before any "he" or "she"."""
        plain = strip_disambiguation(name)
        if " " in plain and re.search(rf"(?<!\w)[Tt]he {re.escape(plain)}(?!\w)", self.text):
            return True
        first = _ITS_FIRST.search(self.text)
        return name == self.subject and first is not None and first[0].lower() == "its"

    def leave_section(self) -> None:
        """Forget who was spoken of: below a heading a pronoun may stand for the subject only."""
        self.leading = "" if self._is_headline(self.subject) else self.subject
        self.persons, self.things = (), ()
        self.several = self.opens = False
        self.unnamed, self.thing = (), ""

    def _is_headline(self, title: str) -> bool:
        """Whether a title is a statement or a question about its page, which no pronoun means."""
        capitals = sum(word[:1] != word[:1].lower() for word in title.split())
        has_case = title[:1] != title[:1].lower()
        if title.endswith("?"):
            return True
        return has_case and 2 * capitals < len(title.split()) and self.text.count(title) < 2

    def end_sentence(self, written: str, named: Sequence[Mention]) -> None:
        """Keep what may make the pronouns of the next sentence unclear."""
        self.goes_on = False
        self.several = len({self.called(one) for one in named if one.known}) > 1
        written = written.removeprefix(f"{strip_disambiguation(self.subject)}: ")
        if not self.led and PRONOUN.match(written):  # what it speaks of is still unclear
            self.opens, self.thing = True, ""
            return
        self.opens = _NEW_THING.search(written) is not None
        unnamed = None if self.led else _UNNAMED_SUBJECT.match(written)
        self.unnamed = tuple(filter(None, unnamed.groups())) if unnamed else ()
        self.thing = self._find_unnamed(written)

    def _find_unnamed(self, written: str) -> str:
        """Return what a sentence speaks of without a name: its subject, or what someone got."""
        first, _, rest = written.partition(" ")
        if not self.led:
            return self._find_phrase("the ", rest) if first in ("The", "This", "That") else ""
        if self.pronouns.get(self.leading) not in (HE, SHE):  # it may go on as "it" as well
            return ""
        owner = f"{strip_disambiguation(self.leading)}'s "
        if written.startswith(owner):
            return self._find_phrase(owner, written[len(owner) :])
        things = {one[1] for one in _OBJECT.finditer(written) if self._ends_phrase(one[2])}
        return f"the {things.pop()}" if len(things) == 1 else ""

    def _find_phrase(self, article: str, rest: str) -> str:
        """Return the article and the words up to the first that is a verb for certain."""
        words = rest.rstrip(".!?").split()
        for size in range(1, min(_PHRASE_WORDS, len(words) - 1) + 1):
            head, verb, after = words[size - 1], words[size], "".join(words[size + 1 : size + 2])
            if not (head.isalpha() and head.islower()) or is_person_noun(head):
                break
            # "This was …" speaks of all that was said; what acts ends the phrase before it.
            if _SURE_VERB.fullmatch(head) or (size > 1 and _may_be_verb(head)):
                break
            counted = _may_be_verb(verb) and _COUNT.fullmatch(after)
            acts = after in _ARTICLES or counted or size + 1 == len(words)
            if _PLURAL_VERB.fullmatch(verb) or _PREPOSITION.fullmatch(verb):
                break
            if self._ends_phrase(head) or _SURE_VERB.fullmatch(verb) or acts:
                return article + " ".join(words[:size])
        return ""

    def _ends_phrase(self, noun: str) -> bool:
        if self.heads is None:
            self.heads = frozenset(_HEAD_NOUN.findall(self.text))
        return not is_person_noun(noun) and (noun in self.heads or f"{noun}s" in self.heads)

    def resolve(self, pronoun: str) -> str:
        """Return the name a pronoun stands for, "" if more than one fits, or none."""
        kind = _PRONOUNS[pronoun.lower()]
        if kind == THEY:
            # A single thing or person is not "they": only what leads and was said to be several.
            clear = self.pronouns.get(self.leading) == kind and not (self.several or self.opens)
            return self.leading if clear else ""
        name = self._find_person(kind) if kind in (HE, SHE) else self._find_thing()
        if name:
            self.pronouns[name] = kind
        return name

    def resolve_thing(self, pronoun: str) -> str:
        """Return the thing without a name that "it" or "its" stands for, "" if that is unclear."""
        return self.thing if _PRONOUNS[pronoun.lower()] == IT else ""

    def _find_person(self, kind: str) -> str:
        """Return whom "he" or "she" stands for: the only one who was spoken of and fits."""
        if any(map(is_person_noun, self.unnamed)):  # "The director hired Tom Ford. He …"
            return ""
        fitting = [one for one in self.persons if self.pronouns.get(one, kind) == kind]
        if self.pronouns.get(self.leading) == kind and self.leading not in fitting:
            fitting.append(self.leading)
        if len(fitting) > 1:
            # A single word may be a place; who led the sentence goes on.
            sure = [one for one in fitting if self.pronouns.get(one) == kind]
            first = self.leading if self.leading in sure else sure[0] if len(sure) == 1 else ""
            others = (one for one in fitting if one != first)
            return "" if any(map(self._is_surely_person, others)) else first
        if fitting:
            return fitting[0]
        return self.subject if self.pronouns.get(self.subject) == kind else ""

    def _is_surely_person(self, name: str) -> bool:
        return is_full_name(name) or self.types.get(name) == "person"

    def _find_thing(self) -> str:
        """Return what "it" stands for: what leads, what alone was acted on, or the subject."""
        if self.opens:
            return ""
        if self.unnamed:  # it is what goes on as "it", rather than what was acted on
            return ""
        if self.leading and self._may_be_thing(self.leading):
            return self.leading
        fitting = [one for one in self.things if self._may_be_thing(one)]
        if fitting:
            return fitting[0] if len(fitting) == 1 else ""
        return self.subject if self.pronouns.get(self.subject) == IT else ""

    def _may_be_thing(self, name: str) -> bool:
        if not name or name in self.pronouns or self.types.get(name) == "person":
            return self.pronouns.get(name) == IT
        if not _is_person_like(name) or self._is_thing(name):
            return True
        # A page that never says "he" or "she" is about no person.
        return name == self.subject and not _HE_OR_SHE.search(self.text)

    def remember(self, referent: str, named: Sequence[Mention]) -> None:
        """Keep who and what a statement speaks of; one that names no one changes nothing."""
        persons = [self.called(one) for one in named if one.may_be_person(self.text)]
        self.types.update((one.name, "person") for one in named if one.is_called_person(self.text))
        things = [
            self.called(one)
            for one in named
            if one.known and one.type != "person" and not self._is_place(one)
        ]
        if self.pronouns.get(referent, IT) in (HE, SHE):
            persons.append(referent)
        elif referent:
            things.append(referent)
        self.persons = tuple(dict.fromkeys(persons)) or self.persons
        if self.goes_on:
            things = [*self.things, *things]
        self.things = tuple(dict.fromkeys(things)) or self.things
        self.goes_on = True

    def _is_place(self, mention: Mention) -> bool:
        """Whether a name stands after a preposition: what follows it rarely goes on as "it"."""
        before = self.text[max(0, mention.start - _BEFORE_CHARS) : mention.start]
        return _PLACE_BEFORE.search(before) is not None

    def called(self, mention: Mention) -> str:
        """Return the subject's name for another name of it."""
        return resolve_mention(mention, self.subject)


def _may_be_verb(word: str) -> bool:
    """Whether a word has the form of a verb: "employs" (and "workers"), "ran"."""
    return _THIRD_PERSON.fullmatch(word) is not None or word in _BASE_OF_FORM


def resolve_mention(mention: Mention, subject: str) -> str:
    """Return the subject for another name of it; a name unlike it may be someone else's."""
    if not mention.names_subject or not subject or subject == ANY:
        return subject if mention.names_subject and subject else mention.name
    words, own = (set(name_key(one).split()) for one in (subject, mention.name))
    short = "".join(word[0] for word in mention.name.split()).lower() == subject.lower()
    unspaced = is_unspaced(subject[0]) and (subject in mention.name or mention.name in subject)
    return subject if words & own or short or unspaced else mention.name


def _says_name(name: str, text: str) -> bool:
    """Whether a text has the last word of a name, or the name in a script without spaces."""
    plain = strip_disambiguation(name)
    return bool(plain) and name_key(plain.split()[-1]) in name_key(text)


def is_full_name(name: str) -> bool:
    """Whether a name has several words, or several signs of a script without spaces."""
    return " " in name or (is_unspaced(name[0]) and len(name) > 1)


def is_person_noun(word: str) -> bool:
    """Whether a noun is said of persons, by its ending: "baker", not "tower"."""
    return bool(_PERSON_NOUN.fullmatch(word)) and not _THING_NOUN.fullmatch(word)


def is_unspaced(char: str) -> bool:
    """Whether a sign belongs to a script without spaces."""
    return UNSPACED_CHAR.match(char) is not None
