"""Lets the disk fill up, or fail at the n-th write, during every writing command.

`python -m bench.attack.disk [--count N] [--seconds S] [--seed N]`. The command ends in one
sentence; the knowledge base is as it was or as it should become; repeated with a sound disk, the
command comes to the same as undisturbed. A full disk is a small file system, where this user may
mount one; failing writes (EIO, ENOSPC) come from a library that is preloaded into the command,
where there is a C compiler.
"""

import errno
import os
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from bench.attack.campaign import expect, parse_options, run_campaign
from bench.attack.families import FAMILIES, Family
from bench.attack.kill import Reference, inspect_after, make_reference, verify_kb
from bench.attack.sample import run
from clew.errors import ClewError

_SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(int fd) {
  static long count = 0;
  char link[64], path[4096];
  const char *folder = getenv("FAULT_FOLDER"), *at = getenv("FAULT_AT");
  if (!folder || !at) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size <= 0) return 0;
  path[size] = 0;
  if (strncmp(path, folder, strlen(folder))) return 0;
  if (__sync_add_and_fetch(&count, 1) < atol(at)) return 0;
  errno = atoi(getenv("FAULT_ERRNO"));
  return 1;
}
#define WRAP(result, name, parameters, arguments, fd)                       \
  result name parameters {                                                  \
    static result (*real) parameters;                                       \
    if (!real) real = dlsym(RTLD_NEXT, #name);                              \
    return fails(fd) ? -1 : real arguments;                                 \
  }
WRAP(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n), fd)
WRAP(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o), fd)
WRAP(ssize_t, pwrite64, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o), fd)
WRAP(int, fsync, (int fd), (fd), fd)
WRAP(int, fdatasync, (int fd), (fd), fd)
WRAP(int, ftruncate, (int fd, off_t n), (fd, n), fd)
WRAP(int, ftruncate64, (int fd, off_t n), (fd, n), fd)
"""
_MAX_WRITES = 120  # the write that fails is one of these; commands make some thirty to a hundred
_SPARE_BYTES = 1_500_000
_CHILD = "import sys; from bench.attack.disk import run_child; run_child(*sys.argv[1:])"
# A restore changes nothing until its transaction, and is repeated as a whole.
_ATTACKED = tuple(one for one in FAMILIES if one.name not in ("migrate",))


@cache
def build_shim() -> Path | None:
    """Compile the library that makes writes fail; None without a compiler."""
    if "LD_PRELOAD" in os.environ:  # it is in this process already
        return Path(os.environ["LD_PRELOAD"])
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        return None
    folder = Path(tempfile.mkdtemp(prefix="clew-shim-"))
    (folder / "shim.c").write_text(_SHIM)
    words = [compiler, "-shared", "-fPIC", "-O1", "-o", "shim.so", "shim.c", "-ldl"]
    done = subprocess.run(words, cwd=folder, capture_output=True, check=False)
    return folder / "shim.so" if done.returncode == 0 else None


@cache
def can_mount() -> bool:
    """Whether this user may mount a small file system."""
    with tempfile.TemporaryDirectory() as folder:
        done = _mount(folder, 1_000_000)
        if done:
            subprocess.run(["umount", folder], check=True)
        return done


def _mount(folder: Path | str, size: int, how: str = "") -> bool:
    words = ["mount", "-t", "tmpfs", "-o", f"{how}size={size}", "tmpfs", str(folder)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """A file system of this size at `folder`."""
    folder.mkdir()
    expect(_mount(folder, size), "cannot mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def run_child(name: str, folder: str) -> None:
    """Run a command of a family; exit 1 with one sentence where it is refused."""
    family = next(one for one in FAMILIES if one.name == name)
    os.chdir(folder)
    try:
        run(family.work(Path()))  # type: ignore[arg-type]
    except ClewError as error:
        os.write(2, f"error: {error}\n".encode())
        raise SystemExit(1) from None


def _run(family: Family, folder: Path, more: dict[str, str]) -> subprocess.CompletedProcess[str]:
    if "LD_PRELOAD" in os.environ:  # the library is in this process already
        return _run_forked(family, folder, more)
    words = [sys.executable, "-c", _CHILD, family.name, str(folder)]
    paths = os.pathsep.join([str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    return subprocess.run(
        words,
        env={**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", **more},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def _run_forked(
    family: Family, folder: Path, faults: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """The same without a new interpreter, which would take most of a trial's time."""
    with tempfile.TemporaryFile() as said:  # not on the disk under attack
        child = os.fork()
        if not child:
            code = 120
            try:
                os.dup2(said.fileno(), 2)
                os.environ.update(faults)
                run_child(family.name, str(folder))
                code = 0
            except SystemExit as error:
                code = int(str(error.code))
            except BaseException:  # noqa: BLE001  (whatever escapes is what is sought)
                os.write(2, traceback.format_exc().encode())
            finally:
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        words = said.read().decode("utf-8", "replace")
    return subprocess.CompletedProcess([family.name], status, "", words)


