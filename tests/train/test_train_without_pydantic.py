"""GPU machines have torch and little else: what trains there must import without the rest."""

import subprocess
import sys

BLOCKED = ("pydantic", "pydantic_settings", "httpx", "typer", "rich", "onnxruntime", "openai")
SCRIPT = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED!r}:
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
import clew.train.loop, clew.train.search.retrievers, clew.train.demonstrations
import clew.train.core.rollout, clew.train.encoder, clew.train.learn.warm_start
import clew.train.decode.fast_decoder, clew.train.learn.distributed
assert "torch" not in sys.modules
"""


def test_training_imports_no_more_than_numpy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
