"""Keys: list, make and revoke them, for those who administer the workspaces they are for."""

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from clew.serve.core.access import key_of, server_of
from clew.serve.core.bodies import StrictBody
from clew.serve.core.keys import EVERY_WORKSPACE, LOCAL_KEY, Key, KeyLimits, Scope
from clew.serve.core.problems import Problem, not_found

router = APIRouter(prefix="/keys", tags=["keys"])
_DAY = 86_400
_MAX_DAYS = 3_650


class KeyRequest(StrictBody):
    """The rights of a key to make."""

    name: str = Field(min_length=1, max_length=100, examples=["Marta's notebook"])
    grants: dict[str, Scope] = Field(
        min_length=1, max_length=100, examples=[{"default": "read"}], description="* is all."
    )
    labels: list[str] | None = Field(
        default=None,
        max_length=100,
        description="Labels it may see; without any it sees no labelled document.",
    )
    all_labels: bool = Field(
        default=False, description="It sees every document, as admins do that have no labels."
    )
    days: float | None = Field(default=None, gt=0, le=_MAX_DAYS, description="Until it expires.")
    requests_per_minute: float | None = Field(default=None, gt=0, le=1e9)
    calls_per_day: int | None = Field(default=None, ge=0, le=10**12)
    money_per_day: float | None = Field(default=None, ge=0, le=1e12)


@router.get("", summary="The keys that this key may administer; tokens are not known")
async def list_keys(request: Request) -> dict[str, Any]:
    """Return keys that can be used or could be, the oldest first."""
    holder = _administrator(request)
    found = await asyncio.to_thread(server_of(request).keys.list)
    return {"keys": [key.to_json() for key in found if _rules_over(holder, key)]}


@router.get("/own", summary="The key of this request: its rights, its limits, what it used today")
async def show_own_key(request: Request) -> dict[str, Any]:
    """Return the caller's own key; `spent` is since midnight, UTC."""
    key = key_of(request)
    calls, money = server_of(request).keys.spent_today(key.id)
    return {**key.to_json(), "spent": {"calls": calls, "money": money}}


@router.post("", status_code=201, summary="Make a key; its token is told once")
async def create_key(request: Request, body: KeyRequest) -> Response:
    """Make a key with no more rights than the one it is made with, and no longer life."""
    holder, server = _administrator(request), server_of(request)
    refused = [name for name in body.grants if not holder.allows(name, "admin")]
    if refused:
        raise Problem(403, f"this key has no admin scope in {refused[0]!r}")
    unknown = [n for n in body.grants if n != EVERY_WORKSPACE and not server.folders.exists(n)]
    if unknown:
        raise Problem(400, f"there is no workspace {unknown[0]!r}")
    if holder == LOCAL_KEY and body.grants.get(EVERY_WORKSPACE) != "admin":
        raise Problem(
            409,
            "from the first key on this server wants one, so the first has to be an admin's "
            "for every workspace",
        )
    made, token = await asyncio.to_thread(
        server.keys.create,
        body.name,
        body.grants,
        labels=_choose_labels(body),
        expires=_earlier(holder.expires, body.days),
        limits=KeyLimits(body.requests_per_minute, body.calls_per_day, body.money_per_day),
    )
    return JSONResponse({**made.to_json(), "token": token}, 201)


@router.delete("/{key}", summary="Revoke a key")
async def revoke_key(request: Request, key: Annotated[str, Path(max_length=64)]) -> dict[str, Any]:
    """Make a key useless from now on."""
    holder, keys = _administrator(request), server_of(request).keys
    found = [one for one in await asyncio.to_thread(keys.list) if one.id == key]
    if not found or not _rules_over(holder, found[0]):
        raise not_found()
    if found[0].id == holder.id:
        raise Problem(409, "a key cannot revoke itself; use another, or `clew keys revoke`")
    await asyncio.to_thread(keys.revoke, key)
    return {"id": key, "revoked": True}


def _administrator(request: Request) -> Key:
    """Return the caller's key; refuse one without admin scope, or with limits to get around."""
    key = key_of(request)
    if "admin" not in key.grants.values():
        raise not_found()
    if not key.sees_all or key.limits != KeyLimits():
        raise Problem(403, "a key that has labels or limits of its own cannot administer keys")
    return key


def _rules_over(holder: Key, other: Key) -> bool:
    """Whether a key is admin wherever another has any right."""
    return all(holder.allows(name, "admin") for name in other.grants)


def _choose_labels(body: KeyRequest) -> frozenset[str] | None:
    """Return the labels that a key may see; all of them only if that is asked for, or an admin."""
    if body.labels:
        if body.all_labels:
            raise Problem(400, "give either labels or all_labels, not both")
        return frozenset(body.labels)
    is_admin = set(body.grants.values()) == {"admin"}
    return None if body.all_labels or is_admin else frozenset()


def _earlier(expires: float | None, days: float | None) -> float | None:
    wanted = None if days is None else time.time() + days * _DAY
    return min((one for one in (expires, wanted) if one is not None), default=None)
