"""The engine's own weights that look at hosts alone, and how they change with what is expected there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ovirt_placement.inventory.expected.points import Points
from ovirt_placement.inventory.expected.promised import Promised
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.cpus import VCPU_PERCENT, cpus_of, total_load, vm_load
from ovirt_placement.rules.load import even_cpu
from ovirt_placement.rules.load.even_memory import host_score
from ovirt_placement.rules.memory import required_mb
from ovirt_placement.rules.rank_selector import points_of

_MEMORY, _CPU = "even_memory_weight", "even_cpu_weight"
#: More than any host with statistics.
_WORST = 1 << 20
#: Of more hosts than this it would take too long to weigh each again for each decision.
_MANY_HOSTS = 64
#: How many lists of hosts are followed, and how many weights of each: for starts with other numbers of CPUs.
_MOST_TABLES = 8
_MOST_WEIGHTS = 8
#: After this many changes of what is promised all is made again.
_MOST_CHANGES = 10_000

#: Percent of one CPU, and a number of CPUs.
_Load = tuple[int, int]
#: Hosts have few sizes, and their load is a whole number.
_cpu_score = lru_cache(maxsize=1 << 16)(even_cpu.host_score)


class EnginesWeights:
    """The points that hosts get by the engine's even distribution of memory and of CPU use.

    Source: EvenDistributionMemoryWeightPolicyUnit, EvenDistributionCPUWeightPolicyUnit.
    """

    def __init__(self, promised: Promised) -> None:
        self._promised = promised
        self._tables: dict[tuple[str, ...], _Table] = {}

    def points(self, snapshot: Snapshot, vm: Vm, hosts: tuple[str, ...]) -> dict[str, Sequence[int]]:
        """The points of each host for a VM that is to run on one of them, by weights of the policy."""
        if len(self._promised.changes) > _MOST_CHANGES:
            self._tables.clear()
            self._promised.changes.clear()
        table = self._tables.get(hosts)
        if table is None:
            if len(self._tables) >= _MOST_TABLES:
                del self._tables[next(iter(self._tables))]
            table = self._tables[hosts] = _Table(hosts, snapshot, self._promised)
        table.now(snapshot)
        policy = snapshot.cluster_by_id[vm.cluster].policy
        found: dict[str, Sequence[int]] = {}
        if factor := policy.get(_MEMORY):
            found[_MEMORY] = table.by_memory(vm, factor)
        if factor := policy.get(_CPU):
            found[_CPU] = table.by_cpu(vm, factor)
        return found

    def knows(self, snapshot: Snapshot, hosts: tuple[str, ...]) -> bool:
        """Whether these hosts of the snapshot were asked about: all of them are there."""
        table = self._tables.get(hosts)
        return table is not None and table.snapshot is snapshot


class _Weight:
    """One weight of each host, and its points; the function gives a host's present weight."""

    def __init__(self, hosts: Sequence[Host], factor: int, weight: Callable[[Host], int], at: int) -> None:
        self._weight = weight
        self._points = Points(map(weight, hosts), factor)
        #: This many changes of hosts were followed.
        self._followed = at

    def follow(self, changes: Sequence[int], hosts: Sequence[Host]) -> Sequence[int]:
        """Take in what has changed since, and return the points."""
        if self._followed < len(changes):
            for place in {*changes[self._followed :]}:
                self._points.change(place, self._weight(hosts[place]))
            self._followed = len(changes)
        return self._points.of_each


class _Loads:
    """Percent of one CPU in use on each host, with the number of its CPUs; None without statistics."""

    def __init__(self, hosts: Sequence[Host], load: Callable[[Host], _Load | None], at: int) -> None:
        self._load = load
        self._of_each = list(map(load, hosts))
        self._followed = at

    def follow(self, changes: Sequence[int], hosts: Sequence[Host]) -> Sequence[_Load | None]:
        """Take in what has changed since, and return what there is."""
        for place in {*changes[self._followed :]}:
            self._of_each[place] = self._load(hosts[place])
        self._followed = len(changes)
        return self._of_each


