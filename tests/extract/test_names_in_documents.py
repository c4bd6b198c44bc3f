"""Names of technical documents: by form, mark, definition and case inside sentences."""

from clew.extract.document_names import is_technical, names_stamp, term_name
from clew.extract.rules import Offline
from clew.ingest.chunk import BySentences
from clew.ingest.readers.source import make_document
from clew.types import SUBJECT, Extraction

MANUAL = """# The pool

pool_size (integer)
:   Specifies the size of the pool in `/etc/pool.conf`. Don't set it to zero. The NSS library
    reads it at the start. Use --force with pool_ctl(1).

max_wait
:   Next, the Name Service Switch (NSS) waits. Suppose Debian asks; then Debian waits.

| Code: 23505 | Condition: unique_violation |
"""


async def extract(text: str, title: str = "", terms: dict[str, int] | None = None) -> Extraction:
    document = make_document(text, title, "a.md", {"terms": terms} if terms else {})
    [found] = await Offline()(document, BySentences(size=4000)(document))
    return found


async def names(text: str, terms: dict[str, int] | None = None) -> set[str]:
    found = await extract(text, terms=terms)
    return {one.name for one in found.entities if one.type not in ("date", "number")}


async def test_a_manual_has_its_own_names_and_no_verbs() -> None:
    found = await names(MANUAL)
    assert {"pool_size", "max_wait", "/etc/pool.conf", "--force", "pool_ctl(1)"} <= found
    assert {"Name Service Switch", "Debian", "unique_violation"} <= found
    assert not found & {
        "Specifies",
        "Don",
        "Next",
        "Suppose",
        "Use",
        "The NSS",
        "Code",
        "Condition",
    }


async def test_a_definition_is_about_its_term() -> None:
    found = await extract(MANUAL)
    subjects = {
        fact.text.split()[-1]: name
        for fact in found.facts
        for name, role in fact.members
        if role == SUBJECT
    }
    assert subjects["zero."] == subjects["pool_ctl(1)."] == "pool_size"
    assert subjects["waits."] == "max_wait"


async def test_an_acronym_is_an_alias_of_its_long_form() -> None:
    found = await extract(MANUAL)
    [long] = [one for one in found.entities if one.name == "Name Service Switch"]
    assert long.aliases == ("NSS",)


async def test_an_acronym_and_its_long_form_are_one_in_prose_too() -> None:
    found = await extract(
        "The Federal Office of Quarries (FOQ) sits in Dorn. The FOQ was founded in 1911. It uses "
        "WAL (write-ahead logging)."
    )
    names = {one.name: one.aliases for one in found.entities}
    assert names["Federal Office of Quarries"] == ("FOQ",)
    assert names["write-ahead logging"] == ("WAL",)
    assert not {"FOQ", "WAL"} & names.keys()


async def test_codes_and_paths_of_prose_are_whole_names() -> None:
    found = await extract(
        "The release waits for bug QN-1182 in src/quillon/lexer.py. The crane shows E-4071. "
        "A sender gets TTP_ERR_AGE. He flew the F-16 Falcon."
    )
    names = {one.name for one in found.entities}
    assert {"QN-1182", "src/quillon/lexer.py", "E-4071", "TTP_ERR_AGE", "F-16 Falcon"} <= names
    assert not {"QN", "1182", "4071", "ERR", "AGE", "F-16"} & names


async def test_verbs_that_begin_a_sentence_are_no_names() -> None:
    found = await names(
        "Turn the key. Wait until the lamp is lit. Dana Roth left. Otherwise, stop."
    )
    assert found == {"Dana Roth"}


async def test_openers_of_other_languages_are_no_names() -> None:
    for text, wanted, wrong in [
        ("Lucía Ordóñez fue una ingeniera española. Nació en Salamanca. Su altura es de 96 metros.",
         {"Lucía Ordóñez", "Salamanca"}, {"Nació", "Su"}),
        ("Павел Дроздов был инженером. Он родился в Вологде. Высота башни и маяка не указана.",
         {"Павел Дроздов", "Вологде"}, {"Он", "Высота"}),
        ("Käthe Brückner war eine Ingenieurin. Sie wurde in Görlitz geboren, und sie lebte in"
         " Görlitz. Die Schütze werden alle sechs Monate von dem Amt geprüft.",
         {"Käthe Brückner", "Görlitz"}, {"Sie", "Schütze", "Amt"}),
    ]:  # fmt: skip
        found = await names(text)
        assert wanted <= found and not wrong & found, found


async def test_a_plain_word_that_is_mostly_marked_is_a_name() -> None:
    text = "Run rebase first. The rebase may stop. Then clean up: a clean tree is clean."
    found = await names(text, {"rebase": 2, "clean": 1, "on": 1})
    assert "rebase" in found and "clean" not in found


async def test_spans_are_where_the_names_stand() -> None:
    found = await extract(MANUAL)
    for one in found.entities:
        for start, end in one.spans:
            assert MANUAL[start:end].startswith((one.name[:3], *one.aliases))


async def test_nouns_of_german_need_more_than_a_capital() -> None:
    text = (
        "Die Datei `netz.conf` enthält den Namen des Servers und die Adresse des Rechners. Der "
        "Server Hallstatt startet den Dienst, und Hallstatt beendet die Verbindung der Nutzer."
    )
    found = await names(text)
    assert {"netz.conf", "Server Hallstatt"} <= found and "Dienst" not in found


async def test_terms_of_japanese_and_chinese_recur() -> None:
    found = await names("`net.conf` を設定します。設定は重要です。一度だけの検証。\n")
    assert "設定" in found and "検証" not in found
    found = await names("`net.conf` 的主机名：主机名在此。只有一次出现。\n")
    assert "主机名" in found and "只有一次出现" not in found


def test_prose_is_read_as_ever() -> None:
    prose = make_document("# Ilse\n\nIlse Brandvik was born in Vessen. She built bridges.", "Ilse")
    assert not is_technical(prose) and names_stamp(prose) == ()
    assert names_stamp(make_document("Don't ask. Ilse knows.")) != ()
    assert is_technical(make_document("Use --all with pool_size in /etc/pool."))


def test_the_name_of_a_term() -> None:
    assert term_name("-a, --all <file>") == "--all"
    assert term_name("pool_size (integer)") == "pool_size"
    assert term_name("unspecified address") == "unspecified address"
    assert term_name("This is a line of prose that goes on.") == ""


async def test_modes_of_files_heads_of_functions_and_wide_spaces_are_no_part_of_names() -> None:
    text = (
        "# Files\n\nThe mode -rw-r--r-- is set with --mode by Dana\u00a0Petrov, "
        "who keeps \ufb01les.\n\n"
        "def __init__(\n    self,\n    x: int,\n) -> None:\n"
    )
    document = make_document(text, "Files")
    assert "files." in document.text
    [found] = await Offline()(document, BySentences(400)(document))
    names = {entity.name for entity in found.entities}
    assert {"--mode", "Dana Petrov"} <= names
    assert not [name for name in names if name.startswith(("-rw", "def"))]
