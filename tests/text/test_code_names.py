"""Names by their form: flags, paths, identifiers, commands, codes, and acronyms."""

import pytest

from clew.text.code_names import find_acronyms, find_code_names, find_marked
from clew.text.names import name_key, tokenize


def names(text: str) -> list[str]:
    return [found.name for found in find_code_names(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use --onto <base> or -f, not well-known -5.", ["--onto", "-f"]),
        ('In "/etc/hosts" and ~/.bashrc, and/or TCP/IP', ["/etc/hosts", "~/.bashrc"]),
        ("shared_buffers and O_NOATIME of setItem", ["shared_buffers", "O_NOATIME", "setItem"]),
        ("See tar(1) and fsync() in os.path.join.", ["tar(1)", "fsync", "os.path.join"]),
        ("$HOME and ${PATH} but $5", ["$HOME", "${PATH}"]),
        ("CVE-2024-3094, ENOENT, 0x1F", ["CVE-2024-3094", "ENOENT", "0x1F"]),
        ("at 10.0.0.1 or fe80:0:0:1 by v1.2.3", ["10.0.0.1", "fe80:0:0:1", "v1.2.3"]),
        ("files like .tar.gz", [".tar.gz"]),
        ("It ended.Then he went home, e.g. to the U.S. in 3.5 hours.", []),
        ("Лотар родился в Париже. 他住在北京。", []),
    ],
)
def test_names_by_their_form(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_names_stand_where_they_are_found() -> None:
    text = "call fsync() on --all"
    assert [text[n.start : n.end] for n in find_code_names(text)] == ["fsync()", "--all"]


def test_marked_code_is_a_name() -> None:
    found = [n.name for n in find_marked("Run `git rebase`, then `x`, ```not this``` and ``nor``.")]
    assert found == ["git rebase"]


def test_acronyms_have_their_long_form() -> None:
    text = (
        "The Name Service Switch (NSS), DNS (Domain Name System), and Fleet of Ferries (FOF) (A)."
    )
    assert set(find_acronyms(text)) == {
        ("NSS", "Name Service Switch"),
        ("DNS", "Domain Name System"),
        ("FOF", "Fleet of Ferries"),
    }


@pytest.mark.parametrize("unit", ["-", "/", "a.", "_", "a_", "$", "(", "A", "0:", "aB", "../"])
def test_what_is_repeated_without_end_is_searched_in_time(unit: str) -> None:
    assert len(names(unit * 30_000)) <= 30_000


@pytest.mark.parametrize(
    ("name", "key"),
    [("C++", "c++"), ("C#", "c#"), ("C", "c"), ("-p", "-p"), ("-P", "-P"), ("x-y", "x y")],
)
def test_a_letter_keeps_its_sign(name: str, key: str) -> None:
    assert name_key(name) == key and name_key(f"{name} é") == f"{key} e"
    assert tokenize(f"In {name}, twice").key(1, -1) == key


def test_code_names_end_where_letters_of_a_script_without_spaces_begin() -> None:
    found = find_code_names(
        "値はwork_memで、使用--onto选项打开/etc/hosts文件。CVE-2024-3094を見る。"
    )
    assert [one.name for one in found] == ["work_mem", "--onto", "/etc/hosts", "CVE-2024-3094"]
