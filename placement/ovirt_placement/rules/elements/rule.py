"""What every rule declares: its unit, the engine's twin, what it needs, and how it is asked."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.snapshot import Part
from ovirt_placement.rules.elements.constraints import Constraint
from ovirt_placement.rules.elements.verdict import (
    BalanceMove,
    BalanceRequest,
    Reason,
    Request,
    Verdict,
    Weight,
)

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
