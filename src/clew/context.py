"""What every step may touch while it works on one question."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError
from clew.llm.embed import Embed
from clew.store.protocol import Snapshot
from clew.types import Usage
from clew.view import View


@dataclass(frozen=True, slots=True)
class TraceStep:
    """What one step was given, what it left behind, and what that cost."""

    step: str
    input: str
    output: str
    seconds: float
    usage: Usage = Usage()


@dataclass(frozen=True)
class Context:
    """One question, the knowledge base and the models it may use, and the trace so far."""

    question: str
    view: View
    snapshot: Snapshot
    embed: Embed | None = None
    trace: list[TraceStep] = field(default_factory=list)
    _vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    async def vector(self, text: str | None = None) -> NDArray[np.float32]:
        """The question's vector (or another text's), embedded once however often it is asked."""
        return (await self.vectors([self.question if text is None else text]))[0]

    async def vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """The vectors of several texts; what is not known yet is embedded in one batch."""
        lacking = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if lacking:
            if self.embed is None:
                raise ConfigError(
                    "this recipe needs an embedder; `pip install 'clew[local]'`, set [embed] in "
                    "clew.toml, or use --recipe bm25"
                )
            made = await self.embed(lacking, role="query")
            self._vectors.update(zip(lacking, made, strict=True))
        return [self._vectors[text] for text in texts]
