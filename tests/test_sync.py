import asyncio
import os
import subprocess
import sys

import pytest

from clew import sync
from clew.errors import ClewError


async def _one() -> int:
    return 1


async def _leave() -> None:
    raise SystemExit(3)


def test_waiting_returns_the_result() -> None:
    assert sync.wait(_one()) == 1


async def test_waiting_works_inside_a_running_loop() -> None:
    assert await asyncio.to_thread(sync.wait, _one()) == 1
    assert sync.wait(_one()) == 1


async def _waiting_within() -> int:
    return sync.wait(_one())


def test_waiting_for_oneself_is_said_in_place_of_done() -> None:
    with pytest.raises(ClewError, match="clew's own event loop"):
        sync.wait(_waiting_within())
    assert sync.wait(_one()) == 1


def test_an_exit_reaches_the_caller_and_the_loop_lives_on() -> None:
    with pytest.raises(SystemExit):
        sync.wait(_leave())
    assert sync.wait(_one()) == 1


_FORKED = """
import multiprocessing, sys, tempfile
import clew
from clew.config import Settings
kb = clew.open(tempfile.mkdtemp(), settings=Settings(extractor="offline", recipe="bm25"))
kb.add_texts([("a", "Ilse Brandvik was born in Vessen.")])

def search():
    sys.exit(0 if kb.search("Where was Ilse born?", recipe="bm25").evidence.chunks else 1)

child = multiprocessing.get_context("fork").Process(target=search)
child.start()
child.join(60)
assert kb.search("Where was Ilse born?", recipe="bm25").evidence.chunks
sys.exit(child.exitcode)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_goes_on_with_an_open_knowledge_base() -> None:
    done = subprocess.run([sys.executable, "-c", _FORKED], timeout=120, check=False)
    assert done.returncode == 0
