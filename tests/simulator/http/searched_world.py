"""The engine of which tests/data/search/found.jsonl shows what a real one finds, with names that are odd."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import msgspec

from ovirt_placement.model import DataCenter, Network, Nic, Snapshot, VnicProfile
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.event_commands import ExternalEvent
from ovirt_simulator.core.settings import PROMPT
from tests.builders import cluster, host, snapshot, vm

#: The day on which the real engine's code was asked: it knows what `today` is.
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
#: Name, cluster, host, status, tags, virtual CPUs, memory in MB.
_VMS = (
    ("web1", "A", "h1", "up", ("red", "blue"), 2, 2048),
    ("web_2", "A", "h2", "up", ("red",), 1, 1024),
    ("webx2", "A", "h1", "up", (), 4, 4096),
    ("Web%3", "A", None, "down", ("blue",), 1, 1024),
    ("back\\slash", "B", "h3", "up", (), 1, 1024),
    ("é-acute", "B", None, "down", ("green",), 8, 16384),
    ("it,comma", "A", "h1", "paused", (), 1, 1024),
    ("db1", "A", "h2", "up", (), 2, 8192),
    ("DB1", "B", "h3", "up", ("red", "green"), 2, 8192),
    ("a.b", "A", None, "down", (), 1, 512),
)
_EVENTS = (
    ("normal", "web1", None, "test", "hello world"),
    ("warning", None, "h1", "Nagios", "web_2 is 50% full"),
    ("error", "db1", "h2", "test", "a*b"),
    ("alert", None, None, "x", "Path C:\\temp"),
)
#: Who may use which VM.
USERS = {"alice": ("web1", "db1"), "bob": ("web_2",)}


def identity(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def searched_engine() -> Engine:
    engine = Engine.from_snapshot(_records(), clock=NOW, settings=PROMPT)
    user_role = next(role.id for role in engine.queries.roles() if role.name == "UserRole")
    for user, vms in USERS.items():
        for name in vms:
            engine.access.grant(user_role, identity(user), vm=identity(name))
    colour = engine.tags.add("colour")
    for tag in engine.queries.tags():
        if tag.name in ("red", "green"):
            engine.tags.update(tag.id, parent=colour.id)
    for number, (severity, vm_name, host_name, origin, message) in enumerate(_EVENTS):
        engine.events.add(
            ExternalEvent(
                severity=severity,
                vm=None if vm_name is None else identity(vm_name),
                host=None if host_name is None else identity(host_name),
                origin=origin,
                custom_id=number,
                description=message,
            )
        )
    return engine


def _records() -> Snapshot:
    nic = Nic(id=identity("nic"), name="eth0", vnic_profile=identity("profile"))
    vms = [
        vm(
            identity(name),
            None if host_name is None else identity(host_name),
            name=name,
            cluster=identity(cluster_name),
            status=status,
            tags=tags,
            vcpus=vcpus,
            memory_mb=memory,
            guaranteed_mb=memory // 2,
            nics=(nic,) if name == "web1" else (),
        )
        for name, cluster_name, host_name, status, tags, vcpus, memory in _VMS
    ]
    return msgspec.structs.replace(
        snapshot(
            cluster(identity("A"), name="Default", data_center=identity("DC1"), compatibility="4.6"),
            cluster(identity("B"), name="Second_<&>", data_center=identity("DC2"), compatibility="4.7"),
            host(identity("h1"), name="alpha", cluster=identity("A"), tags=("ssd",)),
            host(identity("h2"), name="beta", cluster=identity("A")),
            host(identity("h3"), name="Gamma", cluster=identity("B"), tags=("ssd", "red")),
            host(identity("h4"), name="delta", cluster=identity("A"), status="maintenance"),
            *vms,
        ),
        data_centers=tuple(DataCenter(id=identity(name), name=name) for name in ("DC1", "DC2")),
        networks=(Network(id=identity("network"), name="ovirtmgmt"),),
        vnic_profiles=(VnicProfile(id=identity("profile"), name="mgmt", network=identity("network")),),
    )
