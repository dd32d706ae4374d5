"""One rule as a plan sees it: a constraint over the members that run, and how much it matters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from ovirt_placement.rules.constraint import Constraint
from ovirt_placement.rules.forms import Allowed, AtMost, Form, OfAll, Same, Sum

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
    #: Of a hard negative group: whether fewer pairs that share a host are better, though it remains violated.
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

    def right(self, host: str) -> bool:
        """Whether a VM may be on `host` by the hosts that are allowed; true for every other form."""
        return not isinstance(self.form, Allowed) or self.form.right(host)

    def pairs(self, crowd: Mapping[str, int]) -> int:
        """How many pairs of members share a host, if that counts; else 0."""
        return sum(count * (count - 1) // 2 for count in crowd.values()) if self.partly else 0

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
