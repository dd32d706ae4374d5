"""Whether VMs may start after a failure, in one order or in every one, and which orders may be.

All filters of a cluster are asked. The engine starts VMs of a lower priority when those of a higher one are
up. Of VMs of one priority it asks nothing, nor do we, but what rules of the kind `restart_after` do. Where
such a rule asks for the opposite of the priorities it cannot be: the engine goes by these.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, partial
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from itertools import groupby

from msgspec.structs import replace

from ovirt_placement.lookups import once_whatever_is_pending, share
from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.model.snapshot import grouped
from ovirt_placement.rules.affinity.groups import connected, hard_positive_group_of
from ovirt_placement.rules.elements.assignment import Budget
from ovirt_placement.rules.elements.placement import World
from ovirt_placement.rules.elements.rule import Rule, Scope, accepted_hosts
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.failover.measures import bond_of
from ovirt_placement.rules.placement_rules.in_force import find_paths, restart_orders
from ovirt_placement.rules.rule_list import restart_filters


class Rank(Record, frozen=True):
    """When a VM is due among others: 1 is first. The two differ where nothing says more."""

    earliest: int
    latest: int


class RestartOrder:
    """What must restart before what."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._priorities = {vm.id: vm.ha_priority for vm in snapshot.vms}
        self._after: Mapping[str, tuple[frozenset[str], ...]] = {
            vm: tuple(one.vms for one in some) for vm, some in restart_orders(snapshot).after.items()
        }

    @property
    def by_rules(self) -> bool:
        """Whether any rule is about it, and not priorities alone."""
        return bool(self._after)

    def priority(self, vm: str) -> int:
        return self._priorities[vm]

    def ready(self, left: Collection[str]) -> list[str]:
        """Those of some VMs that may restart before all the others."""
        if not left:
            return []
        highest = max(map(self.priority, left))
        now = [vm for vm in left if self.priority(vm) == highest]
        return [vm for vm in now if not self._before(vm, frozenset(now))] if self._after else now

    def ordered(self, vms: Iterable[str]) -> tuple[str, ...]:
        """The VMs as they may restart; where nothing says more, as they stand."""
        by_priority = sorted(vms, key=self._priorities.__getitem__, reverse=True)
        if not self._after:
            return tuple(by_priority)
        found: list[str] = []
        for _, same in groupby(by_priority, key=self.priority):
            found += self._by_rules([*same])
        return tuple(found)

    def must_follow(self, vm: str, others: Iterable[str]) -> bool:
        """Whether a VM itself may restart only after one of some others."""
        mine = self.priority(vm)
        return any(
            mine < self.priority(one) or (mine == self.priority(one) and self._before(vm, frozenset({one})))
            for one in others
        )

    def rank(self, vm: str, vms: Iterable[str]) -> Rank:
        """When a VM is due among some VMs, of which it is one."""
        priorities = {one: self.priority(one) for one in vms}
        own = frozenset(one for one, priority in priorities.items() if priority == priorities[vm])
        before = sum(priority > priorities[vm] for priority in priorities.values())
        behind = sum(priority < priorities[vm] for priority in priorities.values())
        directly = {one: self._before(one, own) for one in own}
        earlier = find_paths(vm, directly)
        later = sum(one != vm and vm in find_paths(one, directly) for one in own)
        return Rank(before + len(earlier) + 1, len(priorities) - behind - later)

    def _by_rules(self, vms: list[str]) -> list[str]:
        """VMs of one priority, the first that may restart always next."""
        if not any(vm in self._after for vm in vms):
            return vms
        own, place = frozenset(vms), {vm: number for number, vm in enumerate(vms)}
        waiting = TopologicalSorter({vm: self._before(vm, own) for vm in vms})
        waiting.prepare()
        free: list[int] = []
        found = []
        while waiting.is_active():
            for vm in waiting.get_ready():
                heappush(free, place[vm])
            vm = vms[heappop(free)]
            found.append(vm)
            waiting.done(vm)
        return found

    def _before(self, vm: str, vms: AbstractSet[str]) -> frozenset[str]:
        """Those of some VMs of one priority that the VM restarts after by a rule itself."""
        return frozenset(other for others in self._after.get(vm, ()) for other in others & vms)


@once_whatever_is_pending
def restart_order(snapshot: Snapshot) -> RestartOrder:
    """The order of a snapshot."""
    return RestartOrder(snapshot)


#: VMs that have started, each with its host, in order.
Starts = tuple[tuple[str, str], ...]


