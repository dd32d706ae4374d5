"""Whole worlds for tests of placement keys: hosts, VMs in all states, keys on all levels, records, copies."""

from fractions import Fraction
from typing import Any

import msgspec
from hypothesis import strategies as st

from ovirt_placement.model import (
    DataCenter,
    Disk,
    FrozenKeys,
    Host,
    Network,
    Nic,
    Pending,
    PlacementKey,
    Snapshot,
    StickyCopy,
    Vm,
    VnicProfile,
)
from ovirt_placement.rules.placement_keys.keys import KeySettings
from tests import builders as build
from tests.builders import key

#: The VM that is placed, the others, and where all of them may be.
NEW, OTHERS = "new", ("a", "b", "c", "d")
HOSTS = ("h1", "h2", "h3", "h4")

#: Objects of all levels; every VM has some of them.
RESOURCES = {
    "cluster": [build.CLUSTER],
    "billing_entity": ["quota"],
    "customer_offer": ["owner"],
    "customer": ["owner"],
    "image_offer": ["template"],
    "image": ["template"],
    "vdc_offer": ["dc"],
    "vdc": ["dc"],
    "server_offer": ["type", "cpu-profile"],
    "server": [NEW, *OTHERS],
    "disk_offer": ["disk-profile"],
    "disk": ["disk", "data"],
    "network_offer": ["net"],
    "network": ["net"],
    "nic_offer": ["vnic-profile"],
    "nic": ["nic1", "nic2"],
    "node": list(HOSTS),
    "elsewhere": ["net"],
}

NUMBERS = st.sampled_from([0.0, 1.0, 0.5, 0.1, 0.7, 2.0, -1.0])
VALUES = st.sampled_from(
    [0.0, 1.0, 0.5, 0.1, 0.7, 2.0, -1.0] * 2 + ["1", " 0.3 ", ".5", "1e0", "gold", "nan", "1_0", "0x1", ""]
)
#: Those of single hosts, some of which cannot be.
OWN_RATIOS = st.sampled_from([0.5, 1.5, "2", 0.04, 999.9, 0.0, -1.0, 1000.0, "many", "nan"])
WEIGHTS = st.sampled_from([100.0, 80.0, 50.0, 40.0, 10.0, 33.3, 0.1, -9.0, -10.0, -100.0, 1e9])


@st.composite
def settings(draw: st.DrawFn) -> KeySettings:
    """Those shipped, or others that can be."""
    if draw(st.booleans()):
        return KeySettings()
    final, initial = sorted(draw(st.tuples(*[st.sampled_from([-100, -10, 0, 30, 80])] * 2)))
    ratios = st.sampled_from([None, None, Fraction(1, 2), Fraction(11, 10), Fraction(2)])
    return KeySettings(
        initial=Fraction(initial),
        final=Fraction(final),
        steps=draw(st.sampled_from([1, 2, 4, 7, 10])),
        overhead_mb=draw(st.sampled_from([0, 1024])),
        memory_ratio=draw(ratios),
        cpu_ratio=draw(ratios),
        reserved_from_vms=draw(st.booleans()),
        load_average=draw(st.booleans()),
    )


def _key(
    place: tuple[str, str],
    key_class: str,
    name: str,
    value: float | str,
    weight: float | None,
    sticky: bool = False,
) -> PlacementKey:
    level, resource = place
    return key(name, value, weight, level, key_class, resource=resource, sticky=sticky)


@st.composite
def keys_of_hosts(draw: st.DrawFn) -> list[PlacementKey]:
    """Names that most hosts have, some of them sticky."""
    found = []
    for name in ("A", "B", "_G"):
        weight, sticky = draw(st.sampled_from([(None, False), (60.0, True), (0.0, True)]))
        carrying = draw(st.sampled_from([HOSTS, HOSTS, HOSTS, HOSTS[1:], HOSTS[:2], ()]))
        values = draw(st.fixed_dictionaries(dict.fromkeys(carrying, VALUES)))
        found += [
            _key(("node", host), "system", name, value, weight, sticky) for host, value in values.items()
        ]
    for name in ("#RAM_RATIO", "#CPU_RATIO"):
        found += [
            _key(("node", host), "system", name, draw(OWN_RATIOS), None)
            for host in draw(st.sampled_from([(), (), HOSTS[:1], HOSTS[1:], HOSTS]))
        ]
    return found


PLACES = [(level, resource) for level in RESOURCES for resource in RESOURCES[level]]

#: What the placement depends on: keys of each party, on any level; often several on the VM itself.
WANTED = st.builds(
    _key,
    st.sampled_from(
        PLACES + [("server", NEW)] * 12 + [("server_offer", "type"), ("server_offer", "cpu-profile")] * 4
    ),
    st.sampled_from(["system", "system", "be", "customer"]),
    st.sampled_from(["A", "A", "B", "B", "C", "_G", "_G", "#RAM", "#CPU", "#LOAD"]),
    VALUES,
    WEIGHTS,
)

#: What should not be there.
MISTAKEN = st.builds(
    _key,
    st.sampled_from(PLACES),
    st.sampled_from(["system", "be", "customer"]),
    st.sampled_from(["A", "B", "_G", "#RAM", "#RAM_RATIO", "#X", "_", "#", "", " "]),
    VALUES,
    st.sampled_from([None, 0.0, 10.0, -100.0]),
    st.booleans(),
)