class _Table:
    """Some hosts, and the points that they get, which follow the hosts' state and what is promised."""

    def __init__(self, hosts: tuple[str, ...], snapshot: Snapshot, promised: Promised) -> None:
        self._ids = hosts
        self._promised = promised
        self._followed = len(promised.changes)
        self.snapshot = snapshot
        self._hosts = [snapshot.host_by_id[host] for host in hosts]
        self._places = {host: place for place, host in enumerate(hosts)}
        #: By factor, and by what the VM adds to the use of a CPU.
        self._kept: dict[tuple[int, int | None], _Weight] = {}
        self._loads: _Loads | None = None
        #: Where something has changed, the latest last.
        self._changes: list[int] = []

    def now(self, snapshot: Snapshot) -> None:
        """Take note of what has changed since."""
        promised = self._promised.changes[self._followed :]
        self._changes += [self._places[host] for host in promised if host in self._places]
        self._followed += len(promised)
        if snapshot is not self.snapshot:
            self.snapshot = snapshot
            before, self._hosts = self._hosts, [snapshot.host_by_id[host] for host in self._ids]
            pairs = enumerate(zip(before, self._hosts, strict=True))
            self._changes += [place for place, (one, other) in pairs if one is not other]
        if len(self._changes) > _MOST_CHANGES:
            self._kept.clear()
            self._loads = None
            self._changes.clear()

    def by_memory(self, vm: Vm, factor: int) -> Sequence[int]:
        """The points for free memory, promises taken off.

        The engine lets hosts tie that differ by a thousandth; of many hosts that is not followed.
        """
        promised = self._promised.memory_mb
        if len(self._hosts) > _MANY_HOSTS:
            return self._points(factor, None, lambda host: promised.get(host.id, 0) - host.free_mb)
        free = [host.free_mb - promised.get(host.id, 0) for host in self._hosts]
        most, needed = max(free), required_mb(vm)
        added = [0 if host.id == vm.host else needed for host in self._hosts]
        return list(
            points_of([host_score(one, most, own) for one, own in zip(free, added, strict=True)], factor)
        )

    def by_cpu(self, vm: Vm, factor: int) -> Sequence[int]:
        """The points for CPUs that are little used, promises and the VM itself added."""
        if vm.host is None or self._is_lost(vm.host):
            added = vm.vcpus * VCPU_PERCENT
            return self._points(factor, added, lambda host: self._cpu(host, added))
        if self._loads is None:
            self._loads = _Loads(self._hosts, self._load, len(self._changes))
        added, own = vm_load(vm), self._places.get(vm.host)
        weights = [
            _WORST if load is None else _cpu_score(load[0] + added, load[1])
            for load in self._loads.follow(self._changes, self._hosts)
        ]
        if own is not None:
            weights[own] = self._cpu(self._hosts[own], 0)
        return list(points_of(weights, factor))

    def _is_lost(self, host: str) -> bool:
        """Whether a VM starts again that was last seen there."""
        known = self.snapshot.host_by_id.get(host)
        return known is None or known.status != "up"

    def _cpu(self, host: Host, added: int) -> int:
        load = self._load(host)
        return _WORST if load is None else _cpu_score(load[0] + added, load[1])

    def _load(self, host: Host) -> _Load | None:
        if host.cpu_percent is None:
            return None
        threads = self.snapshot.cluster_by_id[host.cluster].count_threads_as_cores
        promised = self._promised.cpu_percent.get(host.id, 0)
        return total_load(host, threads=threads) + promised, cpus_of(host, threads=threads)

    def _points(self, factor: int, added: int | None, weight: Callable[[Host], int]) -> Sequence[int]:
        found = self._kept.get((factor, added))
        if found is None:
            if len(self._kept) >= _MOST_WEIGHTS:
                del self._kept[next(iter(self._kept))]
            found = self._kept[factor, added] = _Weight(self._hosts, factor, weight, len(self._changes))
        return found.follow(self._changes, self._hosts)
