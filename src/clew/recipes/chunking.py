"""How recipes want documents to be split, and how those of a knowledge base were."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from clew.store.protocol import KeyValueStore
from clew.types import Chunking

_MANIFEST_KEY = "chunking"


@dataclass(frozen=True)
class ChosenChunking:
    """How documents are split, and for which recipe; none: as the settings say."""

    chunking: Chunking
    recipe: str = ""


async def load_chunking(key_values: KeyValueStore) -> ChosenChunking | None:
    """Return how a knowledge base was chunked, if it is recorded."""
    stored = (await key_values.get("manifest", [_MANIFEST_KEY])).get(_MANIFEST_KEY)
    if not stored:
        return None
    values = json.loads(stored)
    return ChosenChunking(Chunking(**values["chunking"]), values["recipe"])


async def save_chunking(key_values: KeyValueStore, chosen: ChosenChunking) -> None:
    """Record how a knowledge base is chunked."""
    await key_values.set("manifest", {_MANIFEST_KEY: json.dumps(asdict(chosen))})


def find_shared_chunking(presets: Mapping[str, Chunking | None]) -> ChosenChunking | None:
    """Return the chunking that all recipes ask for, if they ask for the same."""
    chunkings = set(presets.values())
    shared = chunkings.pop() if len(chunkings) == 1 else None
    return ChosenChunking(shared, next(iter(presets))) if shared else None


def describe_other_chunking(
    presets: Mapping[str, Chunking | None], held: ChosenChunking | None
) -> list[str]:
    """Return one sentence for each chunking that recipes ask for and the documents do not have."""
    by_chunking: dict[Chunking, list[str]] = {}
    for name, chunking in presets.items():
        if chunking is not None and (held is None or chunking != held.chunking):
            by_chunking.setdefault(chunking, []).append(name)
    return [
        f"the chunks of this knowledge base {_describe_held(held)}; {', '.join(names)}: "
        f"made for {chunking} (`clew add PATH… --recipe {names[0]}` builds one)"
        for chunking, names in by_chunking.items()
    ]


def describe_mixture(held: ChosenChunking | None, now: ChosenChunking) -> str:
    """Say in one sentence that new documents are split otherwise than those before."""
    return (
        f"the chunks of this knowledge base {_describe_held(held)}; what is added now is split for "
        f"{now.recipe} ({now.chunking}): add the earlier documents again with --recipe "
        f"{now.recipe} to split them alike"
    )


def _describe_held(held: ChosenChunking | None) -> str:
    return f"have {held.chunking}" if held else "have a size that is not recorded"
