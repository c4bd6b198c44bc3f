"""On the GPU machine: joins the model parts and de-quantises the model, once.

PYTHONPATH=src:DIR python3 -m bench.gpu.unpack DIR      # DIR holds what bench.gpu.pack wrote
"""

import json
import sys
import time
from pathlib import Path

from clew.train.decode.gguf import unpack_gguf


def main() -> None:
    """Join, de-quantise, and print the time taken."""
    folder = Path(sys.argv[1])
    began = time.perf_counter()
    whole = folder / "model.gguf"
    parts = sorted(folder.glob("model-part-*"))
    if not (folder / "hf" / "config.json").is_file():
        with whole.open("wb") as file:
            for part in parts:
                file.write(part.read_bytes())
        unpack_gguf(whole, folder / "hf", workers=16)
    print(json.dumps({"parts": len(parts), "seconds": round(time.perf_counter() - began, 1)}))


if __name__ == "__main__":
    main()
