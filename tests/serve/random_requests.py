"""Random requests by the OpenAPI description; also used by `make attack-server`."""

from collections import Counter
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.database import InMemoryExampleDatabase

SKIPPED = ("/events",)  # a stream of a job that does not exist is 404, one that does may be long


def send_random(url: str, requests: int, headers: dict[str, str]) -> tuple[Counter[int], list[str]]:
    """Send about so many requests; return how often each status came, and what failed."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", headers=headers)
    found = [one.ok() for one in schema.get_all_operations()]
    operations = [one for one in found if not one.path.endswith(SKIPPED)]
    statuses: Counter[int] = Counter()
    failures: list[str] = []
    for operation in operations:
        _send_to(operation, url, -(-requests // len(operations)), headers, statuses, failures)
    return statuses, failures


def _send_to(
    operation: Any,
    url: str,
    requests: int,
    headers: dict[str, str],
    statuses: Counter[int],
    failures: list[str],
) -> None:
    @settings(
        max_examples=requests,
        deadline=None,
        database=InMemoryExampleDatabase(),
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def run(case: Any) -> None:
        reply = case.call(base_url=url, headers=headers)
        statuses[reply.status_code] += 1
        if reply.status_code >= 500:
            failures.append(f"{case.method} {case.path}: {reply.status_code} {reply.text[:200]}")

    run()
