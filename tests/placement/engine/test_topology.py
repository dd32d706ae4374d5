"""The reader against a real engine's answers: every field, by an oracle that shares no code with it."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineSetupError
from ovirt_placement.engine.policies import PolicyReader
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.model import Cluster, Host, SchedulingPolicy, Vm
from ovirt_service.errors import UserError
from tests.paths import DATA
from tests.placement.engine_server import RECORDING, EngineServer, answering, connected

MIB = 1024 * 1024


@pytest.fixture
def connection(engine: EngineServer) -> Iterator[EngineConnection]:
    with connected(engine) as connection:
        yield connection


def recorded(name: str) -> list[ET.Element]:
    return list(ET.parse(RECORDING / f"{name}.xml").getroot())


def identity(element: ET.Element, path: str) -> str | None:
    child = element.find(path)
    return None if child is None else child.get("id")


def product(element: ET.Element, *paths: str) -> int:
    result = 1
    for path in paths:
        result *= int(element.findtext(path, "1"))
    return result


def expected_cluster(element: ET.Element) -> dict[str, Any]:
    properties = element.iterfind("custom_scheduling_policy_properties/property")
    return {
        "id": element.get("id"),
        "name": element.findtext("name"),
        "ha_reservation": element.findtext("ha_reservation") == "true",
        "data_center": identity(element, "data_center"),
        "compatibility": f"{element.findtext('version/major')}.{element.findtext('version/minor')}",
        "count_threads_as_cores": element.findtext("threads_as_cores") == "true",
        "upgrade_mode": element.findtext("upgrade_in_progress") == "true",
        "upgrade_correlation_id": element.findtext("upgrade_correlation_id"),
        "memory_overcommit_percent": int(element.findtext("memory_policy/over_commit/percent", "")),
        "scheduling_properties": {entry.findtext("name"): entry.findtext("value") for entry in properties},
    }


def expected_host(element: ET.Element) -> dict[str, Any]:
    cores = product(element, "cpu/topology/sockets", "cpu/topology/cores")
    return {
        "id": element.get("id"),
        "name": element.findtext("name"),
        "cluster": identity(element, "cluster"),
        "status": element.findtext("status"),
        "memory_mb": int(element.findtext("memory", "")) // MIB,
        "free_mb": int(element.findtext("max_scheduling_memory", "")) // MIB,
        "cpu_percent": None,
        "cores": cores,
        "sockets": int(element.findtext("cpu/topology/sockets", "")),
        "threads": cores * product(element, "cpu/topology/threads"),
        "spm": element.findtext("spm/status") == "spm",
    }


def seconds(moment: str) -> float:
    return (datetime.fromisoformat(moment) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()


def expected_vm(element: ET.Element) -> dict[str, Any]:
    topology = [f"cpu/topology/{part}" for part in ("sockets", "cores", "threads")]
    return {
        "id": element.get("id"),
        "name": element.findtext("name"),
        "cluster": identity(element, "cluster"),
        "host": identity(element, "host"),
        "status": element.findtext("status"),
        "memory_mb": int(element.findtext("memory", "")) // MIB,
        "guaranteed_mb": int(element.findtext("memory_policy/guaranteed", "")) // MIB,
        "usage_mem_percent": None,
        "usage_cpu_percent": None,
        "vcpus": product(element, *topology),
        "ha": element.findtext("high_availability/enabled") == "true",
        "ha_priority": int(element.findtext("high_availability/priority")),
        "migratable": element.findtext("placement_policy/affinity") == "migratable",
        "hosted_engine": "hosted_engine" in element.findtext("origin", ""),
        "running_since": None
        if identity(element, "host") is None
        else seconds(element.findtext("start_time", "")),
        "pinned_hosts": tuple(host.get("id") for host in element.iterfind("placement_policy/hosts/host")),
        "cpu_pinning": element.findtext("cpu_pinning_policy", "none"),
        "host_passthrough": element.findtext("cpu/mode") == "host_passthrough",
        "threads_per_core": int(element.findtext("cpu/topology/threads", "")),
        "io_threads": int(element.findtext("io/threads", "")),
        "video_mb": 16,  # this engine is older than the type of the device in its API
        "architecture": element.findtext("cpu/architecture"),
        "template": identity(element, "template"),
        "instance_type": identity(element, "instance_type"),
        "quota": identity(element, "quota"),
        "cpu_profile": identity(element, "cpu_profile"),
    }


def test_every_field_is_as_recorded(connection: EngineConnection) -> None:
    """What is not spelled out above has the default of its record."""
    snapshot = read_snapshot(connection)
    assert snapshot.clusters == tuple(Cluster(**expected_cluster(each)) for each in recorded("clusters"))
    assert snapshot.hosts == tuple(Host(**expected_host(each)) for each in recorded("hosts"))
    assert snapshot.vms == tuple(Vm(**expected_vm(each)) for each in recorded("vms"))
    assert {each.id: (each.name, each.local_storage) for each in snapshot.data_centers} == {
        each.get("id"): (each.findtext("name"), each.findtext("local") == "true")
        for each in recorded("datacenters")
    }
    # The recording has neither groups nor labels.
    assert (snapshot.affinity_groups, snapshot.affinity_labels) == ((), ())


def following(path: str) -> tuple[int, bytes] | None:
    """What the recording has in files of its own, inside of what it hangs on: so `follow` puts it."""
    collection = urlsplit(path).path.strip("/")
    if collection not in ("hosts", "vms") or "follow=" not in path:
        return None
    found = ET.parse(RECORDING / f"{collection}.xml").getroot()
    for one in found:
        for file in RECORDING.glob(f"{collection}_{one.get('id')}_*.xml"):
            one.append(ET.parse(file).getroot())
    return 200, ET.tostring(found)


def test_statistics_and_devices_are_as_recorded_inside_of_hosts_and_vms() -> None:
    with answering(following) as (_, connection):
        snapshot = read_snapshot(connection, statistics=True, devices=True)
    for host in snapshot.hosts:
        values = {
            each.findtext("name"): float(each.findtext("values/value/datum", "nan"))
            for each in recorded(f"hosts_{host.id}_statistics")
        }
        used = values["cpu.current.user"] + values["cpu.current.system"]
        assert host.cpu_percent == (used if used or values["cpu.current.idle"] else None)
        assert host.memory_free_mb == values["memory.free"] // MIB
        assert host.swap_free_mb == (None if host.cpu_percent is None else values["swap.free"] // MIB)
    assert [host.cpu_percent is None for host in snapshot.hosts] == [True, False]
    assert [host.load_average_5m for host in snapshot.hosts] == [None, 0.1]
    for vm in snapshot.vms:
        assert [(nic.id, nic.name, nic.vnic_profile) for nic in vm.nics] == [
            (each.get("id"), each.findtext("name"), identity(each, "vnic_profile"))
            for each in recorded(f"vms_{vm.id}_nics")
        ]
        assert [(disk.id, disk.bootable) for disk in vm.disks] == [
            (identity(each, "disk"), each.findtext("bootable") == "true")
            for each in recorded(f"vms_{vm.id}_diskattachments")
        ]
    assert sum(len(vm.nics) for vm in snapshot.vms) > 5


def test_networks_and_profiles_come_with_the_devices(connection: EngineConnection) -> None:
    snapshot = read_snapshot(connection, devices=True)
    assert {each.id: each.name for each in snapshot.networks} == {
        each.get("id"): each.findtext("name") for each in recorded("networks")
    }
    assert {each.id: (each.name, each.network) for each in snapshot.vnic_profiles} == {
        each.get("id"): (each.findtext("name"), identity(each, "network"))
        for each in recorded("vnicprofiles")
    }


TOPOLOGY = ["/clusters?follow=affinity_groups", "/hosts", "/vms", "/affinitylabels?follow=vms%2Chosts"]


def test_the_topology_costs_four_requests_and_the_data_centers_one(
    engine: EngineServer, connection: EngineConnection
) -> None:
    policies = PolicyReader()
    read_snapshot(connection, policies=policies)
    asked = [request for request in engine.requests if not request.startswith("/schedulingpolic")]
    assert asked == [*TOPOLOGY, "/datacenters"]
    engine.requests.clear()
    read_snapshot(connection, policies=policies)  # policies are remembered
    assert engine.requests == asked


DENIED = "admin@internal may not read /clusters: give it the role ReadOnlyAdmin"
MISTAKES = {
    "nothing there": (404, b"", "not an oVirt engine's API"),
    "malformed": (200, b"<html", "sends malformed XML"),
    "another service": (200, b"welcome", "not an oVirt engine's API"),
    "too few permissions": (
        400,
        b"<fault><detail>Query execution failed due to insufficient permissions.</detail></fault>",
        DENIED,
    ),
    # What engine 4.5.8 answers to a user with a role on one VM, and to one without any.
    "a role on one VM": (500, (DATA / "recordings" / "follow-denied.html").read_bytes(), DENIED),
    "no role": (
        401,
        b"<html><body>The user a@b with profile [b] is not authorized to perform login</body></html>",
        "admin@internal has no role in the engine: give it the role ReadOnlyAdmin",
    ),
}


HIDDEN = b'<vms><vm id="v"><name>v</name><status>up</status></vm></vms>'
MISTAKES["VMs without what administrators see"] = (200, HIDDEN, "ReadOnlyAdmin")


@pytest.mark.parametrize(("status", "body", "complaint"), MISTAKES.values(), ids=MISTAKES)
def test_what_is_no_engine_or_hides_things_is_a_wrong_set_up(
    status: int, body: bytes, complaint: str
) -> None:
    path, kind = ("/vms", UserError) if body is HIDDEN else ("/clusters", EngineSetupError)
    with (
        answering(lambda asked: (status, body) if asked.startswith(path) else None) as (_, connection),
        pytest.raises(kind, match=complaint),
    ):
        read_snapshot(connection)


def test_a_policy_without_units_is_known_and_one_that_is_gone_is_not() -> None:
    empty = "/schedulingpolicies/empty"
    answers = {f"{empty}/{each}": f"<{each}/>" for each in ("filters", "weights", "balances")}
    answers[empty] = '<scheduling_policy id="empty"/>'
    units = "<scheduling_policy_unit id='u'/>"
    answers["/schedulingpolicyunits"] = f"<scheduling_policy_units>{units}</scheduling_policy_units>"
    fault = "<fault><detail>none</detail><reason>Operation Failed</reason></fault>"
    with answering(lambda path: (200 if path in answers else 404, answers.get(path, fault).encode())) as (
        _,
        connection,
    ):
        found = PolicyReader().read(connection, {"empty", "gone"})
    assert (found["empty"].external, found["gone"].external) == (SchedulingPolicy(), None)
