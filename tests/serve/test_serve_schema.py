"""Random requests by the OpenAPI description: the server never fails."""

from pathlib import Path

import pytest
from serving import Listening, fill, make_key, make_server


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_no_random_request_makes_the_server_fail(tmp_path: Path) -> None:
    from random_requests import send_random

    fill(tmp_path / "default")
    server = make_server(tmp_path)
    key = make_key(server, {"*": "admin"})
    with Listening(server) as url:
        statuses, failures = send_random(url, 2000, key)
    assert failures == []
    assert sum(statuses.values()) > 1000 and statuses[200] > 100
