"""All hosts of a snapshot side by side, as the steps see them: what each has room for, and its keys.

Steps 3 and 6: which keys hosts are judged by, name by name, and the sticky ones that a VM takes along. For
each value of a name the hosts stand that have it, so that it is reckoned with once for all of them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from ovirt_placement.lookups import Earlier, continued, exchanged_ids, once_for
from ovirt_placement.model import Host, PlacementKey, Snapshot, StickyCopy, Vm
from ovirt_placement.model.record import NODE, Record
from ovirt_placement.model.snapshot import grouped
from ovirt_placement.rules.placement_keys.capacity import (
    Capacity,
    Contention,
    Presence,
    bringing_present_keys,
    capacity_of,
    contention_of_hosts,
    host_places,
    presences,
    recorded_sets,
    without_vm,
)
from ovirt_placement.rules.placement_keys.hierarchy import keys_by_resource
from ovirt_placement.rules.placement_keys.keys import (
    ZERO,
    KeyKind,
    KeySettings,
    Ratio,
    Written,
    ignored_because,
    is_reserved,
    is_special,
    key_kind,
    number,
    ratio,
)

#: A value, and how many VMs (or the host itself, once) bring it.
Instances: TypeAlias = tuple[Ratio, int]

#: The same with its name.
HostValue: TypeAlias = tuple[str, Fraction, int]

#: What hosts have under one name: each value, in no order, with the places of the hosts that have it, one for
#: each instance. A host is its place among all hosts.
Column: TypeAlias = Mapping[Ratio, Sequence[int]]


def column(found: Iterable[tuple[Written, Iterable[int]]]) -> Column:
    """Make a column of values as they were written; the same value may be written in several ways."""
    by_value: defaultdict[Ratio, list[int]] = defaultdict(list)
    for written, places in found:
        by_value[ratio(written)] += places
    return {value: places for value, places in by_value.items() if places}


def _by_place(one: Column) -> Mapping[int, tuple[Instances, ...]]:
    found: defaultdict[int, list[Instances]] = defaultdict(list)
    for value in sorted(one, key=lambda value: Fraction(*value)):
        for place, count in Counter(one[value]).items():
            found[place].append((value, count))
    return {place: tuple(instances) for place, instances in found.items()}


class Columns(dict[str, Column]):
    """Columns by name, each made when it is first asked for; empty where no host has the name."""

    def __init__(self, make: Callable[[str], Column], names: Iterable[str]) -> None:
        super().__init__()
        self._make = make
        self._by_place: dict[str, Mapping[int, tuple[Instances, ...]]] = {}
        #: All that some host may have.
        self.names = names

    def __missing__(self, name: str) -> Column:
        column = self[name] = self._make(name)
        return column

    def at(self, place: int) -> list[HostValue]:
        """All that one host has."""
        found = ((name, self.instances(name, place)) for name in self.names)
        return [(name, Fraction(*value), count) for name, values in found for value, count in values]

    def instances(self, name: str, place: int) -> tuple[Instances, ...]:
        """What one host has under a name, from the lowest."""
        if name not in self._by_place:
            self._by_place[name] = _by_place(self[name])
        return self._by_place[name].get(place, ())


class NodeKeys(Record, frozen=True):
    """The two lists of one host, by name and value, and what it passes on to the VMs that start there."""

    system: Sequence[HostValue]
    customer: Sequence[HostValue]
    sticky: tuple[PlacementKey, ...]
    ratios: Contention


def _lists(snapshot: Snapshot, brought: Columns, settings: KeySettings) -> tuple[Columns, Columns]:
    """The operator's and the customer's list, from what hosts have themselves and what VMs bring.

    Special names are the operator's alone, and computed. The setting `reserved_from_vms` lets VMs bring
    reserved names, too, as the letter of the original says; by default only hosts do.
    """
    own = _own_columns(snapshot)

    def system(name: str) -> Column:
        return {} if is_special(name) or is_reserved(name) else own[name]

    def customer(name: str) -> Column:
        if is_special(name):
            return {}
        if not is_reserved(name):
            return brought[name]
        if not settings.reserved_from_vms:
            return own[name]
        every = (*own[name].items(), *brought[name].items())
        return column((Fraction(*value), places) for value, places in every)

    return Columns(system, own.names), Columns(customer, {*own.names, *brought.names})


def sticky_keys(own: Iterable[PlacementKey]) -> tuple[PlacementKey, ...]:
    """Of the keys of a host, those that a VM takes along when it starts there; none with mistakes."""
    return tuple(key for key in own if key_kind(key) is KeyKind.STICKY and not ignored_because(key))


def copies_after_start(
    vm: str, copies: Iterable[StickyCopy], sticky: Iterable[PlacementKey]
) -> tuple[StickyCopy, ...]:
    """The copies of a VM once it has started on a host with these sticky keys.

    A copy of the same name is replaced, others stay. A migration copies nothing.
    """
    fresh = {
        key.name: StickyCopy(
            vm=vm,
            name=key.name,
            value=float(number(key.value) or ZERO),
            weight=float(number(key.weight) or ZERO),
        )
        for key in sticky
    }
    kept = {copy.name: copy for copy in copies if copy.vm == vm}
    return tuple((kept | fresh).values())


#: Parts of a snapshot that the present keys of a VM depend on, besides the VM itself.
_PRESENT_SETS_DEPEND_ON = ("placement_keys", "clusters", "vnic_profiles")


class Occupancy(Record, frozen=True):
    """By the place of each host, memory and CPUs that VMs have or are promised there; by name, their keys.

    Of these each value with the places of the hosts that have it, one for each instance.
    """

    memory_mb: Sequence[int]
    vcpus: Sequence[int]
    keys: Mapping[str, Mapping[Written, Sequence[int]]]


@continued
def occupancy(snapshot: Snapshot, earlier: Earlier | None) -> Occupancy:
    """Add up the presences of all VMs; where a snapshot is known that came before, of those that differ."""
    differing = None if earlier is None else _differing(earlier, snapshot)
    if earlier is None or differing is None:
        nothing = [0] * len(snapshot.hosts)
        return _exchanged(Occupancy(nothing, nothing, {}), (), presences(snapshot, snapshot.vms))
    gone, come = (
        [*presences(one, filter(None, map(one.vm_by_id.get, differing)))]
        for one in (earlier.snapshot, snapshot)
    )
    return _exchanged(occupancy(earlier.snapshot), gone, come)


def _differing(earlier: Earlier, snapshot: Snapshot) -> set[str] | None:
    """The VMs that may count otherwise than before; None if it is quicker to look at all of them.

    What stayed as it was is the same object. A VM for which no record holds brings what its keys are now,
    which the keys of all that it depends on may change.
    """
    before = earlier.snapshot
    if host_places(before) != host_places(snapshot):
        return None
    found = earlier.differing(snapshot) | exchanged_ids(recorded_sets(before), recorded_sets(snapshot))
    if any(getattr(before, part) is not getattr(snapshot, part) for part in _PRESENT_SETS_DEPEND_ON):
        found |= bringing_present_keys(snapshot)
    return found if 2 * len(found) < len(snapshot.vms) else None


def _exchanged(before: Occupancy, gone: Iterable[Presence], come: Iterable[Presence]) -> Occupancy:
    """Take some presences away and add others; names that none of them brings keep their objects."""
    memory, vcpus = list(before.memory_mb), list(before.vcpus)
    changed: dict[str, dict[Written, list[int]]] = {}
    for sign, several in ((-1, gone), (1, come)):
        for presence in several:
            for held in presence.held:
                memory[held.place] += sign * held.memory_mb
                vcpus[held.place] += sign * presence.vcpus
            for name, value in presence.keys:
                if name not in changed:
                    known = before.keys.get(name, {})
                    changed[name] = {written: list(places) for written, places in known.items()}
                places = changed[name].setdefault(value, [])
                for place in presence.places:
                    if sign > 0:
                        places.append(place)
                    else:
                        places.remove(place)
    brought = {name: {value: at for value, at in values.items() if at} for name, values in changed.items()}
    names = {**before.keys, **brought}
    return Occupancy(memory, vcpus, {name: values for name, values in names.items() if values})


class HostTable(Record, frozen=True):
    """Hosts without the VM to be placed. A host is its place in each of these lists."""

    ids: Sequence[str]
    #: The same object as long as nothing of the host has changed: what was found of it stands.
    capacities: Sequence[Capacity]
    #: The two lists, name by name.
    system: Columns
    customer: Columns


@continued
def host_table(snapshot: Snapshot, earlier: Earlier | None, settings: KeySettings) -> HostTable:
    """All hosts of a snapshot with all VMs, each host at its place."""
    lists = _lists(snapshot, _brought_columns(snapshot), settings)
    before = None if earlier is None else earlier.snapshot
    # Hosts that are the same, and have the same handed out, have the same capacities then.
    if (
        before is not None
        and before.clusters == snapshot.clusters
        and before.placement_keys is snapshot.placement_keys
        and host_places(before) == host_places(snapshot)
    ):
        capacities = list(host_table(before, settings).capacities)
        pairs = zip(_rows(before), _rows(snapshot), strict=True)
        for place in [place for place, (old, new) in enumerate(pairs) if old != new]:
            capacities[place] = _capacity(snapshot, place, settings)
    else:
        capacities = [_capacity(snapshot, place, settings) for place in range(len(snapshot.hosts))]
    return HostTable(tuple(host_places(snapshot)), capacities, *lists)


def _capacity(snapshot: Snapshot, place: int, settings: KeySettings) -> Capacity:
    host, occupied = snapshot.hosts[place], occupancy(snapshot)
    ratios = contention_of_hosts(snapshot, settings)[place]
    cluster = snapshot.cluster_by_id[host.cluster]
    return capacity_of(host, cluster, ratios, settings, occupied.memory_mb[place], occupied.vcpus[place])


def _rows(snapshot: Snapshot) -> Iterator[tuple[Host, int, int]]:
    """Each host with what is handed out of it."""
    held = occupancy(snapshot)
    return zip(snapshot.hosts, held.memory_mb, held.vcpus, strict=True)


def host_table_without(snapshot: Snapshot, settings: KeySettings, vm: Vm) -> HostTable:
    """The same without one VM: what it holds counts as free, and its keys do not count."""
    table = host_table(snapshot, settings)
    capacities, columns = list(table.capacities), _brought_columns(snapshot)
    for presence in presences(snapshot, [vm]):
        for held in presence.held:
            capacities[held.place] = without_vm(capacities[held.place], held, vm)
        columns = _without_own(columns, presence)
    return HostTable(table.ids, capacities, *_lists(snapshot, columns, settings))


def host_keys(snapshot: Snapshot, host: Host, settings: KeySettings) -> NodeKeys:
    """The keys of one host, with those of all VMs on it."""
    table, place = host_table(snapshot, settings), host_places(snapshot)[host.id]
    shares = table.capacities[place].shares.ratios.items()
    return NodeKeys(
        sorted([*table.system.at(place), *((name, Fraction(*share), 1) for name, share in shares)]),
        sorted(table.customer.at(place)),
        sticky_keys(keys_by_resource(snapshot).get((NODE, host.id), ())),
        contention_of_hosts(snapshot, settings)[place],
    )


@continued
def _own_columns(snapshot: Snapshot, earlier: Earlier | None) -> Columns:
    keys, places = _own_keys(snapshot), host_places(snapshot)
    before = None if earlier is None else earlier.snapshot
    if before is not None and keys is _own_keys(before) and places == host_places(before):
        return _own_columns(before)

    def make(name: str) -> Column:
        """One that has no place counts nowhere."""
        values = keys.get(name, {}).items()
        return column((value, [places[one] for one in ids if one in places]) for value, ids in values)

    return Columns(make, keys)


@continued
def _brought_columns(snapshot: Snapshot, earlier: Earlier | None) -> Columns:
    keys = occupancy(snapshot).keys
    columns = Columns(lambda name: column(keys.get(name, {}).items()), keys)
    if earlier is not None:
        before = occupancy(earlier.snapshot).keys
        made = tuple(_brought_columns(earlier.snapshot).items())
        columns.update((name, one) for name, one in made if keys.get(name) is before.get(name))
    return columns


def _without_own(every: Columns, presence: Presence) -> Columns:
    """What others bring than one VM."""
    own = grouped(presence.keys)

    def less(name: str) -> Column:
        if name not in own:
            return every[name]
        left = dict(every[name])
        for value in map(ratio, own[name]):
            places = list(left[value])
            for place in presence.places:
                places.remove(place)
            left[value] = places
        return left

    return Columns(less, every.names)


@once_for("placement_keys")
def _own_keys(snapshot: Snapshot) -> Mapping[str, Mapping[Written, Sequence[str]]]:
    """By name and value as it was written, the hosts that have such a key, which is not mistaken."""
    own = (key for key in snapshot.placement_keys if key.level == NODE and not ignored_because(key))
    found: defaultdict[str, defaultdict[Written, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (host, name), value in {(key.resource, key.name): key.value for key in own}.items():
        found[name][value].append(host)
    return found
