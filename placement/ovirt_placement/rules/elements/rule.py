"""What every rule declares: its unit, how it is asked, and what it asks of where VMs run.

That is an invariant which can be checked (BtrPlace calls it a constraint): a rule's file says of any
placement whether it is satisfied. Violations, the legality of planned migrations and the tests all ask this
one checker. By `Constraint.form` it says which of the few forms it is that every part of the planner can
compute with: the planner knows forms and no rules. What fits none of them is planned by asking the
constraint alone.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from msgspec.structs import replace

from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.model.snapshot import Part
from ovirt_placement.rules.elements.placement import Placement
from ovirt_placement.rules.elements.verdict import (
    BalanceMove,
    BalanceRequest,
    Reason,
    Request,
    Verdict,
    Weight,
)


class Same(Record, frozen=True):
    """All VMs on one host."""


class AtMost(Record, frozen=True):
    """On each place VMs of at most this many sets.

    Without sets each VM is one of its own; with two sets and a limit of 1 no VM of one set shares a place
    with a VM of the other.
    """

    most: int
    #: The set of each VM; one that is not named is a set by itself.
    set_of: Mapping[str, str] = {}
    #: The failure domain of each host; one that is not named is a place by itself.
    place_of: Mapping[str, str] = {}

    def own_set(self, vm: str) -> str:
        return self.set_of.get(vm, vm)

    def place(self, host: str) -> str:
        return self.place_of.get(host, host)

    def sets(self, vms: Iterable[str]) -> set[str]:
        """The sets of some VMs."""
        return {self.set_of.get(vm, vm) for vm in vms}

    def places_needed(self, vms: Iterable[str]) -> int:
        """The fewest places on which all of these are."""
        return -(-len(self.sets(vms)) // self.most)

    def excess(self, sizes: Iterable[int]) -> int:
        """How many VMs must leave a place with sets of these sizes: those of the smallest sets."""
        ordered = sorted(sizes, reverse=True)
        return sum(ordered[self.most :])


class Allowed(Record, frozen=True):
    """Each VM on some hosts only, or on all but some."""

    hosts: frozenset[str]
    #: Whether `hosts` are those that it may be on, or those that it may not.
    positive: bool = True

    def allows(self, host: str) -> bool:
        return (host in self.hosts) is self.positive


class OnePlace(Record, frozen=True):
    """All VMs in one place, on any of its hosts; a host that is in none is wrong."""

    place_of: Mapping[str, str]

    def excess(self, there: Counter[str | None]) -> int:
        """How many VMs must move at least, by how many are in each place; those under None are in none."""
        return there.total() - max((there[place] for place in there if place is not None), default=0)

    def admits_whole(self, host: str, others: Iterable[str]) -> bool:
        """Whether VMs may come to a host at once that are all but those on other hosts."""
        places = {self.place_of[one] for one in others if one in self.place_of}
        place = self.place_of.get(host)
        return place is not None and (not places or place in places)


class Even(Record, frozen=True):
    """Eligible places differ by `max_skew` VMs at most; a host that is in no place is wrong."""

    max_skew: int
    place_of: Mapping[str, str]
    eligible: frozenset[str]
    #: Whether the emptiest counts as empty.
    from_nothing: bool = False

    def excess(self, there: Counter[str | None]) -> int:
        """The same: the fewest that must leave or come, for the best level of the emptiest place."""
        own = [there[place] for place in self.eligible] or [0]
        levels = (0,) if self.from_nothing else range(min(own), max(own) + 1)
        return min(
            max(
                there[None] + sum(max(0, members - level - self.max_skew) for members in own),
                sum(max(0, level - members) for members in own),
            )
            for level in levels
        )


class AtLeast(Record, frozen=True):
    """VMs in `least` places, or each in its own while fewer run."""

    least: int
    place_of: Mapping[str, str]

    def excess(self, there: Counter[str | None]) -> int:
        """The same."""
        places = sum(place is not None and members > 0 for place, members in there.items())
        return max(0, min(self.least, there.total()) - places)


class Sum(Record, frozen=True):
    """What counts of VMs on these hosts is at most so much in sum."""

    hosts: frozenset[str]
    most: int
    amounts: Mapping[str, int]


#: Forms that models compute with; how VMs come there step by step, only the constraint itself can judge.
OfAll = OnePlace | Even | AtLeast | Sum
Form = Same | AtMost | Allowed | OfAll
#: Those that draw no VMs to each other: less above a limit is better than more.
Limit = AtMost | Allowed | Even | AtLeast | Sum


class Ask(Record, frozen=True):
    """What a group, a legacy label or a placement rule asks; or the operator's keys of a VM."""

    #: Of the group, label or rule; of the VM if `of_keys`.
    id: str
    vms: tuple[str, ...]
    forms: tuple[Form, ...]
    of_keys: bool = False
    of_rule: bool = False


