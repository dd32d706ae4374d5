"""What all kinds of placement rules have in common, and the one that says nothing of where VMs run."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.elements.constraints import Constraint
from ovirt_placement.rules.elements.placement import Arriving, Placement
from ovirt_placement.rules.elements.verdict import ReasonKind
from ovirt_placement.rules.placement_rules.members import Resolved

NOBODY: frozenset[str] = frozenset()


class Against(Record, frozen=True):
    """What speaks against a host."""

    kind: ReasonKind
    number: float | None = None
    #: Other VMs that make it so.
    vms: tuple[str, ...] = ()


#: What speaks against each host; None where nothing does.
Judge = Callable[[str], Against | None]


class PlacementConstraint(Constraint, frozen=True, kw_only=True):
    """What a placement rule asks; `groups` holds the id of the rule alone."""

    family: ClassVar[str] = "placement_rules"
    positive: ClassVar[bool] = False
    engine_judges: ClassVar[bool] = False

    #: Whether migrations must not violate it either; otherwise it is repaired afterwards.
    continuous: bool = True

    @property
    def binding(self) -> bool:
        return self.hard and self.continuous

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NOBODY) -> Judge:
        """What speaks against hosts for a member, while all others stay where they are.

        Of members that are `unconfirmed` nobody knows where they are: they speak against no host.
        """
        raise NotImplementedError

    def company(self, vm: str, placement: Placement) -> Callable[[str], int]:
        """How many other members a host would have near it; the fewer the better."""
        return lambda host: 0

    def judge_step(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NOBODY) -> Judge:
        """The same for one that migrates: what violates the rule no more than it is violated now is no harm.

        Where it is not known for certain where members are, or some are on their way, all counts.
        """
        judge = self.judge(vm, placement, unconfirmed)
        if placement.runs_on(vm) is None or not unconfirmed.isdisjoint(self.vms) or self.keeps(placement):
            return judge
        if placement.any_between_hosts(self.vms):
            return judge
        more = self.more_excess(vm, placement)

        def against(host: str) -> Against | None:
            found = judge(host)
            return None if found is None or more(host) <= 0 else found

        return against

    def more_excess(self, vm: str, placement: Placement) -> Callable[[str], int]:
        """By how much `excess` grows if a member goes to a host; all hosts of a domain are alike."""
        now, known, domain_of = self.excess(placement), dict[str, int](), self.places

        def more(host: str) -> int:
            place = domain_of.get(host, host)
            if place not in known:
                known[place] = self.excess(Arriving(placement, (vm,), host)) - now
            return known[place]

        return more

    @property
    def places(self) -> Mapping[str, str]:
        """The failure domain of each host, if it asks for any."""
        return {}

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        return self.judge(vm, placement)(host) is None

    def lets(self, vm: str, host: str, placement: Placement) -> bool:
        return self.judge_step(vm, placement)(host) is None


@dataclass(frozen=True, kw_only=True)
class RuleKind:
    """One kind of rule."""

    name: str
    #: What it asks, in a line.
    summary: str
    #: Fields of a rule that it needs, and those that it may have besides them.
    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()
    #: Whether it needs failure domains.
    in_domains: bool = False
    #: Whether it may be soft, or to be satisfied in the end only.
    weaker: bool = True


@dataclass(frozen=True, kw_only=True)
class PlacementKind(RuleKind):
    """One that asks where VMs run."""

    #: The VMs that it is about.
    concerned: Callable[[Snapshot, Resolved], tuple[str, ...]] = lambda snapshot, found: found.vms
    make: Callable[[Snapshot, Resolved, tuple[str, ...]], PlacementConstraint]
    #: Why a rule cannot be satisfied on the hosts of its cluster however VMs run, in sentences.
    impossible: Callable[[Resolved, frozenset[str]], Iterable[str]] = lambda found, hosts: ()


def common(found: Resolved) -> dict[str, Any]:
    """What constraints of every kind take over from a rule."""
    rule = found.rule
    return {
        "groups": (rule.id,),
        "hard": rule.enforcing,
        "priority": rule.priority,
        "continuous": rule.continuous,
    }


RESTART_AFTER = RuleKind(
    name="restart_after",
    summary="after a failure, each of the VMs restarts after all of the other VMs",
    needs=("vms", "other_vms"),
    weaker=False,
)
