"""Every error Clew raises.

ClewError
├── ConfigError          the user can fix it: a setting, a name, a missing extra
├── InputError           a document or a file cannot be read as asked
├── ModelError           an LLM or an embedder failed
│   ├── AuthError        the key or the account is refused: stop at once
│   ├── EndpointError    an endpoint answered with an error (llm/chat.py)
│   └── ParseError       it answered, but not in the asked shape
│       └── NoAnswer     it answered with nothing that could be read
└── StoreError           the knowledge base cannot be read or written
    ├── VersionError     it was made by a newer Clew
    ├── EmbedderMismatch its vectors come from another embedder
    ├── ArraysMissing    what is derived from the truth is not there
    └── Locked           another process is writing to it

A message names the thing and the way out, in one sentence.
"""


class ClewError(Exception):
    """Base class; catch it to catch all of ours."""


class ConfigError(ClewError):
    """The user can fix this: a setting, a name, a missing extra."""


class InputError(ClewError):
    """A document or a file cannot be read as asked."""


class ModelError(ClewError):
    """An LLM or an embedder failed."""


class AuthError(ModelError):
    """The key or the account is refused; trying again cannot help."""


class ParseError(ModelError):
    """The model answered, but not in the shape we asked for."""


class StoreError(ClewError):
    """The knowledge base cannot be read or written."""


class VersionError(StoreError):
    """The knowledge base was made by a newer Clew."""


class EmbedderMismatch(StoreError):  # noqa: N818  (reads as what happened)
    """The knowledge base holds vectors of another embedder."""


class ArraysMissing(StoreError):  # noqa: N818  (reads as what happened)
    """What is derived from the truth is not there; it can be derived anew."""


class Locked(StoreError):  # noqa: N818  (reads as what happened)
    """Another process is writing to the knowledge base."""
