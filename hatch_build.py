"""Compile `kernels.c` where there is a C compiler; without one the package is pure Python."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE, LIBRARY = Path("src/clew/kernels.c"), Path("src/clew/libkernels.so")
FLAGS = ("-O3", "-std=gnu11", "-shared", "-fPIC")


class CompileKernels(BuildHookInterface):
    """Adds the compiled library to a wheel, which then is for this kind of machine only."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into the source folder: an editable installation finds it there, too."""
        root = Path(self.root)
        if not compile_library(root / SOURCE, root / LIBRARY):
            self.app.display_warning("no C compiler: searches will use numpy alone")
            return
        build_data["artifacts"].append(f"/{LIBRARY}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"


def compile_library(source: Path, library: Path) -> bool:
    """Compile a library; False if there is no compiler, or not one that can."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or sys.platform == "win32":
        return False
    made = library.with_suffix(".tmp")
    done = subprocess.run([compiler, *FLAGS, "-o", made, source], check=False)
    if done.returncode:
        made.unlink(missing_ok=True)
        return False
    made.replace(library)  # a running process keeps the old one
    return True


def platform_tag() -> str:
    """The kind of this machine, as in the name of a wheel."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
