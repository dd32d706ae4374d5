"""The data of a problem: hosts with their room, VMs with their needs, and rules as goals, at the start."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from ovirt_placement.planning.problem.counts import Count, Crowd, count
from ovirt_placement.rules.elements.rule import Allowed, AtMost, Constraint, Form, OfAll, Same, Sum

#: The level of hard rules; soft ones follow, 1 for the highest priority in the cluster.
HARD = 0


@dataclass(frozen=True, eq=False, slots=True)
class Goal:
    """One constraint. Equal by identity: `number` is its place in `Problem.goals`."""

    number: int
    #: Trimmed to the members that run in the cluster.
    constraint: Constraint
    #: What it asks; None where only the constraint can judge it: then plans are found by trying.
    form: Form | None
    level: int
    #: Whether the plan is to repair it where it is violated; else it is only not to be violated.
    wanted: bool
    #: Whether it is satisfied at the start.
    satisfied: bool
    #: How many of its VMs must move at least, where it is violated at the start.
    surplus: int = 0
    #: Whether it is better the less it is violated, though it remains violated: then its `excess` counts.
    partly: bool = False

    @property
    def vms(self) -> tuple[str, ...]:
        return self.constraint.vms

    @property
    def hard(self) -> bool:
        return self.level == HARD

    @property
    def binding(self) -> bool:
        """Whether no step may violate it, or violate it more."""
        return self.constraint.binding

    @property
    def lenient(self) -> bool:
        """Whether steps may leave it as violated as it is: it is so at the start, and we alone judge."""
        return not self.satisfied and not self.constraint.engine_judges

    @property
    def gathers(self) -> bool:
        """Whether all its VMs are to be on one host."""
        return isinstance(self.form, Same)

    @property
    def split(self) -> bool:
        """Whether it gathers VMs that are apart: one comes only to where others are, or all at once."""
        return self.gathers and self.binding and not self.satisfied

    @property
    def limit(self) -> AtMost | None:
        """How many of its VMs may share a host, if that is what it asks."""
        return self.form if isinstance(self.form, AtMost) else None

    @property
    def allowed(self) -> Allowed | None:
        """The hosts that its VMs may be on, if that is what it asks."""
        return self.form if isinstance(self.form, Allowed) else None

    @property
    def sum(self) -> Sum | None:
        """What may be on some hosts in sum, if that is what it asks."""
        return self.form if isinstance(self.form, Sum) else None

    @property
    def opaque(self) -> bool:
        """Whether only the constraint can judge it: it has no form to compute with."""
        return self.form is None

    @property
    def collective(self) -> bool:
        """Whether what it says of one VM hangs on where all of them are."""
        return self.form is None or isinstance(self.form, OfAll)

    def concerns(self, source: str, target: str) -> bool:
        """Whether it makes a difference to it that a member goes from one of these hosts to the other."""
        total = self.sum
        return total is None or (source in total.hosts) is not (target in total.hosts)

    def allows(self, host: str) -> bool:
        """Whether a VM may be on `host` by the hosts that are allowed; true for every other form."""
        return not isinstance(self.form, Allowed) or self.form.allows(host)

    def excess(self, count: Count) -> int:
        """How much of it is violated, if that counts; of an affinity group, pairs that share a host."""
        if not self.partly:
            return 0
        return count.pairs if self.by_pairs and isinstance(count, Crowd) else count.faults

    @property
    def by_pairs(self) -> bool:
        """Whether pairs of members that share a host are counted: then crowds of one size are the best."""
        return self.constraint.engine_judges

    def rivals(self, vms: Set[str]) -> Iterable[str]:
        """Members besides some VMs that count against them where they share a place with one."""
        limit = self.limit
        if limit is None:
            return ()
        sets = limit.sets(vm for vm in vms if vm in self.vms)
        return (vm for vm in self.vms if vm not in vms and limit.own_set(vm) not in sets)

    def parts(self, vms: Set[str]) -> bool:
        """Whether some VMs may in no case be on one host."""
        limit = self.limit
        return limit is not None and len(limit.sets(vm for vm in self.vms if vm in vms)) > limit.most


@dataclass(frozen=True, slots=True)
class Move:
    """A migration of one VM, or of a whole positive group at once (its closure), to `host`."""

    vms: tuple[str, ...]
    host: str


@dataclass(frozen=True)
class Problem:
    """The start. VMs that may not move are in `where` and have no `targets`."""

    cluster: str
    #: Hosts that may take VMs, the best first; the order decides between choices that are equal in all else.
    hosts: tuple[str, ...]
    #: MiB that each of `hosts` can still hand out; more is refused.
    free_mb: Mapping[str, int]
    #: MiB that each of `hosts` can take and still keep its headroom; negative if it has less now.
    spare_mb: Mapping[str, int]
    #: The same of CPU, in percent of one core; hosts without statistics are not in it.
    spare_cpu: Mapping[str, float]
    #: All that each host has, in the same units: what shares are taken of.
    size_mb: Mapping[str, int]
    size_cpu: Mapping[str, float]
    #: What runs there now, in percent of one core; hosts without statistics are not in it.
    used_cpu: Mapping[str, float]
    #: What each VM takes on a host: MiB, and percent of one core (0 where it is not known).
    memory_mb: Mapping[str, int]
    cpu: Mapping[str, float]
    #: The host that each VM runs on or is about to start on. Members of other clusters are among them.
    where: Mapping[str, str]
    #: Hosts that a VM is on its way to.
    pending: Mapping[str, tuple[str, ...]]
    #: Hosts that a VM may migrate to, as far as room and other VMs let it: by all filters whose answer stays,
    #: the engine's own among them. Made when asked for. Its own host may be among them.
    targets: Mapping[str, frozenset[str]]
    #: All rules of the cluster with running members, hard and soft.
    goals: tuple[Goal, ...]
    #: Of each VM that is in any, its goals.
    goals_of: Mapping[str, tuple[Goal, ...]]
    #: Of each VM, those that share a hard positive group with it: what the engine's own filter looks at.
    peers: Mapping[str, frozenset[str]]
    #: VMs with hosts that are left out: some rule, or the engine, has refused them.
    refused: frozenset[tuple[str, str]]
    #: Whether a filter is in force that other VMs sway and that no goal describes: then nothing is proven.
    guessed: bool = False
    #: Hosts kept for failover: targets only where no other will do.
    failover: frozenset[str] = frozenset()

    @cached_property
    def on(self) -> Mapping[str, tuple[str, ...]]:
        """VMs of the cluster by the host that they are on at the start."""
        found: dict[str, list[str]] = {}
        for vm, host in self.where.items():
            found.setdefault(host, []).append(vm)
        return {host: tuple(vms) for host, vms in found.items()}

    def goals_between(self, vm: str, source: str, target: str) -> tuple[Goal, ...]:
        """Of the goals of a VM those to which it makes a difference that it goes from host to host."""
        wide = self._wide.get(vm, ())
        if not self._sums:
            return wide
        sums = (goal for host in (source, target) for goal in self._sums.get(host, ()))
        crossed = (goal for goal in sums if goal.concerns(source, target))
        return (*wide, *(goal for goal in crossed if vm in self._members[goal.number]))

    def in_goal(self, vm: str, goal: Goal) -> bool:
        """Whether a VM is one of those of a sum."""
        return vm in self._members[goal.number]

    def sums_with(self, host: str) -> tuple[Goal, ...]:
        """The goals that limit what is on a host in sum, with others or alone."""
        return self._sums.get(host, ())

    def start_count(self, goal: Goal) -> Count | None:
        """The members of a goal where they are at the start, which nothing changes."""
        if goal.number not in self._counts:
            placed = [(vm, self.where[vm]) for vm in goal.vms]
            self._counts[goal.number] = count(goal.form, placed)
        return self._counts[goal.number]

    @cached_property
    def excess(self) -> int:
        """How much of the goals is violated at the start, as `Score` counts it."""
        counted = ((goal, self.start_count(goal)) for goal in self.goals if goal.partly)
        return sum(goal.excess(count) for goal, count in counted if count is not None)

    @cached_property
    def levels(self) -> int:
        """How many levels of goals there are: one for hard rules, and one for each priority of soft ones."""
        return 1 + max((goal.level for goal in self.goals), default=0)

    @cached_property
    def _wide(self) -> Mapping[str, tuple[Goal, ...]]:
        """Of each VM its goals but for sums."""
        if not self._sums:
            return self.goals_of
        return {vm: tuple(goal for goal in its if goal.sum is None) for vm, its in self.goals_of.items()}

    @cached_property
    def _sums(self) -> Mapping[str, tuple[Goal, ...]]:
        """The sums of which each host is a part."""
        found: dict[str, list[Goal]] = {}
        for goal in self.goals:
            for host in goal.sum.hosts if goal.sum is not None else ():
                found.setdefault(host, []).append(goal)
        return {host: tuple(goals) for host, goals in found.items()}

    @cached_property
    def _members(self) -> Mapping[int, frozenset[str]]:
        """The VMs of sums; of rules about the same VMs they are the same set."""
        known: dict[tuple[str, ...], frozenset[str]] = {}
        sums = (goal for goal in self.goals if goal.sum is not None)
        return {goal.number: known.setdefault(goal.vms, frozenset(goal.vms)) for goal in sums}

    @cached_property
    def known_fixed(self) -> dict[int, bool]:
        """Of goals that were asked about, by number, whether they are violated in every end."""
        return {}

    @cached_property
    def _counts(self) -> dict[int, Count | None]:
        """Those of `start_count` that were asked for."""
        return {}
