"""Every address answers, for what is there and for what is not, in XML and in JSON; none fails unforeseen."""

from __future__ import annotations

import json
import re

import pytest

from ovirt_simulator.http import limits
from ovirt_simulator.http.routes import routes
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request

#: Of the engine that these tests read; what is not here is not there.
_IDS = {
    "vm_id": "db1",
    "host_id": "host1",
    "cluster_id": "cluster1",
    "group_id": "near",
    "data_center_id": "dc1",
    "network_id": "net1",
    "profile_id": "vp1",
    "disk_id": "disk1",
    "template_id": "tpl1",
    "label_id": "backend",
    "nic_id": "nic1",
    "event_id": "1",
}


def addresses(method: str = "GET") -> list[str]:
    found = (rule.rule for rule in routes().iter_rules() if method in (rule.methods or ()))
    return sorted(re.sub(r"<(\w+)>", lambda name: _IDS.get(name[1], "none"), rule) for rule in found)


@pytest.mark.parametrize("accept", ["application/xml", "application/json"])
def test_every_address_answers(server: Server, accept: str) -> None:
    failed = {}
    for address in addresses():
        reply = request(f"{server.api_url}{address}?max=1&search=name=x", headers={"Accept": accept})
        if reply.status not in (200, 400, 404, 501):
            failed[address] = reply.status
        elif reply.body and accept == "application/json":
            assert isinstance(json.loads(reply.body), dict), address
    assert failed == {}


@pytest.mark.system
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_every_command_answers(server: Server, method: str) -> None:
    """With a body that says nothing, of whatever kind the address takes."""
    roots = ["action"] if method == "DELETE" else ["action", *sorted(limits.roots())]
    for address in addresses(method):
        for root in roots:
            reply = request(f"{server.api_url}{address}", method, f"<{root}/>")
            assert reply.status in (200, 201, 202, 400, 404, 409, 501), (address, root)
