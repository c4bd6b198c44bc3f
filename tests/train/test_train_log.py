"""Logs and curves."""

import sys
from types import SimpleNamespace
from xml.etree import ElementTree

from clew.evaluate.report.svg import draw_line_plot
from clew.train.run_folder import TrainingLog, read_log, write_plots


def test_a_resumed_log_forgets_what_is_done_again(tmp_path):
    log = TrainingLog(tmp_path, board=False)
    for step in range(4):
        log.write({"step": step, "reward": step / 4})
    with log.path.open("a") as file:
        file.write('{"step": 4, "rew')  # a kill in the middle of a line
    assert [row["step"] for row in read_log(log.path)] == [0, 1, 2, 3]
    log.rewind(2)
    assert [row["step"] for row in read_log(log.path)] == [0, 1]


def test_tensorboard_shows_a_step_once_and_its_absence_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert not TrainingLog(tmp_path).rewind(0)
    assert TrainingLog(tmp_path, board=False).rewind(0) and TrainingLog(
        tmp_path, silent=True
    ).rewind(0)
    opened = []
    made = SimpleNamespace(SummaryWriter=lambda folder, purge_step: opened.append(purge_step) or 1)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", made)
    assert TrainingLog(tmp_path).rewind(7) and opened == [7]


def test_curves_are_whole_svg_files(tmp_path):
    rows = [{"step": n, "reward": n / 5, "turns": 1.0, "response": 50 + n} for n in range(5)]
    rows[4]["dev_f1"] = 0.4
    made = write_plots({"graph <R1>": rows, "empty": []}, tmp_path)
    assert {path.name for path in made} == {"reward.svg", "f1.svg", "turns.svg", "length.svg"}
    for path in made:
        root = ElementTree.fromstring(path.read_text())
        assert root.tag.endswith("svg")
    assert "graph &lt;R1&gt;" in (tmp_path / "reward.svg").read_text()


def test_a_line_goes_up_when_values_do():
    drawn = ElementTree.fromstring(draw_line_plot("t", {"a": [(0, 0.0), (1, 1.0)]}))
    lines = [one.get("points") for one in drawn if one.get("stroke-width") == "2"]
    (first, last) = [tuple(map(float, p.split(","))) for p in lines[0].split()]
    assert last[0] > first[0] and last[1] < first[1]


def test_axes_are_labelled_with_round_numbers_and_whole_steps():
    drawn = ElementTree.fromstring(draw_line_plot("t", {"a": [(0, 0.613), (7, 0.798)]}))
    labels = [one.text for one in drawn if one.tag.endswith("text")]
    assert labels == ["t", "0.65", "0.7", "0.75", *"01234567", "steps", "a"]


def test_dev_figures_stand_after_the_step_they_were_measured_after(tmp_path):
    rows = [{"step": 0, "dev_f1": 0.1}, {"step": 4, "reward": 0.5, "dev_f1": 0.3}]
    write_plots({"run": rows}, tmp_path)
    labels = [one.text for one in ElementTree.parse(tmp_path / "f1.svg").getroot()]
    assert "5" in labels
