"""The default recipe on corpora of other kinds: web pages, four hops, copies, one page, lists."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clew.adapters import SignalMix, Tuning, save_tuning
from clew.agents.base import Results
from clew.engine import KnowledgeBase
from clew.llm.embed import EmbedRole, Vectors
from clew.testing.fakes import HashEmbed
from clew.types import Document
from conftest import document, one_in_three, stream

MENU = "[Home](http://x.example/) [News](http://x.example/n) [Contact](http://x.example/c). "
PLACES = ("Oslen", "Tarmouth", "Vickerby", "Ludgate", "Morwen", "Selby", "Arden", "Quill")
KEPT = ("fair", "lamp", "goose", "ledger")


def web_pages() -> list[Document]:
    """Pages about one event: each names it in its headline, and nobody names a headline."""
    return [
        document(
            f"report-{place.lower()}",
            f"{MENU}Lantern Fair 2022 latest news. Visitors of the Lantern Fair 2022 came by boat. "
            f"In {place} the organisers of the Lantern Fair 2022 sold {number}00 tickets. "
            f"The weather at the Lantern Fair 2022 was fine. {MENU}",
            f"Lantern Fair 2022 what happened in {place} on day {number}",
        )
        for number, place in enumerate(PLACES, start=1)
    ] + [
        document(
            "kiosk",
            f"{MENU}A broken generator closed the kiosk. Repairs of the broken generator cost nine "
            f"hundred crowns, said the electrician. {MENU}",
            "Why the lights went out",
        )
    ]


HOPS: Sequence[Document] = (
    document("song", "Grey Harbour is a song. It was sung by Tilda Varn.", "Grey Harbour"),
    document("singer", "Tilda Varn was a singer. She was born in Osmere.", "Tilda Varn"),
    document("town", "Osmere is a town. It lies in the province of Kaldria.", "Osmere"),
    document("province", "Kaldria is a province. Its governor is Jorun Pell.", "Kaldria"),
    document("governor", "Jorun Pell is a lawyer. She studied in Vessen.", "Jorun Pell"),
    *(
        document(f"noise{n}", f"{name} is a lake. {name} lies in the hills.", name)
        for n, name in enumerate(("Ember", "Fallow", "Gorse", "Hollin", "Ister", "Juniper"))
    ),
)


async def ask(base: KnowledgeBase, question: str, k: int = 5, recipe: str = "clew") -> Results:
    return await base.search(question, recipe=recipe, k=k)


def docs(results: Results) -> list[str]:
    return list(dict.fromkeys(passage.doc for passage in results.evidence.chunks))


def signals(results: Results) -> str:
    return next(step.output for step in results.trace if step.step == "signals")


async def test_on_web_pages_the_ranking_is_left_to_words_and_meaning(base: KnowledgeBase) -> None:
    await base.take(stream(web_pages()))
    question = "What did the repairs cost of the broken generator of the Lantern Fair kiosk?"
    results = await ask(base, question)
    assert "kiosk" in docs(results)[:2]
    assert signals(results).startswith("walk 0.00, meaning 0.40, words 0.30, best sentence 0.30")


async def test_where_names_lead_to_pages_the_walk_counts_fully(valley: KnowledgeBase) -> None:
    results = await ask(valley, "Where was the designer of Marrow Bridge born?")
    assert signals(results).startswith("walk 1.00 from names by sentences, meaning and words (")


@pytest.mark.parametrize("recipe", ["clew", "clew-beam"])
async def test_four_hops_are_all_among_the_first_passages(base: KnowledgeBase, recipe: str) -> None:
    await base.take(stream(HOPS))
    question = "Who governs the province of the town where the singer of Grey Harbour was born?"
    found = docs(await ask(base, question, 4, recipe))
    assert set(found) == {"song", "singer", "town", "province"}


async def test_what_is_missing_is_looked_for_beside_a_name_just_found(base: KnowledgeBase) -> None:
    # No page is about the club, and no sentence joins it to the season: only its word does.
    await base.take(
        stream(
            (
                document("keeper", "Piet Bonn was a goalkeeper with Harrowgate.", "Piet Bonn"),
                document(
                    "season",
                    "The first goal of the season was scored by Amos Reed on a wet afternoon.",
                    "2016 in Harrowgate football",
                ),
                document("other", "The first goal of the season was a penalty.", "2016 in Vessen"),
                *HOPS,
            )
        )
    )
    found = docs(await ask(base, "Who scored the first goal of the season for Piet Bonn's team?"))
    assert found.index("season") < found.index("other")


async def test_passages_of_one_page_do_not_take_all_places(base: KnowledgeBase) -> None:
    paragraph = "The tide mill at Selby grinds barley for the island. " * 12
    pages = [
        document("long", "\n\n".join(f"{paragraph} Part {n}." for n in range(12)), "Tide mills"),
        document("short", "The tide mill at Selby was rebuilt. It grinds barley.", "A visit"),
    ]
    await base.take(stream(pages))
    assert "short" in docs(await ask(base, "What does the tide mill at Selby grind?", 3))


async def test_an_account_is_not_the_same_said_eight_times(base: KnowledgeBase) -> None:
    # Eight pages say the same of the mill in other words; one, which fits less, says another thing.
    said = ("stands on the quay", "is on a quay", "was put on the quay", "has its place on a quay")
    same = [
        document(f"same{n}{k}", f"The tide mill of Selby {text} {when}. Notes {n}.", "Mill")
        for n, text in enumerate(said)
        for k, when in enumerate(("now", "today"))
    ]
    other = document("other", "The tide mill of Selby ground barley until 1890.", "Flood")
    rest = [document(f"rest{n}", f"A {one} is kept in Arden.", one) for n, one in enumerate(KEPT)]
    await base.take(stream([*same, other, *rest]))
    question = "Describe the history and development of the tide mill of Selby"
    passages = (await ask(base, question, 12)).evidence.chunks
    found, scores = [one.doc for one in passages], [one.score for one in passages]
    assert scores == sorted(scores, reverse=True)  # though "other" fits less than what follows
    plain = question.replace("Describe the history and development of", "Where is")
    as_ranked = [passage.doc for passage in (await ask(base, plain, 12)).evidence.chunks]
    assert found.index("other") < as_ranked.index("other")


async def test_near_copies_count_once(base: KnowledgeBase) -> None:
    text = "The lamp keeper of Arden trims forty lamps every evening before the tide."
    copies = [document(f"copy{n}", text, f"Mirror {n}") for n in range(12)]
    await base.take(stream([*copies, document("own", "Forty lamps burn in Arden.", "Lamps")]))
    assert "own" in docs(await ask(base, "How many lamps burn in Arden?", 3))


async def test_hundreds_of_copies_do_not_crowd_out_the_rest(base: KnowledgeBase) -> None:
    text = "The lamp keeper of Arden trims forty lamps every evening before the tide comes in."
    copies = [document(f"copy{n}", text) for n in range(3)]
    copies += [document(f"mirror{n}", f"{text}{' ' * n}.") for n in range(140)]
    await base.take(stream([*copies, document("own", "A fair is held on the quay.", "Fair")]))
    found = docs(await ask(base, "Which keeper of Arden trims lamps before the tide?", 3))
    assert found[1] == "own"


async def test_copies_under_other_titles_are_folded_by_their_own_text(base: KnowledgeBase) -> None:
    text = "Arden has a pier of oak, and its keeper trims forty lamps before the tide comes in."
    titles = [f"{PLACES[n % len(PLACES)]} {n}" for n in range(140)]
    copies = [document(f"copy{n}", f"# {t}\n\n{text}", t) for n, t in enumerate(titles)]
    other = text.replace("forty", "fifty")  # one word differs, and it is asked for
    pages = [document("own", "A fair is held on the quay.", "Fair"), document("other", other)]
    await base.take(stream([*copies, *pages]))
    results = await ask(base, "Does the keeper of Arden trim forty lamps before the tide?", 8)
    assert sorted(docs(results)[:3])[1:] == ["other", "own"]  # copies come last
    said = [step.output for step in results.trace if step.step == "copies"]
    assert "139 near copies put last" in said and any("folded" in one for one in said)


TERMS = (
    "Payment is due within thirty days by bank transfer to the account named below. Goods remain "
    "the property of the seller until they are paid in full. Complaints must be made in writing "
    "within eight days of delivery. Returns are accepted in the original packaging only. "
) * 5


def invoices() -> list[Document]:
    """Pages of one template, each with its own values."""
    return [
        document(
            f"invoice{n}",
            f"Date: 2024-03-{10 + n % 20}\n{TERMS}\nPieces: {n + 3}. Sum: {612 + 37 * n} crowns.",
            f"Invoice {n}",
        )
        for n in range(40)
    ]


def said_of_copies(results: Results) -> list[str]:
    return [f"{step.output}: {step.input}" for step in results.trace if step.step == "copies"]


async def test_pages_of_one_template_are_no_copies_where_values_are_asked(
    base: KnowledgeBase,
) -> None:
    await base.take(stream([*invoices(), document("own", "A sum is due in Arden.", "Arden")]))
    results = await ask(base, "What are the sums of the invoices with payment by transfer?", 20)
    assert len([doc for doc in docs(results) if doc != "own"]) >= 19
    assert not said_of_copies(results)
    assert docs(await ask(base, "Which invoice has a sum of 1019 crowns?", 1)) == ["invoice11"]


async def test_pages_of_one_template_count_once_where_values_are_not_asked(
    base: KnowledgeBase,
) -> None:
    rest = [document(f"rest{n}", f"A {one} is kept in Arden.", one) for n, one in enumerate(KEPT)]
    await base.take(stream([*invoices(), *rest]))
    results = await ask(base, "Is payment due by bank transfer?", 44)
    first = docs(results)[:5]
    assert first[0].startswith("invoice") and set(first[1:]) == {f"rest{n}" for n in range(4)}
    assert any("put last" in one for one in said_of_copies(results))
    assert len(docs(results)) == 44  # a larger k brings all


HARVEST = (
    "The grape harvest on the slopes of Morwen began in the second week of September after a dry "
    "summer. Pickers from three villages filled the baskets before noon, since the heat spoils the "
    "must. The cellar master expects a wine with little acid and a dark red colour. A late frost "
    "in April had destroyed a fifth of the buds on the lower terraces. The cooperative pays its "
    "members by weight and by sugar. Visitors may taste the young wine in the old press house."
)
EDITS = {
    "footer": [f"{HARVEST}\n\nFirst printed in the {place} Gazette." for place in PLACES],
    "copy number": [f"{HARVEST}\nCopy {n} of the leaflet." for n in range(8)],
    "dateline": [f"{place.upper()} (Post) – {HARVEST}" for place in PLACES],
    "one more sentence": [f"{HARVEST} The {one} was blessed." for one in (*KEPT, *KEPT[::-1])],
    "other spelling": [
        HARVEST.replace(old, new)
        for old, new in (
            ("colour", "color"),
            ("fifth", "5th"),
            ("taste", "try"),
            ("baskets", "crates"),
        )
    ]
    * 2,
}


@pytest.mark.parametrize("edit", EDITS)
async def test_copies_that_an_edit_tells_apart_count_once(base: KnowledgeBase, edit: str) -> None:
    copies = [document(f"copy{n}", text, "Harvest") for n, text in enumerate(EDITS[edit])]
    rest = [document(f"rest{n}", f"A {one} is kept in Morwen.", one) for n, one in enumerate(KEPT)]
    await base.take(stream([*copies, *rest]))
    results = await ask(base, "When did the grape harvest on the slopes of Morwen begin?", 5)
    first, *others = docs(results)
    assert first.startswith("copy") and len(others) == len(KEPT)
    assert all(one.startswith("rest") for one in others)
    assert any("folded" in said and first in said for said in said_of_copies(results))


async def test_the_copy_with_what_the_question_names_stands_for_the_others(
    base: KnowledgeBase,
) -> None:
    copies = [document(f"copy{n}", text, "Harvest") for n, text in enumerate(EDITS["footer"])]
    copies.append(document("goose", EDITS["one more sentence"][2], "Harvest"))
    await base.take(stream(copies))
    for question, wanted in (
        ("Was the harvest of Morwen in the Ludgate Gazette?", "copy3"),
        ("Which geese or goose did they bless at the harvest on the slopes of Morwen?", "goose"),
    ):
        assert docs(await ask(base, question, 1)) == [wanted]


async def test_copies_with_other_titles_dates_and_spaces_count_once(base: KnowledgeBase) -> None:
    dates = [f"Retrieved on {n + 1} May 2021\n" if n % 2 else "" for n in range(30)]
    texts = [TERMS if n % 3 else TERMS.replace(". ", ".  ") for n in range(30)]
    copies = [
        document(f"copy{n}", dates[n] + texts[n], f"{PLACES[n % 8]} mirror {n}") for n in range(30)
    ]
    await base.take(stream([*copies, document("own", "The bank moved to the quay.", "Bank")]))
    found = docs(await ask(base, "When is payment by bank transfer due?", 5))
    assert "own" in found[:2]


@pytest.mark.parametrize(
    "question",
    [
        "What does version 12 of the Arden report say?",
        "When was v12 of the report printed?",
        "Which lamps stand in report-v12?",
    ],
)
async def test_the_version_that_is_asked_for_stands_for_its_copies(
    base: KnowledgeBase, question: str
) -> None:
    text = "The keeper of Arden trims forty lamps of the report every evening before the tide."
    pages = [
        document(f"report-v{n:02}.md", f"Version {n}, printed 2024-03-{n + 1:02}. {text}", "Report")
        for n in range(30)
    ]
    pages.append(document("own", "Lamps were printed on a card in Arden.", "Card"))
    await base.take(stream(pages))
    found = docs(await ask(base, question, 40))
    assert found[0] == "report-v12.md" and "own" in found[:2]
    assert len(found) == 31  # a larger k brings all


@pytest.mark.parametrize(
    "pages",
    [
        [document("only", "Marrow Bridge was designed by Ilse Brandvik.", "Marrow Bridge")],
        [document("list", "\n".join(f"* Item {n}" for n in range(400)), "List of items")],
        [document("empty", "…", "")],
    ],
    ids=["one page", "a list", "no words"],
)
@pytest.mark.parametrize(
    "question",
    one_in_three(
        [
            "What is it?",
            "???",
            " ".join(f"Name{n} Surname{n}," for n in range(50)),
            "Besides",
        ]
    ),
)
async def test_bad_input_gets_a_result(
    base: KnowledgeBase, pages: list[Document], question: str
) -> None:
    await base.take(stream(pages))
    results = await ask(base, question)
    assert len(results.evidence.chunks) >= 1
    assert "walk" in signals(results)


async def test_the_only_page_is_found_with_a_score(base: KnowledgeBase) -> None:
    text = "Marrow Bridge was designed by Ilse Brandvik."
    await base.take(stream([document("only", text, "Marrow Bridge")]))
    [only] = (await ask(base, "Who designed Marrow Bridge?")).evidence.chunks
    assert only.score > 0


class _Unknowing(HashEmbed):
    """Knows no script at all."""

    def measure_known(self, text: str) -> float:
        return 0.0


async def test_what_vectors_cannot_tell_is_left_to_words(base: KnowledgeBase) -> None:
    await base.take(stream(web_pages()))
    results = await ask(replace(base, embed=_Unknowing()), "What did the repairs cost?")
    assert signals(results).startswith("walk 0.00, meaning 0.00, words 1.00, best sentence 0.00")
    assert docs(results)[0] == "kiosk"


class _Alike(_Unknowing):
    """Gives every text the same vector."""

    name = "alike"

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        return np.full((len(texts), self.dim), self.dim**-0.5, np.float32)


@pytest.mark.parametrize("walk", [0.0, 0.5])
async def test_passages_in_an_unknown_script_are_no_copies(
    base: KnowledgeBase, walk: float
) -> None:
    alike = replace(base, embed=_Alike())
    noise = [document(f"noise{n}", f"Boat {n} lies in the harbour.") for n in range(40)]
    told = [document(f"told{n}", f"Osmere has lamps, {word}.") for n, word in enumerate(PLACES[:2])]
    await alike.take(stream([*noise, *told]))
    mix = SignalMix(np.array([walk, 0.4, 0.3, 0.3], np.float32))
    await save_tuning(alike.store, _Alike.name, Tuning(signals=mix))
    results = await ask(alike, "Which lamps has Osmere?", 2)
    assert f"walk {walk:.2f}" in signals(results) and "tuned" in signals(results)
    assert sorted(docs(results)) == ["told0", "told1"]


class _Counting(HashEmbed):
    """Counts the texts that it embeds."""

    count = 0

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        self.count += len(texts)
        return await super().__call__(texts, role=role)


@pytest.mark.parametrize("relations", [1, 900])
async def test_a_graph_of_one_or_very_many_relations(
    base: KnowledgeBase, tmp_path: Path, relations: int
) -> None:
    rows = [f"Osmere\ttrait{n % relations}\tTown {n}" for n in range(900)]
    (tmp_path / "graph.tsv").write_text("\n".join(rows))
    await base.import_graph(tmp_path / "graph.tsv", embed=False)
    fifty = " ".join(f"Town {n}" for n in range(50))
    for question in ("What is it?", "Which trait77 has Osmere?", fifty):
        counting = _Counting()
        results = await ask(replace(base, embed=counting), question)
        assert results.evidence.chunks and signals(results).startswith("walk 1.00")
        # Not all labels of relations are embedded for a question.
        assert counting.count < 600


async def test_a_common_word_is_no_name_wherever_it_stands(base: KnowledgeBase) -> None:
    await base.take(
        stream(
            (
                document("note", "Besides, Osmere has a port.", "Osmere"),
                *(document(f"n{n}", f"There is nothing besides rule {n}.") for n in range(6)),
            )
        )
    )
    results = await ask(base, "Besides Osmere, which town has a port?")
    assert [entity.name for entity in results.evidence.entities] == ["Osmere"]


async def test_lower_case_links_names_and_not_common_words(base: KnowledgeBase) -> None:
    pages = [
        document("state", "State is a song by Tilda Varn.", "State"),
        *(document(f"s{n}", f"The state of road {n} is good.") for n in range(12)),
        *HOPS,
    ]
    await base.take(stream(pages))
    results = await ask(base, "in which state was tilda varn born")
    assert [entity.name for entity in results.evidence.entities] == ["Tilda Varn"]


@pytest.mark.parametrize(
    "wording",
    [
        "Where was the designer of Marrow Bridge born",
        "Could you please tell me: where was the designer of Marrow Bridge born? Thank you!",
        "where was the designer of marrow bridge born?",
    ],
)
async def test_wording_makes_no_difference(valley: KnowledgeBase, wording: str) -> None:
    plain = await ask(valley, "Where was the designer of Marrow Bridge born?", 3)
    assert docs(await ask(valley, wording, 3)) == docs(plain)


async def test_pages_of_one_template_count_once_where_an_account_is_wanted(
    base: KnowledgeBase,
) -> None:
    rules = (
        "Berths are let from May to October. Boats are washed on the slip only. Fires are never "
        "lit on a jetty. Guests report to the office before noon. Water is free of charge, power "
        "is paid by the hour. Dogs are kept on a leash. Engines are not run at night. Sewage is "
        "pumped out at the fuel dock. Lost keys are replaced for a fee."
    )
    wardens = {"Orle": "Ines Falk", "Tarby": "Jon Meer", "Vask": "Lea Brun", "Wenn": "Ulf Dahl"}
    pages = [
        document(name, f"{rules} In {name} the warden is {who}.", f"{name} harbour rules")
        for name, who in wardens.items()
    ]
    fees = document("fees", "Berths cost nine crowns a night in the harbour.", "Harbour fees")
    await base.take(stream([*pages, fees]))
    broad = docs(await ask(base, "Summarize the rules of the harbours.", 2))
    assert "fees" in broad
    named = docs(await ask(base, "Summarize the rules of the harbour Vask.", 2))
    assert "Vask" in named
