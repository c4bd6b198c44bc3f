"""The packages: how each is installed, its methods, and Clew's matching recipes.

Versions are pinned so that tables can be reproduced.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class PeerPackage:
    """One package with its own virtual environment."""

    package: str
    driver: str
    version: str = ""
    extra_requirements: tuple[str, ...] = ()
    """Installed beside it."""
    without_dependencies: bool = False
    """Whether the package is installed with --no-deps."""
    methods: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    """Clew's recipes of the same method, for comparison."""
    note: str = ""

    @property
    def requirement(self) -> str:
        """The pip requirement."""
        return f"{self.package}=={self.version}"


CLEW = PeerPackage("clew", "drive_clew.py")

# Its own requirements pin torch 2.5.1, vllm and litellm; an OpenAI endpoint needs none of the last
# two, and torch only for one matrix product.
_HIPPORAG_REQUIREMENTS = (
    "torch==2.13.0",
    "transformers",
    "openai",
    "python-igraph==0.11.8",
    "networkx==3.4.2",
    "tiktoken",
    "pydantic",
    "tenacity",
    "einops",
    "tqdm",
    "pandas",
    "pyarrow",
    "filelock",
    "packaging",
    "httpx",
    "numpy",
)

PEERS: dict[str, PeerPackage] = {
    peer.package: peer
    for peer in (
        PeerPackage(
            "fast-graphrag",
            "drive_fast.py",
            "0.0.5",
            methods=("context",),
            recipes=("hipporag",),
            note="context only; it cannot delete",
        ),
        PeerPackage(
            "hipporag",
            "drive_hipporag.py",
            "2.0.0a4",
            _HIPPORAG_REQUIREMENTS,
            without_dependencies=True,
            methods=("retrieve",),
            recipes=("hipporag2", "hipporag"),
            note="without vllm, litellm, gritlm, boto3, which an endpoint does not need",
        ),
        PeerPackage(
            "nano-graphrag",
            "drive_nano.py",
            "0.0.8.2",
            methods=("local", "naive"),
            recipes=("naive", "msgraphrag-local"),
            note="context only; it cannot delete",
        ),
        PeerPackage(
            "lightrag-hku",
            "drive_lightrag.py",
            "1.5.7",
            ("openai",),
            methods=("local", "global", "hybrid", "mix", "naive"),
            recipes=("lightrag", "lightrag-local", "lightrag-global", "lightrag-mix"),
            note="JSON stores, its default; one shared client, 16 calls at once",
        ),
    )
}
