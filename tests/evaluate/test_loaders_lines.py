"""MetaQA's plain text files, alone and as the folder that its authors publish.

Lines of published files: only line ends part them.
"""

import json
from pathlib import Path

import pytest

from clew.evaluate.datasets import load_dataset
from clew.evaluate.loaders.convert import convert


def test_metaqa(tmp_path: Path) -> None:
    folder = tmp_path / "2-hop"
    folder.mkdir()
    (folder / "qa_dev.txt").write_text(
        "who directed films starring [Ann Ray]\tBob|Cid\nno tab here\nwhat about it\tBob\n"
    )
    (folder / "qa_dev_qtype.txt").write_text("actor_to_movie_to_director\nx\ny\n")
    (folder / "kb.txt").write_text("Film|starred_actors|Ann Ray\n")
    taken = convert("metaqa", [folder], tmp_path / "out")
    one, other = load_dataset(tmp_path / "out").questions
    assert (one.text, one.entities) == ("who directed films starring Ann Ray", ("Ann Ray",))
    assert (one.answers, one.type) == (("Bob", "Cid"), "actor_to_movie_to_director")
    assert (other.text, other.type, other.entities) == ("what about it", "y", ())
    assert (taken.graphs, len(taken.problems)) == (("kb.txt",), 2)
    assert (tmp_path / "out" / "kb.txt").read_text().startswith("Film|")


def test_metaqa_as_it_is_published(tmp_path: Path) -> None:
    for hop in ("1-hop", "2-hop"):
        for part in ("dev", "test"):
            for wording in ("vanilla", "ntm"):
                file = tmp_path / "MetaQA" / hop / wording / f"qa_{part}.txt"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f"{wording} {hop} {part} [Ann]\tBob\n")
            kinds = tmp_path / "MetaQA" / hop / f"qa_{part}_qtype.txt"
            kinds.write_text(f"{hop}-{part}\n")
    (tmp_path / "MetaQA" / "kb.txt").write_text("Film|starred_actors|Ann\n")
    (tmp_path / "MetaQA" / "entity").mkdir()
    (tmp_path / "MetaQA" / "entity" / "kb_entity_dict.txt").write_text("0\tAnn\n1\tBob\n")
    taken = convert("metaqa", [tmp_path / "MetaQA"], tmp_path / "out")
    found = load_dataset(tmp_path / "out")
    assert found.problems == ()
    assert {one.text: (one.id, one.type) for one in found.questions} == {
        f"vanilla {hop} {part} Ann": (f"{hop}/vanilla/qa_{part}.txt:1", f"{hop}-{part}")
        for hop in ("1-hop", "2-hop")
        for part in ("dev", "test")
    }
    assert taken.graphs == ("kb.txt",)
    assert "entity/kb_entity_dict.txt: neither questions nor the graph; left out" in taken.problems
    assert sum("machine paraphrases (ntm)" in one for one in taken.problems) == 4
    pointed = convert("metaqa", [tmp_path / "MetaQA" / "2-hop" / "ntm"], tmp_path / "ntm")
    [dev, _] = load_dataset(tmp_path / "ntm").questions
    assert (dev.text, dev.type, pointed.problems) == ("ntm 2-hop dev Ann", "2-hop-dev", ())


def test_types_that_do_not_fit_are_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "qa_dev.txt").write_text("one [Ann]\tBob\ntwo [Ann]\tBob\n")
    (tmp_path / "qa_dev_qtype.txt").write_text("only\n")
    taken = convert("metaqa", [tmp_path], tmp_path / "out")
    assert taken.problems == ("qa_dev.txt: 2 questions but 1 types; types are ignored",)
    assert {one.type for one in load_dataset(tmp_path / "out").questions} == {""}


SIGNS = ["\u2028", "\u2029", "\u0085"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("sign", SIGNS)
def test_a_row_of_json_may_hold_other_signs_that_part_lines(
    tmp_path: Path, sign: str, end: str
) -> None:
    rows = [
        {"id": "x0", "question": "Who wrote it?", "golden_answers": ["Bo"]},
        {"id": "x1", "question": "Who read it?", "golden_answers": [f"An{sign}na"]},
        {"id": "x2", "question": "Who lost it?", "golden_answers": ["Cid"]},
    ]
    text = end.join(json.dumps(row, ensure_ascii=False) for row in rows) + end
    (tmp_path / "dev.jsonl").write_bytes(text.encode())
    taken = convert("nq", [tmp_path / "dev.jsonl"], tmp_path / "out")
    assert taken.problems == ()
    questions = load_dataset(tmp_path / "out").questions
    assert [(one.id, one.answers) for one in questions] == [
        ("x0", ("Bo",)),
        ("x1", (f"An{sign}na",)),
        ("x2", ("Cid",)),
    ]


@pytest.mark.parametrize("sign", SIGNS)
def test_so_may_a_line_of_plain_text(tmp_path: Path, sign: str) -> None:
    text = f"who directed [A{sign}nn]\tBob\r\nwho wrote [Cid]\tDee\r\n"
    (tmp_path / "qa_dev.txt").write_bytes(text.encode())
    taken = convert("metaqa", [tmp_path], tmp_path / "out")
    assert taken.problems == ()
    one, other = load_dataset(tmp_path / "out").questions
    assert (one.entities, one.answers) == ((f"A{sign}nn",), ("Bob",))
    assert (other.entities, other.answers) == (("Cid",), ("Dee",))
