"""VMs and hosts with a tag are found by a search each, whatever else bears tags."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading.searches import tagged_ids
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import host, snapshot, vm

TAG = "ovirt-enforcer-exclude"
STATE = snapshot(
    host("h1", tags=(TAG,)),
    vm("a", "h1", tags=(TAG, "other")),
    vm("b", "h1", tags=("other",)),
    vm("c", tags=(TAG,)),
    vm("d", "h1"),
)


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        (TAG, {"a", "c", "h1"}),
        ("other", {"a", "b"}),
        ("ovirt-*", {"a", "c", "h1"}),
        ("ovirt-enforcer", set()),
        ("none", set()),
    ],
)
def test_what_bears_it_is_found_by_their_tag(tag: str, found: set[str]) -> None:
    server = serve(Engine.from_snapshot(STATE, clock=datetime(2026, 1, 1, tzinfo=UTC)))
    try:
        settings = EngineSettings(url=server.api_url, username="admin@internal")
        with EngineConnection(settings, {"OVIRT_PASSWORD": "password"}) as connection:
            assert tagged_ids(connection, tag) == found
    finally:
        server.close()
