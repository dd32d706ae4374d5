"""What goes wrong between client and engine when a test asks for it, and the simulator's other controls."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from ovirtsdk4 import Error
from ovirtsdk4.services import SystemService

from ovirt_placement.model import state_file
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.control import Disturbance, Drop
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import Api, Reply, request

Control = Callable[..., Reply]


@pytest.fixture
def control(server: Server) -> Control:
    """Sends a request to the simulator's own addresses."""
    return lambda method, path, /, **body: request(
        f"{server.url}/simulator{path}", method, json.dumps(body), user=None
    )


@pytest.mark.parametrize("status", [500, 503])
def test_an_error_once(control: Control, api: Api, status: int) -> None:
    assert control("POST", "/disturbances", status=status, path="/vms").status == 200
    assert api("hosts").status == 200, "another path"
    reply = api("vms")
    assert (reply.status, reply.headers["content-type"]) == (status, "text/html;charset=UTF-8")
    assert api("vms").status == 200


def test_errors_until_they_are_cleared(server: Server, control: Control, system: SystemService) -> None:
    server.disturbances.add(Disturbance(status=503, method="GET", times=None))
    for _ in range(3):
        with pytest.raises(Error, match="text/html"):
            system.vms_service().list()
    control("DELETE", "/disturbances")
    assert system.vms_service().list()


@pytest.mark.parametrize(("lost", "status"), [("request", "up"), ("answer", "migrating")])
def test_a_request_that_is_lost_is_not_carried_out_but_one_whose_answer_is(
    engine: Engine, server: Server, system: SystemService, lost: Drop, status: str
) -> None:
    server.disturbances.add(Disturbance(method="POST", path="/migrate$", drop=lost))
    with pytest.raises(Error):
        system.vms_service().vm_service("web2").migrate()
    assert engine.queries.state.vms["web2"].status == status


@pytest.mark.system
def test_a_slow_answer(server: Server, api: Api) -> None:
    server.disturbances.add(Disturbance(delay_seconds=0.3, times=2))
    for _ in range(2):
        begin = time.monotonic()
        assert api("vms").status == 200
        assert time.monotonic() - begin >= 0.3


def test_tokens_end_on_demand(control: Control, system: SystemService) -> None:
    for _ in range(3):
        assert system.vms_service().list()
        assert json.loads(control("POST", "/tokens/expire").body) == {"expired": 1}
    assert system.vms_service().list()


def test_time_passes_and_hosts_crash_on_demand(control: Control, system: SystemService) -> None:
    service = system.hosts_service().host_service("host2")
    assert control("POST", "/hosts/host2/fail").status == 200
    control("POST", "/advance", seconds=90)
    assert service.get().status.value == "non_responsive"
    assert control("POST", "/hosts/host2/recover").status == 200
    control("POST", "/advance", seconds=600)
    assert service.get().status.value == "up"


def test_a_vm_dies_on_demand(control: Control, system: SystemService) -> None:
    assert control("POST", "/vms/stuck/crash").status == 200
    assert system.vms_service().vm_service("stuck").get().status.value == "down"


def test_migrations_fail_on_demand(control: Control, system: SystemService) -> None:
    service = system.vms_service().vm_service("web2")
    control("POST", "/migrations/faults", refuse=True, vm="web2", count=1)
    with pytest.raises(Error, match="VDSM"):
        service.migrate()
    service.migrate()
    assert service.get().status.value == "migrating"


def test_the_state_can_be_taken_out(engine: Engine, control: Control) -> None:
    assert state_file.loads(control("GET", "/state").body) == engine.snapshot()


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/advance", {"minutes": 1}, 400),
        ("POST", "/advance", {}, 400),
        ("POST", "/disturbances", {"path": "("}, 400),
        ("POST", "/disturbances", {"drop": "everything"}, 400),
        *(("POST", "/migrations/faults", body, 400) for body in ({"host": "h"}, {"count": "x"}, {"vm": 1})),
        ("POST", "/upgrades/faults", {"hang": True}, 400),
        ("POST", "/hosts/none/fail", {}, 404),
        ("GET", "/nonsense", {}, 404),
        ("DELETE", "/advance", {}, 405),
    ],
)
def test_mistakes_are_reported(
    control: Control, method: str, path: str, body: dict[str, Any], status: int
) -> None:
    reply = control(method, path, **body)
    assert reply.status == status
    assert json.loads(reply.body)["error"]


def test_requests_are_counted_by_user(control: Control, api: Api) -> None:
    def made() -> dict[str, int]:
        counts: dict[str, int] = json.loads(control("GET", "/requests").body)
        return counts

    assert made() == {}
    api("vms")
    api("vms/nowhere")
    api("hosts", user="reader@internal:password")
    api("hosts", user="reader@internal:wrong")
    assert made() == {"admin@internal": 2, "reader@internal": 1}