def part_of(snapshot: Snapshot, vms: Iterable[str], hosts: AbstractSet[str]) -> Snapshot:
    """As much of a state as says whether these VMs may start on these hosts.

    That is what is on the hosts or on its way there, and the VMs' groups with all who belong to them.
    """
    groups = {group.id: group for vm in vms for group in _groups(snapshot, vm)}
    arriving = (vm for vm, targets in snapshot.pending_hosts.items() if not hosts.isdisjoint(targets))
    kept = dict.fromkeys(vms)
    kept.update((vm, None) for group in groups for vm in snapshot.group_vms[group])
    kept.update((vm.id, None) for host in hosts for vm in snapshot.vms_of_host.get(host, ()))
    kept.update((vm, None) for vm in arriving)
    part = replace(
        snapshot,
        hosts=tuple(snapshot.host_by_id[host] for host in hosts),
        vms=tuple(snapshot.vm_by_id[vm] for vm in kept if vm in snapshot.vm_by_id),
        affinity_groups=tuple(groups.values()),
        pending=tuple(entry for entry in snapshot.pending if entry.vm in kept),
    )
    share(part, snapshot)
    return part


def _groups(snapshot: Snapshot, vm: str) -> Iterator[AffinityGroup]:
    """The groups of a VM, and all that hard positive ones among them are chained to."""
    yield from snapshot.groups_of_vm.get(vm, ())
    unified = hard_positive_group_of(snapshot).get(vm)
    if unified is not None:
        yield from (snapshot.group_by_id[group] for group in unified.groups)


#: Starts on hosts of which it is remembered whether they pass.
_MOST_REMEMBERED = 100_000