@st.composite
def keys(draw: st.DrawFn) -> tuple[PlacementKey, ...]:
    """Of each party one key of a name on an object, as in the store."""
    found = draw(keys_of_hosts())
    found += draw(st.lists(WANTED, min_size=3, max_size=12)) + draw(st.lists(MISTAKEN, max_size=5))
    return tuple({(key.level, key.resource, key.key_class, key.name): key for key in found}.values())


@st.composite
def hosts(draw: st.DrawFn, name: str) -> Host:
    amounts = [65536] * 9 + [2048, 2049, 3072, 3073]
    return build.host(
        name,
        cluster=draw(st.sampled_from([build.CLUSTER, build.CLUSTER, "cluster2"])),
        status=draw(st.sampled_from(["up"] * 7 + ["maintenance"])),
        memory_mb=draw(st.sampled_from(amounts)),
        free_mb=draw(st.sampled_from([65536] * 4 + [1024, 1025, 2048, 2049])),
        memory_free_mb=draw(st.sampled_from([*amounts, *[None] * 6])),
        cpu_percent=draw(st.sampled_from([0, 50, 37.5, 100, 130, None])),
        load_average_5m=draw(st.sampled_from([None, None, 0, 0.7, 2, 4, 9.1])),
        cores=draw(st.sampled_from([1, 4, 4, 0])),
        threads=draw(st.sampled_from([None, 8])),
        failover=draw(st.sampled_from([False] * 7 + [True])),
    )


DISKS = (Disk(id="disk", bootable=True, profile="disk-profile"), Disk(id="data", bootable=False))
NICS = (
    Nic(id="nic1", name="nic2", vnic_profile="vnic-profile"),
    Nic(id="nic2", name="nic10", vnic_profile="other-profile"),
)
PROPERTIES = ("A:1:100", "B:0.5:-7.5,_G:1:50", "A:1", "#RAM:0:1", "A:x:1", "A:1:0,C:-1:3", "A:1:1;")


@st.composite
def vms(draw: st.DrawFn, name: str) -> Vm:
    """Up or down, paused, migrating to a host that is known, or to one that is not."""
    on = draw(st.sampled_from([None, *HOSTS] if name == NEW else [None, *HOSTS, *HOSTS]))
    status = draw(st.sampled_from(["up", "paused", "migrating"])) if on else "down"
    known = status == "migrating" and draw(st.booleans())
    some: dict[str, Any] = {
        field: draw(st.sampled_from([None, value, value]))
        for field, value in (
            ("quota", "quota"), ("owner", "owner"), ("template", "template"),
            ("instance_type", "type"), ("cpu_profile", "cpu-profile"),
        )
    }  # fmt: skip
    return build.vm(
        name,
        on,
        status=status,
        migrating_to=draw(st.sampled_from(HOSTS)) if known else None,
        memory_mb=draw(st.sampled_from([1024, 2048])),
        vcpus=draw(st.sampled_from([1, 3])),
        disks=draw(st.sampled_from([(), DISKS, DISKS[::-1], DISKS[1:]])),
        nics=draw(st.sampled_from([(), NICS, NICS[::-1], NICS[1:]])),
        custom_properties=draw(st.sampled_from([{}, {}, *({"placement_keys": text} for text in PROPERTIES)])),
        **some,
    )


CLUSTERS = st.builds(
    build.cluster,
    data_center=st.sampled_from([None, "dc"]),
    memory_overcommit_percent=st.sampled_from([100, 100, 50, 150]),
    cpu_overcommit_percent=st.sampled_from([100, 100, 400]),
    count_threads_as_cores=st.booleans(),
)

PROMISES = st.lists(
    st.builds(
        Pending,
        vm=st.sampled_from([NEW, NEW, *OTHERS]),
        host=st.sampled_from(HOSTS),
        memory_mb=st.sampled_from([None, 512, 4096]),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda promise: promise.vm,
)

RECORDS = st.lists(
    st.builds(
        FrozenKeys,
        vm=st.sampled_from([NEW, *OTHERS]),
        keys=st.dictionaries(st.sampled_from(["A", "B", "_G", "#RAM"]), NUMBERS, max_size=4).map(
            lambda brought: tuple(brought.items())
        ),
    ),
    max_size=5,
    unique_by=lambda record: record.vm,
)

COPIES = st.lists(
    st.builds(
        StickyCopy,
        vm=st.sampled_from([NEW, NEW, "a"]),
        name=st.sampled_from(["A", "C"]),
        value=NUMBERS,
        weight=st.sampled_from([60.0, -20.0]),
    ),
    max_size=3,
    unique_by=lambda copy: (copy.vm, copy.name),
)


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    return msgspec.structs.replace(
        build.snapshot(
            draw(CLUSTERS),
            build.cluster("cluster2"),
            *(draw(hosts(name)) for name in HOSTS),
            *(draw(vms(name)) for name in (NEW, *OTHERS)),
        ),
        data_centers=(DataCenter(id="dc", name="dc"),),
        networks=(Network(id="net", name="net"),),
        vnic_profiles=(VnicProfile(id="vnic-profile", name="vnic-profile", network="net"),),
        pending=tuple(draw(PROMISES)),
        placement_keys=draw(keys()),
        frozen_keys=tuple(draw(RECORDS)),
        sticky_copies=tuple(draw(COPIES)),
    )
