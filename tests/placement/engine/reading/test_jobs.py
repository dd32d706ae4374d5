"""A job shows that the engine still works on a request; it is found by the correlation id alone."""

from __future__ import annotations

import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection, EngineFault
from ovirt_placement.engine.reading.searches import is_working
from tests.placement.engine_server import PASSWORD, EngineServer, serving


def working(status: int, content: str) -> tuple[bool, list[str]]:
    """What is answered, and the requests that it took."""
    with serving(EngineServer(answer=lambda path: (status, content.encode()))) as server:
        there = EngineSettings(url=server.url, username="admin@internal")
        with EngineConnection(there, {"OVIRT_PASSWORD": PASSWORD}) as connection:
            return is_working(connection, "one"), server.requests


@pytest.mark.parametrize(("status", "works"), [("started", True), ("finished", False), ("failed", False)])
def test_a_job_that_has_not_ended_is_worked_on(status: str, works: bool) -> None:
    found = working(200, f"<jobs><job id='j'><status>{status}</status></job></jobs>")
    assert found == (works, ["/jobs?search=correlation_id%3Done"])
    assert working(200, "<jobs/>")[0] is False


def test_of_a_user_who_may_not_search_jobs_nothing_is_known() -> None:
    fault = "<fault><detail>not you</detail><reason>Operation Failed</reason></fault>"
    assert working(403, fault)[0] is False
    with pytest.raises(EngineFault):
        working(409, fault)
