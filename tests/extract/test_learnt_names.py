"""Names that only the whole document tells from other words: headings, versions, common nouns."""

from pathlib import Path

import pytest

import clew
from clew.errors import StoreError
from clew.extract.rules import Offline
from clew.ingest.chunk import BySentences
from clew.ingest.readers.source import make_document
from clew.types import Extraction

MANUAL = """# Handbook

## 3.7 Packages

See Handling bugs, and run `fix-all`. As told in Registering as a member, keys are kept.

### 3.7.3 Limits

The default is 3.2.0 since version 0.90, and 1.250.000 rows are read; 0.90 is old.

### 3.7.4 Handling bugs

As in 3.7.4.1, handling a bug takes `fix-all --now`. A »%«-Zeichen joins +user and -user.

#### 3.7.4.1 Registering as a member

Just like in main.cf.  See postconf(5) for registering. 10.0.0.1 is the address.

```
$ fix-all
```

- signed (bool) – Allow signed values.
"""

CRONTAB = """# crontab(5)

Die Zeile beginnt mit der Zahl der Stunde. Leere Zeilen und Zahlen werden von `cron` nicht gelesen.
Der Wert des Monats steht in der Datei. Werte und Monate trennt ein Zeichen, Zeichen sind erlaubt.
Die Variable `MAILTO` nennt Debian als Ziel. Unter Debian läuft es, und mit Debian auch die Dateien.
Jeder Hinweis hilft. Hinweise stehen im Debian-Paket; alle Hinweise hat Helge Brandt geschrieben.
"""


async def extract(text: str) -> list[Extraction]:
    document = make_document(text, "page.md")
    return list(await Offline()(document, BySentences()(document)))


async def find(text: str) -> dict[str, str]:
    return {e.name: e.type for one in await extract(text) for e in one.entities}


async def test_a_mentioned_heading_is_no_name() -> None:
    found = await find(MANUAL)
    assert not {"Handling", "Registering", "See", "Allow"} & found.keys()
    assert {"fix-all", "postconf(5)"} <= found.keys()


async def test_numbers_are_sections_versions_or_addresses() -> None:
    found = await find(MANUAL)
    kinds = {name: found.get(name) for name in ("3.7.4.1", "3.2.0", "0.90", "10.0.0.1")}
    assert kinds == {
        "3.7.4.1": "section",
        "3.2.0": "version",
        "0.90": "version",
        "10.0.0.1": "address",
    }
    assert "1.250.000" not in found or found["1.250.000"] == "number"


async def test_a_dash_behind_a_mark_or_beside_a_plus_is_no_option() -> None:
    found = await find(MANUAL)
    assert found.get("--now") == "flag" or "fix-all --now" in found
    assert found.get("-Zeichen") is None and found.get("-user") is None


async def test_the_marks_of_code_are_no_fact() -> None:
    facts = [fact.text for one in await extract(MANUAL) for fact in one.facts]
    assert any("fix-all" in one for one in facts)
    assert not any(one.strip() == "```" or one.endswith("```") for one in facts)


async def test_common_nouns_of_a_language_with_capitals_are_no_names() -> None:
    found = await find(CRONTAB)
    assert {"Debian", "Helge Brandt", "MAILTO"} <= found.keys()
    common = {"Zeile", "Zeilen", "Zahlen", "Wert", "Werte", "Monat", "Hinweis", "Hinweise"}
    assert not common & found.keys()


async def test_loose_characters_are_no_part_of_terms() -> None:
    ends = ["问题可查", "任何已知", "软件包中再", "文件可见", "系统可用"]
    lines = ["问题。", "软件包。", "文件。", "系统。", "任何。"] * 4 + [f"{one}。" for one in ends]
    found = await find("# 手册\n\n运行 `dpkg`。\n\n" + "\n\n".join(lines * 2))
    assert {"问题", "软件包", "文件"} <= found.keys()
    assert "软件包中" not in found and "问题可" not in found


def test_no_part_of_a_contraction_is_shown(tmp_path: Path) -> None:
    with clew.open(tmp_path / "kb") as base:
        base.add_texts([("a.md", 'It says "don\'t compress" in `zip.conf`.')])
        with pytest.raises(StoreError):
            base.show("Don")
