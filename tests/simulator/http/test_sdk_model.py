"""Nothing that the SDK can send is quietly ignored: it is known, refused, or said to be read past."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import MapAdapter

from ovirt_simulator.http.call import Call
from ovirt_simulator.http.resources import empty
from ovirt_simulator.http.routes import routes
from ovirt_simulator.http.routes.table import Resource
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request
from tests.simulator.http.sdk_model import Method, methods

#: What is asked for with a parameter that takes more than a flag.
_VALUES = {"max": "1", "from": "1", "search": "x=", "migration_target_of": "web1", "version": "4.7"}
#: Parameters of reads without effect: there are no searches of a data center's clusters in the engine either,
#: and the VM asked for is after its next start what it is now. Disks depend on no template's.
_WITHOUT_EFFECT = {
    ("/disks/{}/disksnapshots", "include_template"),
    ("/vms/{}", "next_run"),
    ("/datacenters/{}/clusters", "case_sensitive"),
    ("/datacenters/{}/clusters", "search"),
    # What it adds is of NICs with virtual functions.
    ("/hosts/{}/nics", "all_content"),
    ("/hosts/{}/nics/{}", "all_content"),
}
#: Those of other methods that are known; that of snapshots the engine reads past.
_KNOWN = {
    ("POST", "/hosts", "activate"),
    ("POST", "/hosts", "reboot"),
    ("POST", "/vms", "clone"),
    ("DELETE", "/vms/{}", "detach_only"),
    ("DELETE", "/vms/{}/snapshots/{}", "all_content"),
    ("PUT", "/vms/{}", "next_run"),
    ("PUT", "/vms/{}/cdroms/{}", "current"),
    ("DELETE", "/vms/{}/diskattachments/{}", "detach_only"),
}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the parameters that have been looked at."""
    names: set[str] = set()
    parameter = Call.parameter

    def noting(call: Call, name: str) -> str | None:
        names.add(name)
        return parameter(call, name)

    monkeypatch.setattr(Call, "parameter", noting)
    return names


def answered(*verbs: str) -> Iterator[tuple[Method, Resource]]:
    """Give the methods that the simulator answers, each with what answers it."""
    here: MapAdapter = routes().bind("")
    for method in methods():
        if method.verb in verbs:
            try:
                rule, _ = here.match(method.address.replace("{}", "x"), method.verb, return_rule=True)
            except (NotFound, MethodNotAllowed):
                continue
            yield method, rule.endpoint


def test_parameters_of_reads(server: Server, read: set[str]) -> None:
    """Each is looked at or refused; where nothing is, nothing can be wrong."""
    holes = set()
    for method, resource in answered("GET"):
        address = filled(server, method.address)
        if address is None or resource.answer.__module__ == empty.__name__:
            continue
        for name in sorted(method.parameters - {"follow", "max"}):
            read.clear()
            also = "&migration_target_of=web1" if name == "check_vms_in_affinity_closure" else ""
            reply = request(f"{server.api_url}{address}?{name}={_VALUES.get(name, 'true')}{also}")
            if name not in read and reply.status != 501:
                holes.add((method.address, name))
    assert holes == _WITHOUT_EFFECT


def filled(server: Server, address: str) -> str | None:
    """Give the address of something that there is; None when there is none."""
    if address == "/options/{}":
        return "/options/MaxVmNameLength"
    found = ""
    for step in address.split("/")[1:]:
        if step == "{}":
            reply = request(f"{server.api_url}{found}")
            ids = [child.get("id") for child in reply.xml] if reply.status == 200 else []
            if not any(ids):
                return None
            step = next(filter(None, ids))
        found += f"/{step}"
    return found


def test_parameters_of_commands(server: Server) -> None:
    known = set()
    for method, _ in answered("POST", "PUT", "DELETE"):
        for name in method.parameters:
            address = method.address.replace("{}", "nothing")
            reply = request(f"{server.api_url}{address}?{name}=true", method.verb)
            if reply.status != 501:
                known.add((method.verb, method.address, name))
    assert known == _KNOWN


def test_nothing_to_follow_is_quietly_left_out(server: Server) -> None:
    """What cannot be followed is refused; an empty list has nothing that could be."""
    for method, _ in answered("GET"):
        address = filled(server, method.address)
        if address is not None and "follow" in method.parameters:
            reply = request(f"{server.api_url}{address}?follow=nonsense")
            assert reply.status in (500, 501) or (reply.status == 200 and len(reply.xml) == 0), address
