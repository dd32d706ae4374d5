"""A recording is served byte for byte, and what it lacks as an engine would lack it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ovirtsdk4
import pytest

from ovirt_service.errors import UserError
from ovirt_simulator.http.server import Server, serve_recording
from tests.paths import RECORDING
from tests.simulator.http.plain import request

FILES = sorted(RECORDING.glob("*.xml"))


@pytest.fixture(scope="module")
def recorded() -> Iterator[Server]:
    server = serve_recording(RECORDING)
    yield server
    server.close()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_file_as_it_stands(recorded: Server, file: Path) -> None:
    reply = request(f"{recorded.api_url}/{file.stem.replace('_', '/')}")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("application/xml")
    assert reply.body == file.read_bytes()


def test_an_absent_collection_is_empty(recorded: Server) -> None:
    reply = request(f"{recorded.api_url}/affinitylabels")
    assert (reply.status, reply.xml.tag, len(reply.xml)) == (200, "affinity_labels", 0)


def test_an_absent_sub_resource_is_not_found(recorded: Server) -> None:
    cluster_id = request(f"{recorded.api_url}/clusters").xml[0].get("id")
    for path in (f"clusters/{cluster_id}/affinitygroups", f"clusters/{cluster_id}", "nonsense"):
        reply = request(f"{recorded.api_url}/{path}")
        assert (reply.status, reply.body) == (404, b""), path


def test_follow_and_search_are_ignored(recorded: Server) -> None:
    everything = (RECORDING / "clusters.xml").read_bytes()
    assert (
        request(f"{recorded.api_url}/clusters?follow=affinity_groups&search=nonsense&max=1").body
        == everything
    )


def test_any_password_is_right_and_nothing_changes(recorded: Server) -> None:
    assert request(f"{recorded.api_url}/vms", user="admin@internal:whatever").status == 200
    assert request(f"{recorded.api_url}/vms", user=None).status == 401
    assert request(f"{recorded.api_url}/vms/x/migrate", "POST", "<action/>").status == 405


def test_the_sdk_reads_it(recorded: Server) -> None:
    connection = ovirtsdk4.Connection(url=recorded.api_url, username="admin@internal", password="any")
    system = connection.system_service()
    assert connection.test()
    assert [vm.status.value for vm in system.vms_service().list()] == ["up", "up", "up", "down", "up"]
    host = next(host for host in system.hosts_service().list() if host.name == "bodh2")
    statistics = system.hosts_service().host_service(host.id).statistics_service().list()
    assert next(each for each in statistics if each.name == "memory.total").values[0].datum == 16654532608
    assert system.affinity_labels_service().list() == []
    connection.close()


def test_a_folder_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no \.xml files"):
        serve_recording(tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        serve_recording(tmp_path / "absent")
