"""All errors that Clew raises.

ClewError
├── ConfigError          the user can fix it: a setting, a name, a missing extra
├── InputError           a document or a file cannot be read
├── ModelError           an LLM or an embedder failed
│   ├── AuthError        the key or the account is refused: not retried
│   ├── EndpointError    an endpoint answered with an error (llm/chat.py)
│   │   └── ContextTooLong the prompt does not fit the model's window
│   └── ParseError       it answered, but not in the requested format
│       └── NoAnswer     its answer holds nothing usable
└── StoreError           the knowledge base cannot be read or written
    ├── UnknownEntity    no entity has this name
    ├── VersionError     it was written by a newer Clew
    ├── EmbedderMismatch its vectors come from another embedder
    ├── VectorsDeferred  a kind of vectors is made when it is first read
    ├── ArraysMissing    the derived arrays are missing
    │   └── DamagedArrays they are there, but not as they were written
    └── Locked           another process is writing to it

A message names the cause and the remedy, in one sentence.
"""

from collections.abc import Iterable


class ClewError(Exception):
    """Base class of all errors raised by Clew; its message can always be written and stored."""

    def __str__(self) -> str:
        """Return the message; a lone surrogate that a hostile file brought becomes "?"."""
        return super().__str__().encode("utf-8", "replace").decode()


class ConfigError(ClewError):
    """The user can fix this: a setting, a name, a missing extra."""


class InputError(ClewError):
    """A document or a file cannot be read."""


class UnknownNameError(InputError):
    """A question names nothing that is known."""


class ModelError(ClewError):
    """An LLM or an embedder failed."""


class AuthError(ModelError):
    """The key or the account is refused; retrying cannot help."""


class ParseError(ModelError):
    """The model answered, but not in the requested format; `reply` is what it said."""

    reply = ""


class StoreError(ClewError):
    """The knowledge base cannot be read or written."""


class UnknownEntity(StoreError):  # noqa: N818  (reads as what happened)
    """No entity of the knowledge base has this name."""


class VersionError(StoreError):
    """The knowledge base was written by a newer Clew."""


class EmbedderMismatch(StoreError):  # noqa: N818  (reads as what happened)
    """The knowledge base holds vectors of another embedder."""


class VectorsDeferred(StoreError):  # noqa: N818  (reads as what happened)
    """The vectors of a kind are not made before something reads them."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"this needs the vectors of {kind} elements, which are made when they are first read; "
            f"`clew reembed --kinds {kind}` makes them"
        )
        self.kind = kind


class ArraysMissing(StoreError):  # noqa: N818  (reads as what happened)
    """The derived arrays are missing; they can be rebuilt from the tables."""


class DamagedArrays(ArraysMissing):
    """The derived arrays are not as they were written; they can be rebuilt from the tables."""


class Locked(StoreError):  # noqa: N818  (reads as what happened)
    """Another process is writing to the knowledge base."""


class NotPermitted(StoreError):  # noqa: N818  (reads as what happened)
    """The user of a database may not do that there."""


_ARTICLES = frozenset("the a an der die das le la les el los las il lo".split())


def suggest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean …?" for the known name nearest to `name`, or "" if none is near."""
    from difflib import get_close_matches  # only needed for messages

    by_fold = {_fold_name(one): one for one in known}
    wanted = _fold_name(name)
    near = get_close_matches(wanted, by_fold, n=3, cutoff=0.6)
    # One that begins otherwise must be nearer: "Next" is not "EXIT".
    sure = get_close_matches(wanted, near, n=3, cutoff=0.8)
    near = [one for one in near if one[:1] == wanted[:1] or one in sure]
    return f"; did you mean {by_fold[near[0]]!r}?" if near else ""


def _fold_name(name: str) -> str:
    """Fold a name for comparison: small letters, no article before it."""
    folded = name.casefold().strip()
    first, _, rest = folded.partition(" ")
    return rest.strip() if rest and first in _ARTICLES else folded
