"""The words of a question, as values, numbers and times are looked for among them."""

from dataclasses import dataclass
from functools import cached_property

from clew.agents.rules.table_words import Word, load_operators, split_question
from clew.agents.tables.periods import Period, find_periods
from clew.agents.tables.said_numbers import find_numbers, find_typed_signs
from clew.agents.tables.spaced import find_language
from clew.agents.tables.values import is_year
from clew.text.dates import MONTHS, parse_clock, parse_whole_date

_TIME_SIGNS = {"after": ">", "since": ">=", "before": "<", "until": "<="}
_ORDERING = (">", "<", ">=", "<=")
_DENIALS = frozenset("not never no".split())
_ANY = frozenset({"any", "ever"})
_PASSING = frozenset("after apart behind but except follows next save".split())
_WORTH = frozenset({"worth", "value"})


@dataclass(frozen=True)
class Asked:
    """The words of a question, as values and numbers are looked for among them."""

    question: str

    @cached_property
    def words(self) -> list[Word]:
        """Its words."""
        return split_question(self.question)

    @cached_property
    def fillers(self) -> frozenset[str]:
        """Words that no value is found by."""
        known = load_operators()
        return known.fillers | known.auxiliaries

    @cached_property
    def is_closed(self) -> bool:
        """Whether yes or no may be an answer: not to "Tell me about Juno"."""
        verbs = (load_operators().auxiliaries - {"of"}) | _ANY
        return self.question.rstrip().endswith("?") or any(w.fold in verbs for w in self.words)

    @cached_property
    def numbers(self) -> list[tuple[int, str]]:
        """The numbers with their places."""
        found = find_numbers(self.question, self.words)
        spans = [one for one in self.periods if not one.is_years]
        return [one for one in found if not any(span.covers(one[0]) for span in spans)]

    @cached_property
    def periods(self) -> list[Period]:
        """The periods that it names."""
        return find_periods(self.words)

    @cached_property
    def times(self) -> list[tuple[int, str, str]]:
        """Years, months and days: place, how they are compared, value."""
        found = []
        for at, word in enumerate(self.words):
            behind = self.words[at + 1].fold if at + 1 < len(self.words) else ""
            if word.fold in MONTHS:
                month = f"{MONTHS[word.fold]:02}"
                year = behind if behind.isdigit() and is_year(int(behind)) else ""
                found.append((at, "month", f"{year}-{month}" if year else f"-{month}-"))
                continue
            fold = word.fold.removeprefix("-") if at in self.signs else word.fold  # "pre-2016"
            if fold.isdigit() and len(fold) == 4 and is_year(int(fold)):
                if not self._follows_month(at):
                    found.append((at, "year", fold))
            elif "-" in word.fold and parse_whole_date(word.fold):
                found.append((at, "day", word.fold))
        found += self._find_days()
        return [one for one in found if not any(p.covers(one[0]) for p in self.periods)]

    def _follows_month(self, at: int) -> bool:
        """Whether a year stands behind its month, or behind the day: "March 13, 2025"."""
        before = [word.fold for word in self.words[max(0, at - 2) : at]]
        is_day = len(before) > 1 and before[1].rstrip("stndrh").isdigit()
        return before[-1:] != [] and (before[-1] in MONTHS or (is_day and before[0] in MONTHS))

    def _find_days(self) -> list[tuple[int, str, str]]:
        """Days of a month in words: "13 March 2025", "the 10th of Feb"; without a year "-02-10"."""
        found = []
        for at, word in enumerate(self.words):
            near = [self.words[i].fold for i in range(max(0, at - 2), min(len(self.words), at + 3))]
            days = [n for one in near if (n := one.rstrip("stndrh")).isdigit() and 0 < int(n) < 32]
            years = [one for one in near if one.isdigit() and len(one) == 4 and is_year(int(one))]
            if word.fold in MONTHS and days:
                found.append(
                    (at, "day", f"{(years or [''])[0]}-{MONTHS[word.fold]:02}-{days[0]:0>2}")
                )
        return found

    @cached_property
    def clock_times(self) -> list[tuple[int, str]]:
        """Times of day with their places: "18:00" for "6 pm"."""
        found = []
        for at, word in enumerate(self.words):
            behind = self.words[at + 1].fold if at + 1 < len(self.words) else ""
            is_half = behind in ("am", "pm") and word.fold.isdigit()
            minutes = parse_clock(f"{word.fold} {behind}" if is_half else word.fold)
            if minutes is not None:
                found.append((at, f"{minutes // 60:02}:{minutes % 60:02}"))
        return found

    @cached_property
    def ranks(self) -> list[int]:
        """Places that are asked for: 2 for "second"."""
        return [rank for _, rank in self._ordinals]

    @cached_property
    def may_pass_first(self) -> bool:
        """Whether it may ask for the one behind the best: "right after the dearest", "but one"."""
        return any(word.fold in _PASSING for word in self.words)

    @cached_property
    def is_of_difference(self) -> bool:
        """Whether it asks how far two numbers lie apart: "by how much", "how many more".

        "How many rooms more does A have than B" has its verb behind the word of degree; "how many
        rooms are larger than B" counts rooms.
        """
        operators, folds = load_operators(), [word.fold for word in self.words]
        for at in range(len(folds) - 1):
            if folds[at] != "how" or folds[at + 1] not in ("much", "many"):
                continue
            if folds[max(0, at - 1) : at] == ["by"]:
                return True
            until = folds.index("than", at) if "than" in folds[at:] else at
            for place in range(at + 2, until):
                is_first = place == at + 2 and until > place + 1
                verb = not (operators.auxiliaries - {"of"}).isdisjoint(folds[place + 1 : until])
                if operators.degree_of(folds[place]) and (is_first or verb):
                    return True
            return False
        return False

    @cached_property
    def signs(self) -> dict[int, str]:
        """How the numbers at some places are compared: ">" behind "more than"."""
        found = find_typed_signs(self.question, self.words)
        for start, end, meaning in load_operators().find("comparisons", self.words):
            sign = _TIME_SIGNS.get(meaning, meaning)
            if sign in _ORDERING and not (start and self.words[start - 1].fold in _DENIALS):
                found[end] = sign
        return found

    @cached_property
    def is_yes_no(self) -> bool:
        """Whether only yes or no answers it: "Did A pay", not "Can you tell me who paid"."""
        operators = load_operators()
        opens = next(operators.find("checks", self.words[:1]), None) is not None
        if opens and find_language(self.question):
            return False  # "was" asks for more in German
        asks = any(one[0] for one in operators.find("asks", self.words))
        return opens and not asks and not any(word.fold == "or" for word in self.words)

    @cached_property
    def is_open(self) -> bool:
        """Whether it begins with a word that asks for more than yes or no: "which", "how many"."""
        return any(one[0] == 0 for one in load_operators().find("asks", self.words))

    @cached_property
    def is_of_worth(self) -> bool:
        """Whether it asks what things are worth together, or what their value is."""
        return any(word.fold in _WORTH for word in self.words)

    @property
    def named_ranks(self) -> list[tuple[int, int]]:
        """Places that may be said of a noun behind them, with where they stand: "second floor"."""
        return [(at, rank) for at, rank in self._ordinals if at + 1 < len(self.words)]

    @cached_property
    def _ordinals(self) -> list[tuple[int, int]]:
        ordinals = load_operators().phrases["ordinals"]
        known = {phrase: meaning for phrase, meaning in ordinals.items() if meaning.isdigit()}
        found = load_operators().find("ordinals", self.words)
        return [(at, int(meaning)) for at, _, meaning in found if meaning in known.values()]
