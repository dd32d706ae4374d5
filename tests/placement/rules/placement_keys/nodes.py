"""Hosts that are spelled out by what they have and what is taken of it, and a VM that is placed on them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from ovirt_placement.model import (
    Cluster,
    DataCenter,
    Disk,
    FrozenKeys,
    Host,
    Network,
    Nic,
    PlacementKey,
    Snapshot,
    StickyCopy,
    Vm,
    VnicProfile,
)
from ovirt_placement.model.record import STICKY
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.placement_keys.judgement import KeyDecision
from ovirt_placement.rules.placement_keys.keys import DEFAULTS, KeySettings
from ovirt_placement.rules.placement_keys.units import decide_vm, filter_hosts, rank_hosts
from tests import builders as build
from tests.builders import host

#: The VM that is placed; all that its keys can be set on has the same id.
NEW = "new"

#: The keys that a VM brings.
Brought = Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Node:
    """A host in a cluster of its own, which says how often it may be handed out, and the VMs on it."""

    host: Host
    cluster: Cluster
    vms: tuple[Vm, ...]
    records: tuple[FrozenKeys, ...]
    keys: tuple[PlacementKey, ...]


def node(
    name: str,
    keys: Iterable[PlacementKey] = (),
    brought: Iterable[Brought] = (),
    *,
    up: bool = True,
    memory_mb: int = 65536,
    memory_ratio: Fraction = Fraction(1),
    allocated_mb: int = 0,
    free_mb: int = 65536,
    cpus: int = 16,
    cpu_ratio: Fraction = Fraction(1),
    allocated_vcpus: int = 0,
    load: Fraction | None = Fraction(0),
) -> Node:
    """An idle host, unless a test says otherwise; `brought` has an entry for each VM on it that brings keys.

    One VM more has all the memory and CPUs that are taken.
    """
    records = tuple(
        FrozenKeys(vm=f"{name}: VM {number}", keys=tuple(pairs)) for number, pairs in enumerate(brought)
    )
    largest = build.vm(f"{name}: the largest VM", name, memory_mb=allocated_mb, vcpus=allocated_vcpus)
    return Node(
        host=build.host(
            name,
            cluster=f"cluster of {name}",
            status="up" if up else "maintenance",
            memory_mb=memory_mb,
            memory_free_mb=free_mb,
            cores=cpus,
            cpu_percent=None if load is None else float(100 * load),
        ),
        # Fractions, so that a test can have a ratio that is no whole number of percent.
        cluster=build.cluster(
            f"cluster of {name}",
            memory_overcommit_percent=100 * memory_ratio,
            cpu_overcommit_percent=100 * cpu_ratio,
        ),
        vms=(largest, *(build.vm(record.vm, name, memory_mb=0, vcpus=0) for record in records)),
        records=(FrozenKeys(vm=largest.id, keys=()), *records),
        keys=tuple(keys),
    )


def world(
    nodes: Iterable[Node],
    keys: Iterable[PlacementKey] = (),
    memory_mb: int = 4096,
    *,
    on: str | None = None,
    local_storage: bool = False,
) -> Snapshot:
    """The hosts, and the VM that is placed: with these keys, perhaps on one of the hosts.

    Keys on the level of sticky copies are its copies.
    """
    there, wanted = tuple(nodes), tuple(keys)
    new = build.vm(
        NEW, on, memory_mb=memory_mb, cluster=NEW, quota=NEW, owner=NEW, template=NEW, instance_type=NEW,
        disks=(Disk(id=NEW, bootable=True, profile=NEW),),
        nics=(Nic(id=NEW, name="nic1", vnic_profile=NEW),),
    )  # fmt: skip
    return replace(
        build.snapshot(
            build.cluster(NEW, data_center=NEW),
            *(one.cluster for one in there),
            *(one.host for one in there),
            *(vm for one in there for vm in one.vms),
            new,
        ),
        placement_keys=(
            *(key for key in wanted if key.level != STICKY),
            *(key for one in there for key in one.keys),
        ),
        frozen_keys=tuple(record for one in there for record in one.records),
        sticky_copies=tuple(
            StickyCopy(
                vm=NEW, name=key.name, value=cast("float", key.value), weight=cast("float", key.weight)
            )
            for key in wanted
            if key.level == STICKY
        ),
        data_centers=(DataCenter(id=NEW, name=NEW, local_storage=local_storage),),
        networks=(Network(id=NEW, name=NEW),),
        vnic_profiles=(VnicProfile(id=NEW, name=NEW, network=NEW),),
    )


def decide(snapshot: Snapshot, hosts: Iterable[str], settings: KeySettings = DEFAULTS) -> KeyDecision:
    return decide_vm(snapshot, snapshot.vm_by_id[NEW], hosts, settings)


TWO_HOSTS = (host("h1"), host("h2"))


def asked(
    *hosts: str,
    vms: str = "new",
    settings: KeySettings = DEFAULTS,
    placement_tie: str = "random",
    **fields: Any,
) -> Request:
    """A question by the parameters of these settings."""
    numbers = {
        "placement_initial": settings.initial, "placement_final": settings.final,
        "placement_steps": settings.steps, "placement_overhead": settings.overhead_mb,
        "placement_memory_ratio": settings.memory_ratio, "placement_cpu_ratio": settings.cpu_ratio,
    }  # fmt: skip
    parameters = {name: str(float(number)) for name, number in numbers.items() if number is not None}
    parameters["placement_reserved_from_vms"] = str(settings.reserved_from_vms).lower()
    parameters["placement_load"] = "average" if settings.load_average else "cpu"
    parameters["placement_tie"] = placement_tie
    return Request(tuple(vms.split()), hosts or ("h1", "h2"), parameters=parameters, **fields)


def ranks(state: Snapshot, *hosts: str, **fields: Any) -> dict[str, int]:
    return {weight.host: weight.rank for weight in rank_hosts(state, asked(*hosts, **fields))}


def accepted(state: Snapshot, *hosts: str, **fields: Any) -> list[str]:
    return [verdict.host for verdict in filter_hosts(state, asked(*hosts, **fields)) if verdict.accepted]


def keyed(
    *parts: build.Part,
    keys: tuple[PlacementKey, ...] = (),
    frozen: dict[str, dict[str, float]] | None = None,
    copies: tuple[StickyCopy, ...] = (),
    **fields: Any,
) -> Snapshot:
    """A snapshot with keys; `frozen` shows the recorded keys of running VMs."""
    records = tuple(FrozenKeys(vm=vm, keys=tuple(one.items())) for vm, one in (frozen or {}).items())
    return msgspec.structs.replace(
        build.snapshot(*parts), placement_keys=keys, frozen_keys=records, sticky_copies=copies, **fields
    )
