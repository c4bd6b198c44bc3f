"""What looks like a name and is none: openers, greetings, labels, headings; and whole names."""

import pytest

from clew.extract.rules import Offline
from clew.ingest.chunk import BySentences
from clew.ingest.readers.source import make_document
from clew.text.dates import parse_whole_date
from clew.types import LITERAL_TYPES

MAIL = """From: Priya Nandan
Date: Tue, 05 Mar 2024 09:14:00 +0000
Subject: Re: The Lagos gateway

Hi Tomas,

Please wash the filter. Give feedback soon. Return empty bottles to Oslo.
The Lagos gateway was down. It is in Lagos.

Kind regards,
Priya
"""
MANUAL = """# Kelvar Handbook

Kelvar is a broker in `/opt/kelvar`.

## 12. Resource limits

The header has 12 octets, and the pump gives 4.2 bar or 68 Nm. Write EUR 1,340 and EUR 85.
Error E17 waits 250ms. Entries are packed by Kelvar. The mean is sum(x)/len(x) in O(n).

## EXIT STATUS

Run `kelvarctl start --all` on lg-edge-02. Settings MUST be kept.
"""


async def find(text: str, title: str = "") -> dict[str, str]:
    document = make_document(text, title)
    found = await Offline()(document, BySentences(size=4000)(document))
    return {entity.name: entity.type for one in found for entity in one.entities if entity.spans}


async def test_a_mail_names_people_and_places_only() -> None:
    found = await find(MAIL)
    names = {name for name, kind in found.items() if kind not in LITERAL_TYPES}
    assert names == {"Priya Nandan", "Tomas", "Oslo", "Lagos"}
    assert found["05 Mar 2024"] == found["09:14:00 +0000"] == "date"


async def test_a_manual_has_whole_names_with_their_types() -> None:
    found = await find(MANUAL, "Kelvar Handbook")
    assert found["Kelvar"] == "name" and found["12"] == "section"
    assert found["kelvarctl start --all"] == "command" and found["E17"] == "code"
    amounts = {"12 octets", "4.2 bar", "68 Nm", "EUR 1,340", "EUR 85", "250ms"}
    assert amounts == {name for name, kind in found.items() if kind == "number"}
    names = {name for name, kind in found.items() if kind not in LITERAL_TYPES}
    assert names == {
        *("Kelvar", "Kelvar Handbook", "/opt/kelvar", "E17", "lg-edge-02", "kelvarctl start --all"),
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("We present Quillon, a fast sketch. Quillon is small.", {"Quillon"}),
        ("The Beacon Relay Protocol (BRP) is new. See RFC 2119.", {"RFC 2119"}),
        ("A Hello message is sent. The router sends Hello again.", {"Hello"}),
        ('The tenant is Mira Dan, called "the Lessee".', {"Mira Dan", "Lessee"}),
        ("Drink 2 litres. Unlike Borg, it rests.", {"Borg"}),
        ("Nara Prefecture grew. Apollo 11 was launched by NASA.", {"Nara Prefecture", "Apollo 11"}),
    ],
)
async def test_names_have_no_openers_and_no_open_brackets(text: str, names: set[str]) -> None:
    found = await find(text, "The Beacon Relay Protocol (BRP)" if "BRP" in text else "")
    kept = {name for name, kind in found.items() if kind not in LITERAL_TYPES}
    assert names <= kept
    assert not any("(" in name for name in kept)
    assert not kept & {
        "We present Quillon",
        "A Hello",
        "the Lessee",
        "Drink",
        "Drink 2",
        "Unlike Borg",
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("館長は佐々木真理です。社長は野々村由美である。", {"佐々木真理", "野々村由美"}),
        ("مدير المتحف هو سامي الخطيب في البصرة.", {"سامي الخطيب"}),
        ("# 青石桥\n\n由工程师周文海设计。周文海在苏州出生。", {"青石桥", "周文海"}),
        ("Die Ruhezeit beginnt um 22 Uhr, sagt der Hausmeister Jörg Petersen.", {"22 Uhr"}),
        ("Il est né le 15 août 1998. Le prix est de 24 degrés.", {"15 août 1998", "24 degrés"}),
        ("Мост открыт 3 мая 1931 года за 900 рублей.", {"3 мая 1931", "900 рублей"}),
    ],
)
async def test_names_of_other_languages_are_whole(text: str, names: set[str]) -> None:
    found = await find(text)
    assert names <= found.keys()
    assert not found.keys() & {"木真理", "野々村", "工程师周文海设计", "Die Ruhezeit"}


