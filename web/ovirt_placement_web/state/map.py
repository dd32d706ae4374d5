"""A cluster as it is drawn: hosts as cells, VMs in them, their groups, what is violated and what moves.

Of ten thousand VMs mostly one or two change: these alone are sent, and drawn again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TypeVar

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.violations import ViolatedConstraint, ViolationsDocument
from ovirt_placement.model import AffinityGroup, Cluster, Host, Snapshot
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record


class MapHost(Record, frozen=True, omit_defaults=True):
    """A cell."""

    id: str
    name: str
    status: str
    memory_mb: int
    free_mb: int
    #: Used, 0 to 100; absent where that is not known.
    cpu_percent: float | None = None
    #: The failure domain that it is in, as a rack; empty where none is known.
    domain: str = ""

    @property
    def used_percent(self) -> int:
        """Memory that is handed out."""
        return round(100 - 100 * self.free_mb / self.memory_mb) if self.memory_mb else 0


class MapGroup(Record, frozen=True, omit_defaults=True):
    """An affinity group of VMs."""

    id: str
    name: str
    #: Whether a rule of it is violated.
    violated: bool = False


class MapVm(Record, frozen=True, omit_defaults=True):
    """A VM that runs on a host of the cluster, or is on its way there."""

    id: str
    name: str
    #: The engine's word; absent of one that is up, as most of ten thousand are.
    status: str = "up"
    #: Numbers of hosts, in the order of `hosts`; absent where it runs on none of them.
    host: int | None = None
    #: Where it is on its way to.
    to: int | None = None
    #: Numbers of groups, in the order of `groups`.
    groups: tuple[int, ...] = ()
    #: Whether it stands wrong by a rule: "hard" or "soft".
    wrong: str = ""
    memory_mb: int = 0
    vcpus: int = 0


class MapDocument(Document, frozen=True, kw_only=True, tag="map"):
    """A cluster as it is drawn."""

    cluster: Named
    #: The state that this is drawn of; a higher number is newer.
    number: int
    hosts: tuple[MapHost, ...]
    groups: tuple[MapGroup, ...]
    vms: tuple[MapVm, ...]


def misplaced(found: Iterable[ViolatedConstraint]) -> dict[str, str]:
    """By VM that violates a rule, "hard" or "soft"."""
    ordered = sorted(found, key=lambda one: one.hard)
    return {vm.id: "hard" if one.hard else "soft" for one in ordered for vm in one.offenders}


def cluster_map(
    snapshot: Snapshot,
    cluster: Cluster,
    violations: ViolationsDocument,
    number: int,
    domains: Mapping[str, str],
) -> MapDocument:
    """Hosts by failure domain (`domains`, by host) and name; VMs that are down have no place on a map."""
    of_cluster = snapshot.hosts_of_cluster.get(cluster.id, ())
    racks = {host.id: domains.get(host.id, "") for host in of_cluster}
    hosts = sorted(of_cluster, key=lambda one: (racks[one.id], one.name, one.id))
    groups = [group for group in snapshot.affinity_groups if group.cluster == cluster.id]
    violated = {group.id for found in violations.violations for group in found.groups}
    return MapDocument(
        cluster=Named(cluster.id, cluster.name),
        number=number,
        hosts=tuple(
            MapHost(one.id, one.name, one.status, one.memory_mb, one.free_mb, one.cpu_percent, racks[one.id])
            for one in hosts
        ),
        groups=tuple(MapGroup(group.id, group.name, group.id in violated) for group in groups),
        vms=tuple(_vms(snapshot, hosts, groups, misplaced(violations.violations))),
    )


def _vms(
    snapshot: Snapshot, hosts: Sequence[Host], groups: Sequence[AffinityGroup], wrong: Mapping[str, str]
) -> Iterator[MapVm]:
    place = {host.id: at for at, host in enumerate(hosts)}
    group_at = {group.id: at for at, group in enumerate(groups)}
    pending, groups_of_vm = snapshot.pending_hosts, snapshot.groups_of_vm
    for vm in sorted(snapshot.vms, key=attrgetter("name", "id")):
        runs = place.get(vm.host or "")
        to = next((place[way] for way in pending.get(vm.id, ()) if way in place), None)
        if runs is not None or to is not None:
            own = tuple(group_at[one.id] for one in groups_of_vm.get(vm.id, ()) if one.id in group_at)
            yield MapVm(
                vm.id, vm.name, vm.status, runs, to, own, wrong.get(vm.id, ""), vm.memory_mb, vm.vcpus
            )


# -- What has changed.
_Drawn = TypeVar("_Drawn", MapHost, MapGroup, MapVm)


class ChangedHost(Record, frozen=True):
    """A host that is drawn otherwise, by its place in `hosts`."""

    at: int
    host: MapHost


class ChangedGroup(Record, frozen=True):
    """A group that is violated now and was not, or the reverse, by its place in `groups`."""

    at: int
    group: MapGroup


class PlacedVm(Record, frozen=True):
    """A VM by its place in the `vms` of the newer map."""

    at: int
    vm: MapVm


class MapChangesDocument(Document, frozen=True, kw_only=True, tag="map-changes"):
    """What makes of one map a newer one: VMs go, then others come in their order, and some are replaced."""

    cluster: Named
    #: The map that this changes, and the one that comes of it.
    since: int
    number: int
    #: The newer map, where the older one is not remembered, or hosts or groups came, went or were renamed;
    #: then there is nothing else.
    whole: MapDocument | None = None
    hosts: tuple[ChangedHost, ...] = ()
    groups: tuple[ChangedGroup, ...] = ()
    #: Places in the `vms` of the older map, ascending.
    gone: tuple[int, ...] = ()
    #: Ascending.
    came: tuple[PlacedVm, ...] = ()
    changed: tuple[PlacedVm, ...] = ()


def whole(after: MapDocument, since: int) -> MapChangesDocument:
    """All of a map, for who knows none that can be changed into it."""
    return MapChangesDocument(cluster=after.cluster, since=since, number=after.number, whole=after)


def map_changes(before: MapDocument, after: MapDocument) -> MapChangesDocument:
    """VMs and groups name their hosts and groups by places, so that these must be the same in both."""
    hosts, hosts_now = _keyed(before.hosts), _keyed(after.hosts)
    groups, groups_now = _keyed(before.groups), _keyed(after.groups)
    old, new = _keyed(before.vms), _keyed(after.vms)
    if list(hosts) != list(hosts_now) or list(groups) != list(groups_now):
        return whole(after, before.number)
    # Of VMs that stay none overtakes another, since all are sorted by this.
    return MapChangesDocument(
        cluster=after.cluster,
        since=before.number,
        number=after.number,
        hosts=tuple(ChangedHost(at, host) for at, host in _others(hosts, hosts_now)),
        groups=tuple(ChangedGroup(at, group) for at, group in _others(groups, groups_now)),
        gone=tuple(at for at, one in enumerate(old) if one not in new),
        came=tuple(PlacedVm(at, vm) for at, (one, vm) in enumerate(new.items()) if one not in old),
        changed=tuple(PlacedVm(at, vm) for at, vm in _others(old, new)),
    )


def _others(before: Mapping[str, _Drawn], after: Mapping[str, _Drawn]) -> Iterator[tuple[int, _Drawn]]:
    """What was there and is drawn otherwise, with its place."""
    return ((at, one) for at, (key, one) in enumerate(after.items()) if before.get(key, one) != one)


def _keyed(drawn: Iterable[_Drawn]) -> dict[str, _Drawn]:
    """In their order, by what stays the same of them."""
    return {f"{one.name}\0{one.id}": one for one in drawn}
