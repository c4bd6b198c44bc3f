"""What every room may know of the package itself: its version, and how it was installed."""

from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def pip_install(extra: str) -> str:
    """The command that brings an extra to this installation, from where this one came."""
    told = _came_from()
    url = str(told.get("url", ""))
    if not url:
        return f"pip install 'clew[{extra}]'"
    if url.startswith("file:"):
        edit = "-e " if told.get("dir_info", {}).get("editable") else ""
        return f"pip install {edit}'{_place(url)}[{extra}]'"
    by = told.get("vcs_info", {}).get("vcs", "")
    return f"pip install 'clew[{extra}] @ {by}{'+' if by else ''}{url}'"


def _came_from() -> dict[str, Any]:
    """What pip wrote down of an installation that came from no index; nothing otherwise."""
    import json  # these three only where something is missing: none of them is quick to import
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        written = distribution("clew").read_text("direct_url.json")
        told = json.loads(written or "{}")
    except (PackageNotFoundError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _place(url: str) -> str:
    """The folder of a file URL; a dot where one stands in it."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    folder = Path(url2pathname(urlsplit(url).path))
    return "." if folder == Path.cwd() else str(folder)
