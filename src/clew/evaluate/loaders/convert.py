"""Convert published data sets to the folder layout of `clew eval`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile

from clew.errors import ConfigError, InputError
from clew.evaluate.datasets import CORPUS_FILE, QUESTIONS_FILE, write_json_lines
from clew.evaluate.loaders.kgqa import (
    load_cwq,
    load_grailqa,
    load_metaqa,
    load_webqsp,
    load_webquestions,
)
from clew.evaluate.loaders.rows import ConvertedDataset, Loader
from clew.evaluate.loaders.text_qa import (
    load_anonyrag,
    load_flashrag,
    load_graphrag_bench,
    load_hotpotqa,
    load_hypergraphrag,
    load_multihop_rag,
    load_musique,
    load_seedbench,
    load_ultradomain,
)

LOADERS: dict[str, Loader] = {
    "hotpotqa": load_hotpotqa,
    "2wiki": load_hotpotqa,
    "musique": load_musique,
    "nq": load_flashrag,
    "popqa": load_flashrag,
    "triviaqa": load_flashrag,
    "metaqa": load_metaqa,
    "webqsp": load_webqsp,
    "cwq": load_cwq,
    "grailqa": load_grailqa,
    "webquestions": load_webquestions,
    "graphrag-bench": load_graphrag_bench,
    "anonyrag": load_anonyrag,
    "seedbench": load_seedbench,
    "ultradomain": load_ultradomain,
    "hypergraphrag": load_hypergraphrag,
    "multihop-rag": load_multihop_rag,
}
_SUFFIXES = (".json", ".jsonl", ".parquet", ".txt")


@dataclass(frozen=True)
class ConversionResult:
    """What a conversion wrote and the problems it met."""

    form: str
    folder: Path
    questions: int
    passages: int
    graphs: tuple[str, ...]
    problems: tuple[str, ...]


def convert(
    form: str, paths: Sequence[Path], folder: Path, limit: int | None = None
) -> ConversionResult:
    """Read a published data set and write it in the folder layout."""
    if form not in LOADERS:
        raise ConfigError(f"unknown format {form!r}; known: {', '.join(LOADERS)}")
    found = ConvertedDataset()
    LOADERS[form](_list_files(paths), found)
    if not found.questions:
        why = f" ({found.problems[0]})" if found.problems else ""
        raise InputError(f"no question of the format {form} was found{why}; check the files")
    folder.mkdir(parents=True, exist_ok=True)
    questions = found.questions[:limit]
    write_json_lines(folder / QUESTIONS_FILE, questions)
    if found.corpus:
        write_json_lines(folder / CORPUS_FILE, found.corpus)
    for graph in found.graphs:
        copyfile(graph, folder / graph.name)
    return ConversionResult(
        form,
        folder,
        len(questions),
        len(found.corpus),
        tuple(graph.name for graph in found.graphs),
        tuple(found.problems),
    )


def _list_files(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} does not exist; check the path")
        if path.is_dir():
            found += sorted(p for p in path.rglob("*") if p.is_file() and p.suffix in _SUFFIXES)
        else:
            found.append(path)
    if not found:
        raise InputError(
            f"{paths[0]} has no {', '.join(_SUFFIXES)} file; give the data set's files"
        )
    return found
