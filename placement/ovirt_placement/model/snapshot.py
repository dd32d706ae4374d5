"""The placement state of one engine at one moment, with the look-ups that rules need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from itertools import chain
from typing import Any, Final, Literal, TypeVar

import msgspec

from ovirt_placement.model.infrastructure import (
    AffinityGroup,
    AffinityLabel,
    Cluster,
    DataCenter,
    Host,
    Network,
    Vm,
    VnicProfile,
)
from ovirt_placement.model.record import (
    FrozenKeys,
    MemberSearch,
    PlacementKey,
    PlacementRule,
    StickyCopy,
    Struct,
)

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, tuple[_Value, ...]]:
    """By key all values that stand with it, in their order."""
    found = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return {key: tuple(values) for key, values in found.items()}


class Pending(Struct, frozen=True):
    """A placement that is decided and not yet visible as a running VM: a start, or a migration's target."""

    vm: str
    host: str
    memory_mb: int | None = None
    #: Foreseen by us and not confirmed by the engine, which decides for itself: it may rank, never veto.
    expected: bool = False


#: What is read besides the topology, and later than it: tags and statistics of hosts, how busy VMs are, their
#: tags, owners, disks and interfaces, and what the store holds. Searches say by themselves what they lack.
Part = Literal["host_tags", "host_statistics", "vm_statistics", "vm_details", "stored"]
HOST_TAGS: Final[Part] = "host_tags"
HOST_STATISTICS: Final[Part] = "host_statistics"
VM_STATISTICS: Final[Part] = "vm_statistics"
VM_DETAILS: Final[Part] = "vm_details"
STORED: Final[Part] = "stored"
#: Those that are measured, with the tags of hosts, which are read along.
Needed = frozenset[Part]


def _by_id(field: str, kind: type[_Value]) -> cached_property[dict[str, _Value]]:
    """A look-up of the records of this kind in a field."""
    return cached_property(lambda snapshot: {one.id: one for one in getattr(snapshot, field)})


def _of_groups(field: str, labels: str) -> cached_property[dict[str, tuple[str, ...]]]:
    """A look-up of the members of groups in a field, and in the same field of the labels that they have."""

    def found(group: AffinityGroup, known: dict[str, AffinityLabel]) -> tuple[str, ...]:
        labelled = (getattr(known[label], field) for label in getattr(group, labels))
        return tuple(dict.fromkeys(chain(getattr(group, field), *labelled)))

    return cached_property(
        lambda snapshot: {one.id: found(one, snapshot.label_by_id) for one in snapshot.affinity_groups}
    )


class Snapshot(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, dict=True
):
    """The placement state of one engine at one moment, with the look-ups that rules need."""

    format: int = 1
    data_centers: tuple[DataCenter, ...] = ()
    clusters: tuple[Cluster, ...]
    hosts: tuple[Host, ...]
    vms: tuple[Vm, ...]
    networks: tuple[Network, ...] = ()
    vnic_profiles: tuple[VnicProfile, ...] = ()
    affinity_groups: tuple[AffinityGroup, ...]
    affinity_labels: tuple[AffinityLabel, ...]
    pending: tuple[Pending, ...] = ()
    placement_keys: tuple[PlacementKey, ...] = ()
    frozen_keys: tuple[FrozenKeys, ...] = ()
    sticky_copies: tuple[StickyCopy, ...] = ()
    placement_rules: tuple[PlacementRule, ...] = ()
    #: Who the searches find that placement rules name.
    member_searches: tuple[MemberSearch, ...] = ()
    #: Ids of hosts that are emptied for maintenance: no VM is placed there.
    draining_hosts: tuple[str, ...] = ()
    #: Parts that a rule in force needs and that have not been read yet: what hangs on them is not known.
    unread: tuple[Part, ...] = ()

    cluster_by_id = _by_id("clusters", Cluster)
    host_by_id = _by_id("hosts", Host)
    vm_by_id = _by_id("vms", Vm)
    label_by_id = _by_id("affinity_labels", AffinityLabel)
    group_by_id = _by_id("affinity_groups", AffinityGroup)
    rule_by_id = _by_id("placement_rules", PlacementRule)

    @cached_property
    def hosts_of_cluster(self) -> dict[str, tuple[Host, ...]]:
        return grouped((host.cluster, host) for host in self.hosts)

    @cached_property
    def vms_of_host(self) -> dict[str, tuple[Vm, ...]]:
        """VMs by the host they run on; what is on its way there is not among them."""
        return grouped((vm.host, vm) for vm in self.vms if vm.host is not None)

    #: Ids of a group's VMs and hosts, by group id: its own and those of its labels, each once.
    group_vms = _of_groups("vms", "vm_labels")
    group_hosts = _of_groups("hosts", "host_labels")

    @cached_property
    def groups_of_vm(self) -> dict[str, tuple[AffinityGroup, ...]]:
        """Groups by the id of a VM that belongs to them, directly or through a label."""
        return grouped((vm, group) for group in self.affinity_groups for vm in self.group_vms[group.id])

    @cached_property
    def pending_hosts(self) -> dict[str, tuple[str, ...]]:
        """Hosts that a VM is on its way to, by VM id: pending placements and known migration targets."""
        by_vm: dict[str, list[str]] = defaultdict(list)
        for entry in self.pending:
            by_vm[entry.vm].append(entry.host)
        for vm in self.vms:
            if vm.migrating_to is not None:
                by_vm[vm.id].append(vm.migrating_to)
        return {vm: tuple(dict.fromkeys(hosts)) for vm, hosts in by_vm.items()}

    @cached_property
    def key_resources(self) -> dict[str, Any]:
        """What `names` has looked up of what placement keys can be set on, by level."""
        return {}

    @cached_property
    def unconfirmed(self) -> frozenset[str]:
        """VMs that were decided about a moment ago: where the engine has them by now is not known."""
        return frozenset(entry.vm for entry in self.pending if entry.expected)

    @cached_property
    def confirmed(self) -> Snapshot:
        """The same without what is only expected."""
        if not self.unconfirmed:
            return self
        return msgspec.structs.replace(
            self, pending=tuple(entry for entry in self.pending if not entry.expected)
        )


#: Of an engine of which nothing is known.
NO_STATE: Final = Snapshot(clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=())