async def test_a_heading_is_a_name_only_if_the_text_has_it() -> None:
    text = "# Notes\n\n## Message Format\n\nIt ends.\n\n## Relay Node\n\nThe relay node waits.\n"
    found = await find(text)
    assert "Relay Node" in found and not found.keys() & {"Message Format", "Notes"}


@pytest.mark.parametrize(
    ("cell", "day"),
    [
        ("2015-03-01", "2015-03-01"),
        ("2015/3/1 10:00", "2015-03-01"),
        ("2015-03", "2015-03-01"),
        ("March 1, 2015", "2015-03-01"),
        ("1 Mar 2015", "2015-03-01"),
        ("1.3.2015", "2015-03-01"),
        ("2015-13-01", "None"),
        ("2015", "None"),
        ("a day in March 2015", "None"),
    ],
)
def test_a_cell_is_a_date_as_a_whole(cell: str, day: str) -> None:
    assert str(parse_whole_date(cell)) == day


async def test_things_of_a_name_are_no_part_of_it() -> None:
    found = await find("It is long. Users of Fedora can wait. Gangs of Ostmark is a film.")
    assert "Fedora" in found and "Users of Fedora" not in found
    assert "Gangs of Ostmark" in found


LICENSED = """# Weft

Weft draws `weft.toml` for the SDK. Ask Orla Finch. See EXIT STATUS below.

II. Reading the loom

The loom is read by Weft. The cells A1 B1 A2 B3 are free.

## EXIT STATUS

It is 0. The exit status is the SDK's.

## LICENCE

THE WEFT IS PROVIDED BY ITS AUTHOR, WHETHER IN CONTRACT OR TORT, WITHOUT WARRANTY OF ANY KIND.
NO HOLDER OF THE SDK IS LIABLE FOR LOSS OF PROFITS.
"""


async def test_capitals_all_around_make_no_names() -> None:
    found = {name for name, kind in (await find(LICENSED)).items() if kind not in LITERAL_TYPES}
    assert {"Weft", "SDK", "Orla Finch"} <= found
    named = {name for name in found if name.isupper()}
    assert named <= {"SDK", "WEFT"}, named
    assert not any(name.startswith(("II", "Reading", "A1 B1")) for name in found)


async def test_marked_code_is_a_name_without_its_arguments() -> None:
    text = (
        "# Loom\n\nRun `loom-split [-t width]` or `weft pull --all`; `pipe [<command>]` reads, and "
        "`n Repeat last search`, `j += a[i];`, `{right} The rightmost pane` or `3, never` are none."
    )
    found = await find(text)
    assert {"loom-split", "weft pull --all", "pipe"} <= found.keys()
    assert not [name for name in found if set(name) & set("[<{;,+") or name.startswith("n ")]


async def test_many_things_at_the_start_of_a_sentence_are_no_name() -> None:
    found = await find("Logs are kept for a month by Marek. James has the key of the cellar.")
    assert "Logs" not in found
    assert {"Marek", "James"} <= found.keys()


async def test_a_word_behind_a_line_of_code_is_an_opener() -> None:
    text = (
        "int loom_read_all_of_the_yarn ( loom_stream *stream, char *buffer, int length );\n"
        "Reads yarn from a file in Vessen by loom_read. The file weft_open is at /usr/weft.\n"
        "Part-time weavers use loom_close, too.\n"
    )
    found = await find(text)
    assert "Reads" not in found and "Part" not in found
    assert "Vessen" in found


async def test_letters_of_a_list_are_no_initials_and_openers_no_names() -> None:
    terms = ("J. Keep the notice.", "K. For any part, keep it.", "L. Delete any part of Orm.")
    found = await find("These are the terms:\n\n" + "\n".join(terms) + "\n\nT. Hale lives in Orm.")
    assert {name for name, kind in found.items() if kind == "name"} == {"Orm", "T. Hale"}


