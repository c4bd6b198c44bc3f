"""Short runs of the attack campaigns; `make attack-NAME` runs the long ones."""

import random
from pathlib import Path

import pytest
from bench.attack.campaign import Options, Progress, Trial, run_campaign
from bench.attack.disk import attack_disk
from bench.attack.files import attack_file
from bench.attack.history import attack_history
from bench.attack.input import attack_input
from bench.attack.kill import attack_kill
from bench.attack.model import attack_model

SHORT: dict[str, tuple[Trial, int]] = {
    "files": (attack_file, 3),
    "history": (attack_history, 3),
    "input": (attack_input, 3),
    "kill": (attack_kill, 1),
    "model": (attack_model, 2),
    "disk": (attack_disk, 1),
}
LONG: dict[str, tuple[Trial, int]] = {
    "files": (attack_file, 200),
    "history": (attack_history, 100),
    "input": (attack_input, 200),
    "kill": (attack_kill, 100),
    "model": (attack_model, 30),
    "disk": (attack_disk, 15),
}


def _attack(name: str, trial: Trial, count: int, state: Path) -> Progress:
    return run_campaign(name, trial, Options(count, 3600, seed=11, state=state))


# Full disks and kills: test_build_interrupted has both. Damaged files: test_integrity, and
# test_readers_fuzz for those that are read.
HEAVY = {"disk", "files", "kill"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in HEAVY else ()) for name in SHORT],
)
def test_a_short_attack_breaks_no_promise(name: str, tmp_path: Path) -> None:
    done = _attack(name, *SHORT[name], tmp_path / "state.json")
    assert done.failures == []
    assert done.next == SHORT[name][1]


def test_a_history_whose_summaries_once_differed_comes_to_a_fresh_build(tmp_path: Path) -> None:
    # Grown, changed and grown again: a summary was kept that a fresh build would not quote.
    assert attack_history(random.Random("history:5008:73"), tmp_path) == "same"


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_a_long_attack_breaks_no_promise(name: str, tmp_path: Path) -> None:
    assert _attack(name, *LONG[name], tmp_path / "state.json").failures == []


def test_an_attack_goes_on_where_it_stopped(tmp_path: Path) -> None:
    seen: list[int] = []

    def trial(rng: object, folder: Path) -> str:
        seen.append(len(seen))
        if len(seen) == 2:
            raise ValueError("what an attack looks for")
        return "fine"

    state = tmp_path / "state.json"
    first = run_campaign("example", trial, Options(2, 60, state=state))
    assert [failure["trial"] for failure in first.failures] == ["1"]
    second = run_campaign("example", trial, Options(3, 60, state=state))
    assert (second.next, second.outcomes) == (3, {"fine": 2, "FAILED": 1})
    assert len(seen) == 3