class RestartCheck:
    """All filters that a start in one cluster must pass, and what they say of starts after a failure."""

    def __init__(self, snapshot: Snapshot, cluster_id: str) -> None:
        self._snapshot = snapshot
        cluster = snapshot.cluster_by_id[cluster_id]
        self._parameters = cluster.scheduling_properties
        self._filters = tuple(rule for rule in restart_filters(cluster) if rule.filter is not None)
        self._fixed = tuple(rule for rule in self._filters if rule.depends_on.fixed_in(snapshot, cluster_id))
        self._swayed = tuple(rule for rule in self._filters if rule not in self._fixed)
        scopes = [one.depends_on.scope_in(snapshot, cluster_id) for one in self._swayed]
        #: Whether memory and hard VM groups are all that connects starts on one host.
        self.plain = all(scope is Scope.HOST_AT_ONCE for scope in scopes)
        #: Whether what they say of a host has nothing to do with starts elsewhere, but for affinity.
        self.nearby = all(scope is not Scope.CLUSTER for scope in scopes)
        self._up = tuple(host.id for host in snapshot.hosts_of_cluster.get(cluster_id, ()) if host.up)
        self._open: dict[Hashable, frozenset[str]] = {}
        self._passed: dict[Hashable, bool] = {}

    def passes(self, failed: frozenset[str], homes: Mapping[str, str], *, settled: bool) -> bool:
        """Whether each start passes every filter, in this order.

        `settled` says that nothing was on its way from or to a failed host.
        """
        apart = settled and self.plain
        bonds, known = bond_of(self._snapshot), self._snapshot.vm_by_id
        # A VM that is paused now is asked for no memory; once it is down it needs all of it.
        crowded = {
            home for vm, home in homes.items() if not apart or vm in bonds or known[vm].status == "paused"
        }
        alone = grouped((home, vm) for vm, home in homes.items() if home not in crowded)
        found = self._remembered
        if not all(found(one, partial(self._takes, self._snapshot, *one)) for one in alone.items()):
            return False
        in_turn = {vm: home for vm, home in homes.items() if home in crowded}
        for starts in self._independent(in_turn):
            # What fails elsewhere changes nothing at a home, but for what it gathers.
            again = settled and self.nearby and bonds.keys().isdisjoint(starts)
            passes = partial(self._pass_in_turn, failed, starts)
            if not (found(tuple(starts.items()), passes) if again else passes()):
                return False
        return True

    def _remembered(self, starts: Hashable, passes: Callable[[], bool]) -> bool:
        """Whether starts pass: the same may have been asked about after another failure."""
        if starts not in self._passed:
            if len(self._passed) >= _MOST_REMEMBERED:
                self._passed.clear()
            self._passed[starts] = passes()
        return self._passed[starts]

    def _takes(self, state: Snapshot, home: str, vms: Sequence[str]) -> bool:
        """Whether VMs may start on a host at once."""
        fixed = all(home in self.open_to(vm) for vm in vms)
        return fixed and bool(self.accepted(state, vms, (home,), self._swayed))

    def _pass_in_turn(self, failed: frozenset[str], homes: Mapping[str, str]) -> bool:
        state, started = self._vicinity(failed, homes), Starts()
        for vm, home in homes.items():
            state = World(state).starting(*started[-1]).snapshot if started else state
            if not self._takes(state, home, (vm,)):
                return False
            started = ((vm, home),)
        return True

    def _independent(self, homes: Mapping[str, str]) -> Iterator[dict[str, str]]:
        """The starts in parts that have no home and no tie in common, each in the order of the whole.

        What starts elsewhere changes nothing at a home, but where a VM's positive peers are.
        """
        if not self.nearby:
            yield dict(homes)
            return
        bonds = bond_of(self._snapshot)
        homes_of: dict[str, list[str]] = {}
        for vm, home in homes.items():
            homes_of.setdefault(bonds.get(vm, vm), []).append(home)
        part_of_home = {home: part for part in connected(homes_of.values()) for home in part}
        parts: dict[str, dict[str, str]] = {}
        for vm, home in homes.items():
            parts.setdefault(part_of_home[home][0], {})[vm] = home
        yield from parts.values()

    def failure_state(self, failed: frozenset[str]) -> Snapshot:
        """The state after a failure."""
        return World(self._whole).failed(failed).snapshot

    def _vicinity(self, failed: frozenset[str], homes: Mapping[str, str]) -> Snapshot:
        """As much of it as the filters look at for these homes: that is much quicker."""
        if not self.nearby:
            return self.failure_state(failed)
        part = part_of(self._whole, homes, frozenset(homes.values()))
        return World(part).failed(failed).snapshot

    @cached_property
    def _whole(self) -> Snapshot:
        """The snapshot, with what filters look up in it: they find most of it again after a failure."""
        vms = [vm.id for vm in self._snapshot.vms[:1]]
        hosts = [host.id for host in self._snapshot.hosts[:1]]
        for rule in self._filters:
            self.accepted(self._snapshot, vms, hosts, (rule,))
        return self._snapshot

    def accepted(
        self, state: Snapshot, vms: Sequence[str], hosts: Sequence[str], rules: Sequence[Rule] | None = None
    ) -> tuple[str, ...]:
        """Hosts that all filters accept."""
        request = Request(tuple(vms), tuple(hosts), parameters=self._parameters, explained=False)
        return accepted_hosts(state, self._filters if rules is None else rules, request)

    def open_to(self, vm: str) -> frozenset[str]:
        """Hosts of the cluster that those filters leave to a VM which say the same wherever others are."""
        if vm not in self._open:
            depends = (rule.depends_on for rule in self._fixed)
            alike = tuple(one.alike(self._snapshot, vm) if one.alike else vm for one in depends)
            if alike not in self._open:
                self._open[alike] = frozenset(self.accepted(self._snapshot, (vm,), self._up, self._fixed))
            self._open[vm] = self._open[alike]
        return self._open[vm]

    def ever_open_to(
        self, state: Snapshot, vm: str, hosts: Sequence[str], others: frozenset[str]
    ) -> frozenset[str]:
        """Hosts that a VM may start on after a failure, before others do or after."""
        rules = [rule for rule in self._filters if self._only_narrows(state, rule, vm, others)]
        return frozenset(self.accepted(state, (vm,), hosts, rules))

    def _only_narrows(self, state: Snapshot, rule: Rule, vm: str, others: frozenset[str]) -> bool:
        """Whether no start of the others can open a host to the VM that the filter closes to it now."""
        return rule in self._fixed or rule.depends_on.only_narrows(state, vm, others)

    def start_all(
        self,
        failed: frozenset[str],
        vms: Sequence[str],
        hosts: Sequence[str],
        budget: Budget,
        ready: Callable[[Sequence[str]], Sequence[str]],
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """Start the VMs in some order, each on a host that is accepted then; every possibility counts.

        Only those may be next that are `ready` before all others that are left. If not all can start, as many
        as could go first, and then those are left out that cannot start in their turn. Raises
        `BudgetSpentError`; each start takes as many steps as the state has VMs and hosts.
        """
        state, others = self.failure_state(failed), frozenset(vms)
        waiting: list[tuple[Starts, Snapshot]] = [((), state)]
        seen: set[frozenset[tuple[str, str]]] = set()
        best: Starts = ()
        while waiting and len(best) < len(vms):
            starts, before = waiting.pop()
            if frozenset(starts) in seen:
                continue
            seen.add(frozenset(starts))
            budget.spend(len(state.vms) + len(state.hosts))
            now = World(before).starting(*starts[-1]).snapshot if starts else before
            best = max(best, starts, key=len)
            left = [vm for vm in vms if vm not in dict(starts)]
            open_to = {vm: self.accepted(now, (vm,), hosts) for vm in left}
            closed = [vm for vm in left if not open_to[vm]]
            if not any(
                all(self._only_narrows(now, rule, vm, others) for rule in self._filters) for vm in closed
            ):
                waiting += [
                    ((*starts, (vm, host)), now)
                    for vm in reversed(ready(left))
                    for host in reversed(open_to[vm])
                ]
        homes = dict(best)
        for vm, home in homes.items():
            state = World(state).starting(vm, home).snapshot
        left, unplaced = [vm for vm in vms if vm not in homes], []
        while left:
            vm = ready(left)[0]
            left.remove(vm)
            if accepted := self.accepted(state, (vm,), hosts):
                homes[vm] = accepted[0]
                state = World(state).starting(vm, homes[vm]).snapshot
            else:
                unplaced.append(vm)
        return homes, tuple(vm for vm in vms if vm in unplaced)