def attack_disk(rng: random.Random, folder: Path) -> str:
    """One trial."""
    family = rng.choice(_ATTACKED)
    reference = make_reference(FAMILIES.index(family))
    shim = build_shim()
    if can_mount() and (shim is None or rng.random() < 0.4):
        used = sum(path.stat().st_size for path in reference.folder.rglob("*") if path.is_file())
        files = sum(1 for _ in reference.folder.rglob("*"))
        size = used + 4096 * files + rng.randrange(_SPARE_BYTES)
        with small_disk(folder / "disk", size):
            trial = Path(shutil.copytree(reference.folder, folder / "disk/trial"))
            done = _run(family, trial, {})
            _check_refusal(family, done)
            expect(_mount(folder / "disk", 1 << 28, "remount,"), "cannot remount")
            _check_outcome(family, trial, reference)
        return f"full disk: {'refused' if done.returncode else 'fits'}"
    if shim is None:
        return "neither a compiler nor the right to mount"
    trial = Path(shutil.copytree(reference.folder, folder / "trial"))
    code = rng.choice((errno.EIO, errno.ENOSPC))
    faults = {
        "LD_PRELOAD": str(shim),
        "FAULT_FOLDER": str(trial / "kb"),
        "FAULT_AT": str(rng.randint(1, rng.randint(8, _MAX_WRITES))),
        "FAULT_ERRNO": str(code),
    }
    done = _run(family, trial, faults)
    _check_refusal(family, done)
    _check_outcome(family, trial, reference)
    return f"{errno.errorcode[code]}: {'refused' if done.returncode else 'not reached'}"


def _check_refusal(family: Family, done: subprocess.CompletedProcess[str]) -> None:
    said = done.stderr.strip()
    status = f"{family.name} ended with {done.returncode}"
    expect(done.returncode in (0, 1), f"{status}: {said[-600:]}")
    expect("Traceback" not in said, f"{family.name}: {said[-600:]}")
    expect("None" not in said, f"{family.name} says None: {said[-300:]}")


def _check_outcome(family: Family, trial: Path, reference: Reference) -> None:
    """After the fault the knowledge base is sound; repeated, the command comes to the same."""
    if family.sound:
        problems = verify_kb(trial)
        expect(not problems, f"{family.name}: after the fault {problems}")
    done = _run(family, trial, {})
    expect(done.returncode == 0, f"{family.name}: cannot be repeated: {done.stderr[-400:]}")
    found = inspect_after(trial, reference)
    expect(found == reference.after, f"{family.name}: not the same as undisturbed")


if __name__ == "__main__":
    options = parse_options(str(__doc__), 500)
    if "LD_PRELOAD" not in os.environ and (library := build_shim()) is not None:
        os.environ["LD_PRELOAD"] = str(library)
        os.execv(sys.executable, [sys.executable, "-m", "bench.attack.disk", *sys.argv[1:]])
    run_campaign("disk", attack_disk, options)