class Contradiction(Record, frozen=True):
    """Asks that cannot be satisfied together, though without any one of them the others can."""

    asks: tuple[Ask, ...]
    #: Whether it is proven that no smaller set is contradictory.
    smallest: bool
    #: Whether all could be satisfied if hosts had more memory, as far as that is found out.
    memory: bool = False

    @property
    def groups(self) -> tuple[str, ...]:
        """Affinity groups, legacy labels and placement rules, by their ids."""
        return tuple(sorted(one.id for one in self.asks if not one.of_keys))

    @property
    def keys_of(self) -> tuple[str, ...]:
        """VMs whose placement keys have a part in it."""
        return tuple(sorted(one.id for one in self.asks if one.of_keys))

    @property
    def vms(self) -> tuple[str, ...]:
        return tuple(sorted({vm for one in self.asks for vm in one.vms}))


class Judgement(Record, frozen=True):
    """Whether all can be satisfied together; each part of a cluster is judged by itself."""

    contradictions: tuple[Contradiction, ...]
    #: What could not be judged with the work allowed.
    unknown: tuple[tuple[Ask, ...], ...]


class Constraint(Record, frozen=True, kw_only=True):
    """An invariant over some VMs of one cluster; a subclass says which."""

    #: Which half of an affinity group asks for it: `vm_affinity` or `host_affinity`.
    family: ClassVar[str]
    #: What it asks of its VMs, in words: "together", "apart", "on its hosts" ...
    asks: ClassVar[str]
    #: Whether it draws VMs to something; else it keeps them off something.
    positive: ClassVar[bool]
    #: Whether the engine's own filters judge it as well: they refuse what `admits` refuses, however
    #: violated it is already.
    engine_judges: ClassVar[bool] = True

    #: Ids of the affinity groups that ask for it, or of a legacy label.
    groups: tuple[str, ...]
    #: All members, whether or not they run.
    vms: tuple[str, ...]
    #: Hard rules must be satisfied; soft ones should, the more so the higher the priority.
    hard: bool
    priority: float

    @property
    def form(self) -> Form | None:
        """What it asks of its VMs as a planner computes with it; None where only this checker can judge."""
        return None

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members that violate it; none if the invariant is satisfied."""
        raise NotImplementedError

    @property
    def binding(self) -> bool:
        """Whether no migration may violate it, or violate it more."""
        return self.hard

    def surplus(self, placement: Placement) -> int:
        """How many members must move at least to satisfy it, with room everywhere; 0 if it is."""
        return len(self.offenders(placement))

    def excess(self, placement: Placement) -> int:
        """How far it is from being satisfied, in VMs unless it counts something else; 0 if it is."""
        return self.surplus(placement)

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        """Whether a member may come to a host while all others stay where they are.

        It may join a split positive group on any of its hosts, though that repairs nothing.
        """
        raise NotImplementedError

    def lets(self, vm: str, host: str, placement: Placement) -> bool:
        """Whether a member that runs may migrate to a host.

        Where we alone judge, a step is judged by what it makes worse: it may come to where it stands wrong
        as well, if the rule is violated already and `excess` does not grow.
        """
        return self.admits(vm, host, placement)

    def keeps(self, placement: Placement) -> bool:
        """Whether the invariant is satisfied."""
        return not self.offenders(placement)

    def violated_groups(self, placement: Placement) -> tuple[str, ...]:
        """Of `groups`, those that are violated taken alone."""
        return self.groups if self.offenders(placement) else ()

    def as_engine_lists(self) -> tuple[str, ...]:
        """All members in the order in which the engine goes through them."""
        return self.vms

    def running(self, placement: Placement) -> Iterator[tuple[str, str]]:
        """Members that run, each with its host."""
        for vm in self.vms:
            if (host := placement.runs_on(vm)) is not None:
                yield vm, host


class AllowedHosts(Constraint, frozen=True, kw_only=True):
    """VMs, and the hosts that they may be on, wherever others run."""

    positive: ClassVar[bool] = True

    form: Allowed

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        return tuple(vm for vm, host in self.running(placement) if not self.form.allows(host))

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        return self.form.allows(host)


Filter = Callable[[Snapshot, Request], tuple[Verdict, ...]]
Ranking = Callable[[Snapshot, Request], tuple[Weight, ...]]
Balance = Callable[[Snapshot, BalanceRequest], BalanceMove | None]


class UnitKind(StrEnum):
    """The engine's types of policy units."""

    FILTER = "filter"
    WEIGHT = "weight"
    BALANCE = "load_balancing"


class Scope(StrEnum):
    """How far a filter looks beyond the VM, its groups and the host itself."""

    #: Anything in the cluster.
    CLUSTER = "cluster"
    #: What is on the host that is asked about.
    HOST = "host"
    #: The same; of several VMs that no hard positive group ties to others it says at once what it would say
    #: of each in turn.
    HOST_AT_ONCE = "host_at_once"