async def test_a_word_that_is_mostly_written_small_is_no_name_where_it_opens() -> None:
    text = (
        "Run `tool` to use Orm. You may use it as you use any. Some use none.\n"
        "The key is called Use. Use is not needed here."
    )
    names = [name for name, kind in (await find(text)).items() if kind == "name"]
    assert names.count("Use") <= 1 and "Orm" in names


async def test_a_term_in_capitals_ends_before_its_sentence() -> None:
    found = await find(
        "They are used so. UID The numeric id of the user, as `id` prints it. TMPDIR If set, it is."
    )
    assert {"UID", "TMPDIR"} <= found.keys() and "UID The" not in found


async def test_a_parameter_is_named_without_its_value() -> None:
    found = await find("You can set `reraise=True` to see it.")
    assert "reraise" in found and "reraise=True" not in found


KILN = """\
kiln-fire fires a batch in Tolmin. A low-heat run takes a day.

-b bricks
        Stacks the bricks of a batch. It is short-lived.

-q      Quenches a batch, with a warning from the kiln-guard(8) page.

steady  Holds the heat as set in /etc/kiln/heat.conf by the master in Tolmin Vale.

Status  Meaning
0       Done
2       Cracked bricks were found by kiln_check
"""


async def test_columns_and_bodies_begin_anew() -> None:
    found = await find(KILN)
    assert not found.keys() & {"Stacks", "Quenches", "Holds", "Done", "Cracked", "Meaning"}
    assert {"Tolmin", "-b", "kiln_check"} <= found.keys()


async def test_words_with_hyphens_are_names_where_the_document_shows_it() -> None:
    found = await find(KILN)
    assert {"kiln-fire", "kiln-guard(8)"} <= found.keys()
    assert not found.keys() & {"low-heat", "short-lived"}
    shown = "`loom_a` weaves.\n\n```\n$ weave-all Orm\n```\n\nUse weave-all for well-made cloth."
    named = await find(shown)
    assert "weave-all" in named and "well-made" not in named


async def test_a_line_that_is_ended_on_purpose_is_followed_by_an_opener() -> None:
    text = (
        "The loom_read call reads yarn from the store of the mill and counts what is there in\n"
        "Vessen and in the other towns that have a weft_open call of their own, as said.\n"
        "size: how much of it (or NULL)\n"
        "Counts yarn by the loom_size call."
    )
    found = await find(text)
    assert "Counts" not in found
    assert "Vessen" in found


async def test_a_quotation_begins_anew_and_a_word_quoted_alone_does_not() -> None:
    found = await find('It prints "Attempting repairs of `loom_a`" by loom_b. The “Lessee” pays.')
    assert "Attempting" not in found
    assert "Lessee" in found


async def test_orders_in_capitals_and_pronouns_are_no_names() -> None:
    found = await find(
        "# Relay notes\n\nThe client MUST NOT send `--force`. Servers SHALL NOT reply. Use "
        "of keys is RECOMMENDED, as recommended in Zurich. Everyone in Basel agreed."
    )
    assert {"Zurich", "Basel"} <= found.keys()
    assert not {"MUST NOT", "SHALL NOT", "RECOMMENDED", "Everyone"} & found.keys()


async def test_a_german_order_is_no_name() -> None:
    text = "Die Mühle liegt in Worms. Beachten Sie die Fristen. Prüfen Sie den Riemen in Speyer."
    found = await find(text)
    assert not {"Beachten Sie", "Beachten", "Prüfen Sie", "Prüfen"} & found.keys()
    assert {"Worms", "Speyer"} <= found.keys()


async def test_chinese_names_of_a_manual_that_occur_once_or_in_longer_runs() -> None:
    found = await find(
        "# 渡口手册\n\n`最大载重`是20吨。石门渡口于1903年由工程师周文海设计。"
        "周文海出生于绍兴，毕业于山海工学院。\n\n| 城市: 安阳 | 人口: 500万 |\n"
    )
    assert {"石门渡口", "周文海", "绍兴", "山海工学院", "安阳"} <= found.keys()
    assert not {"毕业", "工程师周文海设计", "周文海出生"} & found.keys()
