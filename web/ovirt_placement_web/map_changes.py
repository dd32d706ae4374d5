"""What has changed on the map of a cluster: mostly a VM or two of ten thousand, which alone is read."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from operator import is_not

from ovirt_placement.answers.document import Document
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement_web.cluster_map import Drawn, MapDocument, MapGroup, MapHost, MapVm

#: A page that missed more states than this reads the whole map: in a window that was hidden, say.
_REMEMBERED = 4
#: A state takes tens of MiB: no more are kept alive, however many clusters somebody has looked at once.
_STATES = 2


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


class LatestMaps:
    """The latest maps of each cluster, which pages still show."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._maps: dict[str, deque[MapDocument]] = {}
        self._drawn: dict[str, Drawn] = {}

    def add(self, drawn: Drawn) -> None:
        cluster = drawn.document.cluster.id
        with self._lock:
            self._drawn[cluster] = drawn
            known = sorted({one.document.number for one in self._drawn.values()})[-_STATES:]
            self._drawn = {name: one for name, one in self._drawn.items() if one.document.number in known}
            self._maps.setdefault(cluster, deque(maxlen=_REMEMBERED)).append(drawn.document)

    def latest(self, cluster: str) -> Drawn | None:
        with self._lock:
            return self._drawn.get(cluster)

    def find(self, cluster: str, number: int) -> MapDocument | None:
        with self._lock:
            known = tuple(self._maps.get(cluster, ()))
        return next((drawn for drawn in known if drawn.number == number), None)


def whole(after: MapDocument, since: int) -> MapChangesDocument:
    """All of a map, for who knows none that can be changed into it."""
    return MapChangesDocument(cluster=after.cluster, since=since, number=after.number, whole=after)


def map_changes(before: MapDocument, after: MapDocument) -> MapChangesDocument:
    """VMs and groups name their hosts and groups by places, so that these must be the same in both."""
    if _order(before.hosts) != _order(after.hosts) or _order(before.groups) != _order(after.groups):
        return whole(after, before.number)
    gone, came, changed = _vms(before.vms, after.vms)
    return MapChangesDocument(
        cluster=after.cluster,
        since=before.number,
        number=after.number,
        hosts=tuple(
            ChangedHost(at, host)
            for at, (was, host) in enumerate(zip(before.hosts, after.hosts, strict=True))
            if was != host
        ),
        groups=tuple(
            ChangedGroup(at, group)
            for at, (was, group) in enumerate(zip(before.groups, after.groups, strict=True))
            if was != group
        ),
        gone=gone,
        came=tuple(PlacedVm(at, after.vms[at]) for at in came),
        changed=tuple(PlacedVm(at, after.vms[at]) for at in changed),
    )


def _vms(before: Sequence[MapVm], after: Sequence[MapVm]) -> tuple[tuple[int, ...], list[int], list[int]]:
    """The places before of those that went, and after of those that came and that are drawn otherwise."""
    if len(before) == len(after):  # mostly all but a few are the same objects
        others = [at for at, other in enumerate(map(is_not, before, after)) if other]
        if _order([before[at] for at in others]) == _order([after[at] for at in others]):
            return (), [], [at for at in others if before[at] != after[at]]
    old = dict(zip(_order(before), before, strict=True))
    new = _order(after)
    staying = old.keys() & new
    gone = tuple(at for at, one in enumerate(old) if one not in staying)
    came = [at for at, one in enumerate(new) if one not in staying]
    return gone, came, [at for at, one in enumerate(new) if one in staying and old[one] != after[at]]


def _order(drawn: Sequence[MapHost | MapGroup | MapVm]) -> list[tuple[str, str]]:
    """VMs are sorted by this: of those that stay, none overtakes another."""
    return [(one.name, one.id) for one in drawn]