@dataclass(frozen=True, kw_only=True, eq=False)
class Dependence:
    """What the answer of a filter depends on, apart from the VM, its groups and the host itself.

    It spares questions where many VMs and hosts, or states to come, are asked about.
    """

    #: Whether what it says of a host is the same wherever other VMs are; of one that is so while a cluster
    #: stands as it does, a function of the cluster's id.
    fixed: bool | Callable[[Snapshot, str], bool] = False
    #: Of a fixed filter, all that its answer depends on of a VM, by its id: of VMs of which that is equal one
    #: need be asked about. None where that is not known.
    alike: Callable[[Snapshot, str], Hashable] | None = None
    #: How far it looks at most; by the cluster's id where that differs between clusters.
    scope: Scope | Callable[[Snapshot, str], Scope] = Scope.CLUSTER
    #: Of a VM, by its id, whether no start of some others can open a host to it that is closed now.
    only_narrows: Callable[[Snapshot, str, frozenset[str]], bool] = lambda snapshot, vm, others: False
    #: Of a VM, by its id, the peers that the filter has it join wherever they are.
    joins: Callable[[Snapshot, str], frozenset[str]] = lambda snapshot, vm: frozenset()
    #: Whether plans compute it for every placement themselves: room, and the peers that the engine sees.
    computed: bool = False

    def fixed_in(self, snapshot: Snapshot, cluster: str) -> bool:
        """Whether what it says of a host of the cluster is the same wherever other VMs go."""
        return self.fixed(snapshot, cluster) if callable(self.fixed) else self.fixed

    def scope_in(self, snapshot: Snapshot, cluster: str) -> Scope:
        """How far it looks at most, in a cluster."""
        return self.scope(snapshot, cluster) if callable(self.scope) else self.scope


ANYTHING = Dependence()


@dataclass(frozen=True, kw_only=True, eq=False)
class Rule:
    """One rule. What it is asked for is None where the engine alone answers by it."""

    #: The name in the policy editor: of our unit, or of the engine's for a rule that we only know of.
    name: str
    kind: UnitKind
    #: Whether we have a policy unit of that name.
    ours: bool = True
    #: The engine's own units that do the same. A filter or weight of ours stands next to its one twin, which
    #: sees the engine's pending VMs and whole groups, and stands when the proxy is away. A policy holds one
    #: balance, and ours stands in place of its twins.
    twins: tuple[str, ...] = ()
    #: The factor of our weight in a policy that gets it; None where it is that of its twin, or 1 without one.
    #: A weight with a usual factor of its own is meant to count before those without.
    usual_factor: int | None = None
    #: What is wrong with parameters that are fine each by itself, in sentences.
    complaints: Callable[[Mapping[str, str]], Iterable[str]] = lambda parameters: ()
    #: Whether it counts only where a policy enables its unit; others count wherever a group asks for them.
    on_request: bool = False
    #: Whether it decides at random between hosts that are equally good.
    draws: bool = False
    #: What it needs to have been measured: how busy hosts are, how busy VMs are.
    reads: frozenset[Part] = frozenset()
    #: What of a cluster asks for it, with its verb ("HA reservation means"); empty for nothing.
    asked_by: Callable[[Snapshot, Cluster], str] = lambda snapshot, cluster: ""
    #: What is to be said of a VM, by its id, wherever it runs.
    notes: Callable[[Snapshot, str], tuple[Reason, ...]] = lambda snapshot, vm: ()
    filter: Filter | None = None
    depends_on: Dependence = ANYTHING
    weight: Ranking | None = None
    balance: Balance | None = None
    #: Its invariants in a cluster, by the cluster's id.
    constraints: Callable[[Snapshot, str], Iterable[Constraint]] | None = None

    def enabled_in(self, cluster: Cluster) -> bool:
        """Whether the cluster's policy is known to enable our unit; a weight with factor 0 weighs nothing.

        A filter of the engine's own is enabled unless the policy's are known, and it is not among them: all
        policies that the engine ships have it.
        """
        policy = cluster.scheduling_policy
        if not self.ours and self.kind is UnitKind.FILTER:
            known = () if policy is None else policy.engine_filters
            return not known or self.name in known
        if policy is None:
            return False
        if self.kind is UnitKind.WEIGHT:
            return policy.weights.get(self.name, 0) > 0
        return self.name in policy.filters if self.kind is UnitKind.FILTER else policy.balance == self.name


def accepted_hosts(snapshot: Snapshot, filters: Iterable[Rule], request: Request) -> tuple[str, ...]:
    """Candidate hosts that all filters accept, one after the other as the engine asks them."""
    left = request.candidate_hosts
    for rule in filters:
        if left and rule.filter is not None:
            verdicts = rule.filter(snapshot, replace(request, candidate_hosts=left))
            left = tuple(verdict.host for verdict in verdicts if verdict.accepted)
    return left
