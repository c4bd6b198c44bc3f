"""Package version, the extras, and the pip command that installs one."""

from pathlib import Path
from typing import Any

__version__ = "0.1.0"
EXTRAS = {
    "local": ("onnxruntime", "tokenizers"),
    "pdf": ("pypdf", "pypdfium2"),
    "nlp": ("spacy",),
    "openai": ("openai",),
    "llama": ("llama_cpp",),
    "tree": ("graspologic_native",),
    "rdf": ("rdflib",),
    "parquet": ("pyarrow",),
    "ann": ("faiss",),
    "serve": ("fastapi", "starlette", "uvicorn", "httptools"),
    "mcp": ("mcp",),
    "postgres": ("psycopg", "fsspec"),
    "cluster": ("ray", "grpc"),
    "train": ("torch", "transformers", "peft"),
}
"""The modules that each extra brings."""


def explain_missing(module: str | None, wider: str = "") -> str:
    """Say which extra brings a module that cannot be imported; "" if none does.

    `wider` is an extra to name instead, which brings more that is needed.
    """
    root = (module or "").partition(".")[0]
    extra = next((name for name, held in EXTRAS.items() if root in held), "")
    return extra and f"{root} is not installed; run `{pip_install_command(wider or extra)}`"


def pip_install_command(extra: str) -> str:
    """The pip command that adds an extra, using the source of this installation."""
    origin = _read_direct_url()
    url = str(origin.get("url", ""))
    if not url:
        return f"pip install 'clew[{extra}]'"
    if url.startswith("file:"):
        flag = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {flag}'{_local_folder(url)}[{extra}]'"
    vcs = origin.get("vcs_info", {}).get("vcs", "")
    return f"pip install 'clew[{extra}] @ {vcs}{'+' if vcs else ''}{url}'"


def _read_direct_url() -> dict[str, Any]:
    """pip's `direct_url.json` of this installation; empty if it came from an index."""
    import json  # imported here: slow, and only needed for error messages
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        raw = distribution("clew").read_text("direct_url.json")
        origin = json.loads(raw or "{}")
    except (PackageNotFoundError, ValueError):
        return {}
    return origin if isinstance(origin, dict) else {}


def _local_folder(url: str) -> str:
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    folder = Path(url2pathname(urlsplit(url).path))
    return "." if folder == Path.cwd() else str(folder)
