"""A server for this folder's tests, and an empty schema for each of them."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from postgres_server import start_server, why_not

from clew.config import Settings
from clew.kb_address import DatabaseAddress, parse_location

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    if reason := why_not():
        pytest.skip(reason)
    with start_server() as url:
        yield url


@pytest.fixture
def address(server: str) -> DatabaseAddress:
    """The address of a schema that does not exist yet."""
    found = parse_location(f"{server}&schema=kb{next(_NUMBERS)}")
    assert isinstance(found, DatabaseAddress)
    return found


@pytest.fixture
def settings(address: DatabaseAddress, tmp_path: Path) -> Settings:
    return Settings(kb=address, cache=tmp_path / "cache", wait=0.2)
