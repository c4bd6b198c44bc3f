"""Prefix cache of keys and values: each turn of an episode starts with the turns before it."""

from itertools import takewhile
from typing import Any


class PrefixCache:
    """Keys and values of the last text, reused for the shared prefix of the next one."""

    def __init__(self) -> None:
        """Start empty."""
        self._ids: list[int] = []
        self._cache: Any = None

    def take(self, model: Any, ids: list[int]) -> Any:
        """Return a cache with the prefix `ids` shares with the last text, or an empty one."""
        from transformers import DynamicCache

        # The last token is always processed again: its logits predict the next token.
        pairs = zip(self._ids, ids[:-1], strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        cache, self._cache = self._cache, None  # a failed generation must leave no partial cache
        if cache is None or not shared or any(cache.is_sliding):
            return DynamicCache(config=model.config)
        cache.crop(shared - len(self._ids))
        return cache

    def store(self, cache: Any, ids: list[int]) -> None:
        """Store the cache of a whole text; its last token was generated but not processed."""
        self._cache, self._ids = cache, ids[: cache.get_seq_length()]
