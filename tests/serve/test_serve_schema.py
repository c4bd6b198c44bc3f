"""Random requests by the OpenAPI description: the server never fails."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from serving import Listening, fill, make_server

SKIPPED = ("/events",)  # a stream of a job that does not exist is 404, one that does may be long


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_no_random_request_makes_the_server_fail(tmp_path: Path) -> None:
    import schemathesis

    fill(tmp_path / "default")
    counts: dict[int, int] = {}
    with Listening(make_server(tmp_path)) as url:
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
        for found in schema.get_all_operations():
            operation = found.ok()
            if operation.path.endswith(SKIPPED):
                continue

            @settings(
                max_examples=220,
                deadline=None,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy())
            def run(case: Any) -> None:
                reply = case.call(base_url=url)
                counts[reply.status_code] = counts.get(reply.status_code, 0) + 1
                assert reply.status_code < 500, (case.method, case.path, reply.text)

            run()
    assert sum(counts.values()) > 1000
