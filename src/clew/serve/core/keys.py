"""Keys: random tokens, stored only as hashes, with rights per workspace, labels and limits."""

import hashlib
import json
import secrets
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from clew.errors import ConfigError
from clew.labels import check_labels
from clew.llm.budget import UsageLimits
from clew.serve.core.database import ServerDatabase
from clew.types import Usage

Scope = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
EVERY_WORKSPACE = "*"
_PREFIX = "clew_"
_ACTIVE = "revoked IS NULL AND (expires IS NULL OR expires > ?1)"
_FIND = (
    "SELECT * FROM keys WHERE (hash = ?2 OR (old_hash = ?2 AND old_until > ?1)) "  # noqa: S608
    f"AND {_ACTIVE}"
)


@dataclass(frozen=True)
class KeyLimits:
    """What a key may use; None means no limit of its own."""

    requests_per_minute: float | None = None
    calls_per_day: int | None = None
    money_per_day: float | None = None

    def remaining(self, calls: int, money: float) -> UsageLimits:
        """Return what is left of the day's budget after so many calls and so much money."""
        left_calls = None if self.calls_per_day is None else max(0, self.calls_per_day - calls)
        left_money = None if self.money_per_day is None else max(0.0, self.money_per_day - money)
        return UsageLimits(calls=left_calls, money=left_money)


NO_LIMITS = KeyLimits()


@dataclass(frozen=True)
class Key:
    """The rights of one caller."""

    id: str
    name: str
    grants: Mapping[str, Scope]
    """Scope by workspace; `*` stands for every workspace."""
    labels: frozenset[str] | None = frozenset()
    """Labels of documents it may see; None sees every document."""
    limits: KeyLimits = KeyLimits()
    created: float = 0.0
    expires: float | None = None
    revoked: float | None = None
    used: float | None = None

    def scope(self, workspace: str) -> Scope | None:
        """The scope in a workspace, the wider of its own and that of `*`; None without one."""
        held = [self.grants[name] for name in (workspace, EVERY_WORKSPACE) if name in self.grants]
        return max(held, key=SCOPES.index, default=None)

    def allows(self, workspace: str, scope: Scope) -> bool:
        """Whether the key has at least this scope in a workspace."""
        held = self.scope(workspace)
        return held is not None and SCOPES.index(held) >= SCOPES.index(scope)

    @property
    def sees_all(self) -> bool:
        """Whether no label hides a document from this key."""
        return self.labels is None

    def to_json(self) -> dict[str, Any]:
        """Return what may be shown of a key; its token is not known."""
        return {
            "id": self.id,
            "name": self.name,
            "grants": dict(self.grants),
            "labels": None if self.labels is None else sorted(self.labels),
            "limits": asdict(self.limits),
            "created": self.created,
            "expires": self.expires,
            "revoked": self.revoked,
            "used": self.used,
        }


LOCAL_KEY = Key("local", "local", {EVERY_WORKSPACE: "admin"}, None)
"""The caller of a server on a loopback address for which no key was made."""


@dataclass
class KeyStore:
    """Keys of one server."""

    database: ServerDatabase

    def create(
        self,
        name: str,
        grants: Mapping[str, Scope],
        *,
        labels: frozenset[str] | None = frozenset(),
        expires: float | None = None,
        limits: KeyLimits = NO_LIMITS,
    ) -> tuple[Key, str]:
        """Make a key; return it and its token, which is not stored."""
        if not name.strip() or len(name) > 100:
            raise ConfigError("a key needs a name of at most 100 characters")
        if not grants:
            raise ConfigError("a key needs at least one workspace; give --workspace NAME")
        token = _PREFIX + secrets.token_urlsafe(32)
        made = Key(
            secrets.token_hex(4),
            name.strip(),
            dict(grants),
            labels if labels is None else frozenset(check_labels(labels)),
            limits,
            time.time(),
            expires,
        )
        shown = made.to_json()
        self.database.change(
            "INSERT INTO keys(id, name, hash, grants, labels, limits, created, expires) "
            "VALUES (?,?,?,?,?,?,?,?)",
            *(made.id, made.name, hash_token(token), json.dumps(shown["grants"])),
            *(json.dumps(shown["labels"]), json.dumps(shown["limits"]), made.created, expires),
        )
        return made, token

    def find(self, token: str) -> Key | None:
        """Return the key of a token that is neither revoked nor expired."""
        row = self.database.row(_FIND, time.time(), hash_token(token))
        return None if row is None else _read_key(row)

    def any_active(self) -> bool:
        """Whether any key can be used."""
        query = f"SELECT 1 FROM keys WHERE {_ACTIVE} LIMIT 1"  # noqa: S608
        return self.database.row(query, time.time()) is not None

    def any_made(self) -> bool:
        """Whether a key was ever made, even one that is revoked or expired by now."""
        return self.database.row("SELECT 1 FROM keys LIMIT 1") is not None

    def list(self) -> list[Key]:
        """Return all keys, the oldest first."""
        return [_read_key(row) for row in self.database.rows("SELECT * FROM keys ORDER BY created")]

    def revoke(self, key: str) -> None:
        """Make a key useless from now on."""
        self._change(key, "UPDATE keys SET revoked = ?1 WHERE id = ?2", time.time())

    def rotate(self, key: str, grace: float = 0.0) -> str:
        """Give a key a new token; the old one works for `grace` seconds more."""
        token = _PREFIX + secrets.token_urlsafe(32)
        self._change(
            key,
            "UPDATE keys SET old_hash = hash, old_until = ?1, hash = ?3 WHERE id = ?2",
            time.time() + grace,
            hash_token(token),
        )
        return token

    def spend(self, key: str, usage: Usage) -> None:
        """Count model calls, or take them back, in the budget that a key has for today."""
        if usage.calls or usage.money:
            self.database.change(
                "INSERT INTO spending VALUES (?1,?2,?3,?4) ON CONFLICT(key, day) "
                "DO UPDATE SET calls = calls + ?3, money = money + ?4",
                *(key, today(), usage.calls, usage.money),
            )

    def get(self, key: str) -> Key:
        """Return the key of an id, also one that was revoked; without one it is the local caller's.

        Keys are never deleted, so only that caller has none.
        """
        row = self.database.row("SELECT * FROM keys WHERE id = ?", key)
        return LOCAL_KEY if row is None else _read_key(row)

    def spent_today(self, key: str) -> tuple[int, float]:
        """Return the calls and the money that a key has used today."""
        row = self.database.row(
            "SELECT calls, money FROM spending WHERE key = ? AND day = ?", key, today()
        )
        return (row["calls"], row["money"]) if row else (0, 0.0)

    def _change(self, key: str, statement: str, first: float, *more: str) -> None:
        if self.database.change(statement + " AND revoked IS NULL", first, key, *more) == 0:
            raise ConfigError(f"no active key {key!r}; `clew keys list` shows them")


def today() -> str:
    """Return the day by which spending is counted."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def hash_token(token: str) -> str:
    """Hash a token; it has 256 random bits, so a slow hash would add nothing."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _read_key(row: sqlite3.Row) -> Key:
    labels = json.loads(row["labels"])
    return Key(
        row["id"],
        row["name"],
        json.loads(row["grants"]),
        None if labels is None else frozenset(labels),
        KeyLimits(**json.loads(row["limits"])),
        row["created"],
        row["expires"],
        row["revoked"],
        row["used"],
    )
