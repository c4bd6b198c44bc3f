"""Questions as people word them: courtesy, lists, steps, denials and nonsense; shipped models."""

import json
from pathlib import Path
from typing import Any

import pytest
from in_process import clew

FILES = {
    "kiln.md": """# Kestrel K9 kiln

The Kestrel K9 is a pottery kiln for schools. It weighs 140 kg and reaches 1280 degrees. \
The lid is guaranteed for 24 months.

The K9 fires earthenware, stoneware, porcelain and raku.
""",
    "relining.md": """# Relining

Reline the chamber every two years, or when the bricks crumble.

1. Switch the kiln off at the wall.
2. Lift out the shelves.
3. Pull the old bricks from the chamber.
4. Set the new bricks dry, without mortar.

Never use cement: it bursts in the heat.
""",
    "codes.md": """# Fault codes

| Code | Meaning | What to do |
|------|---------|------------|
| F12 | Thermocouple broken | Fit a new thermocouple |
| F15 | Lid open | Close the lid |
| F31 | Element burnt out | Call the workshop |
""",
    "lending.md": """# Lending

The library lends books, maps and scores. A reader may borrow twelve items. \
An item that another reader has reserved cannot be renewed. Records are kept for 90 days.

The map room is looked after by Sunniva Aalto.
""",
    "export.md": """# Exporting the catalogue

Lists are exported as CSV or JSON, by the option `shape`; CSV is the default.

Official readers exist for Linux, Android and Windows. The Linux reader is free.
""",
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    clew("add", ".", cwd=folder)
    return folder


def ask(desk: Path, question: str, mode: str = "open") -> dict[str, Any]:
    told: dict[str, Any] = json.loads(clew("ask", question, "--mode", mode, "--json", cwd=desk))
    return told


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Would you mind telling me what F15 means?", "Lid open"),
        ("Do you happen to know how much the K9 weighs?", "140 kg"),
        ("Does anybody here know how many items a reader may borrow?", "twelve"),
    ],
)
def test_a_question_within_a_request_is_the_question(desk: Path, question: str, said: str) -> None:
    told = ask(desk, question)
    assert said in told["candidate"]
    assert told["confidence"] > 0.3
