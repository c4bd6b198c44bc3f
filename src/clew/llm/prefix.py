"""What a model has read already: the turns of an episode begin with the turns before them."""

from itertools import takewhile
from typing import Any


class Prefix:
    """Keys and values of the last text, lent to the next one as far as it begins the same."""

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._ids: list[int] = []
        self._cache: Any = None

    def lend(self, model: Any, ids: list[int]) -> Any:
        """A cache that holds the beginning `ids` shares with the last text, if there is one."""
        from transformers import DynamicCache

        # The last token is read anew in any case: what follows it is asked for.
        both = zip(self._ids, ids[:-1], strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))
        held, self._cache = self._cache, None  # a generation that fails leaves nothing half-read
        if held is None or not shared or any(held.is_sliding):
            return DynamicCache(config=model.config)
        held.crop(shared - len(self._ids))
        return held

    def keep(self, cache: Any, ids: list[int]) -> None:
        """Remember the cache of a whole text; its last token was written and not read."""
        self._cache, self._ids = cache, ids[: cache.get_seq_length()]
