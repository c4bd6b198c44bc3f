"""Convert published data sets to the folder layout of `clew eval`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile

from clew.errors import ConfigError, InputError
from clew.evaluate.datasets import CORPUS, QUESTIONS
from clew.evaluate.loaders.benches import anonyrag, graphrag_bench, seedbench, ultradomain
from clew.evaluate.loaders.graphs import cwq, grailqa, metaqa, webqsp, webquestions
from clew.evaluate.loaders.multihop import flashrag, hotpotqa, musique
from clew.evaluate.loaders.rows import Converted, Loader

LOADERS: dict[str, Loader] = {
    "hotpotqa": hotpotqa,
    "2wiki": hotpotqa,
    "musique": musique,
    "nq": flashrag,
    "popqa": flashrag,
    "triviaqa": flashrag,
    "metaqa": metaqa,
    "webqsp": webqsp,
    "cwq": cwq,
    "grailqa": grailqa,
    "webquestions": webquestions,
    "graphrag-bench": graphrag_bench,
    "anonyrag": anonyrag,
    "seedbench": seedbench,
    "ultradomain": ultradomain,
}
_READ = (".json", ".jsonl", ".parquet", ".txt")


@dataclass(frozen=True)
class Taken:
    """What a conversion wrote and the problems it met."""

    form: str
    folder: Path
    questions: int
    passages: int
    graphs: tuple[str, ...]
    problems: tuple[str, ...]


def convert(form: str, paths: Sequence[Path], folder: Path, limit: int | None = None) -> Taken:
    """Read a published data set and write it in the folder layout."""
    if form not in LOADERS:
        raise ConfigError(f"no format {form!r}; have {', '.join(LOADERS)}")
    found = Converted()
    LOADERS[form](_files(paths), found)
    if not found.questions:
        why = f" ({found.problems[0]})" if found.problems else ""
        raise InputError(f"no question of the format {form} was found{why}; check the files")
    folder.mkdir(parents=True, exist_ok=True)
    questions = found.questions[:limit]
    _write(folder / QUESTIONS, questions)
    if found.corpus:
        _write(folder / CORPUS, found.corpus)
    for graph in found.graphs:
        copyfile(graph, folder / graph.name)
    return Taken(
        form,
        folder,
        len(questions),
        len(found.corpus),
        tuple(graph.name for graph in found.graphs),
        tuple(found.problems),
    )


def _files(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder; check the path")
        if path.is_dir():
            found += sorted(p for p in path.rglob("*") if p.is_file() and p.suffix in _READ)
        else:
            found.append(path)
    if not found:
        raise InputError(f"{paths[0]} holds no {', '.join(_READ)} file; name the data set's files")
    return found


def _write(path: Path, rows: Sequence[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
