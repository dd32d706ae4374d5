"""Plans as data: what `ovirt-enforcer plan --json` prints, `apply` reads, and the history keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal

from msgspec import field

from ovirt_placement.answers.plans.obstacles import NamedObstacle, named_obstacles
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import (
    Named,
    NamedGroup,
    group_name,
    named_cluster,
    named_groups,
    named_host,
    named_hosts,
    named_vm,
    named_vms,
)
from ovirt_placement.model.record import Record
from ovirt_placement.planning.plan import (
    LostReservation,
    Plan,
    RefusedStep,
    Remaining,
    Reservation,
    Step,
    StepPurpose,
)
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.sentences import sentence

#: What steps are for that concern no violated group.
_PURPOSES: Final = {
    StepPurpose.ROOM: "makes room for the next steps",
    StepPurpose.BACK: "goes back to where it was",
    StepPurpose.ON: "goes on from where it stepped aside to",
    StepPurpose.KEYS: "to a host that its placement keys accept",
    StepPurpose.MAINTENANCE: "off a host that is to be empty",
}

#: Grows when something that programs may rely on goes, or changes its meaning; not when something is added.
FORMAT: Final = 1


class MovedVm(Record, frozen=True, omit_defaults=False):
    """A VM that a step moves, and the host that it leaves."""

    id: str
    name: str
    from_: Named = field(name="from")


class PlannedStep(Record, frozen=True, omit_defaults=False):
    """One migration request: of a VM, or of a whole positive group at once."""

    vms: tuple[MovedVm, ...]
    #: The host that the first VM leaves.
    from_: Named = field(name="from")
    to: Named
    #: What it is for, as a sentence.
    reason: str
    #: Places in `steps`, from 0, of the steps that must have ended before this one begins.
    after: tuple[int, ...]
    #: How long the migration is thought to take.
    seconds: float
    #: Whether the engine is asked to move all VMs of the positive group with the first one.
    closure: bool
    #: Whether it is taken for the HA reservation.
    reserves: bool
    #: Violated affinity groups, or legacy labels, that the VMs belong to.
    groups: tuple[NamedGroup, ...]
    #: Those of them that are satisfied afterwards.
    repairs: tuple[NamedGroup, ...]


class RemainingRule(Record, frozen=True, omit_defaults=False):
    """A violated rule that the steps do not repair."""

    #: Affinity groups, or a legacy label; none of placement keys.
    groups: tuple[NamedGroup, ...]
    #: `vm_affinity`, `host_affinity` or `placement_keys`.
    family: str
    #: "together", "apart", "on its hosts" ...
    asks: str
    hard: bool
    vms: tuple[Named, ...]
    #: What stands in the way; nothing where nobody asked for its repair.
    obstacles: tuple[NamedObstacle, ...]
    #: The same as sentences.
    because: tuple[str, ...]


class LostFailure(Record, frozen=True, omit_defaults=False):
    """Hosts that must not fail together, and VMs that find no home then."""

    hosts: tuple[Named, ...]
    #: The failure domains that fail, where domains do.
    domains: tuple[str, ...]
    vms: tuple[Named, ...]


class PlannedReservation(Record, frozen=True, omit_defaults=False):
    """What becomes of an HA reservation that the plan was to restore."""

    #: Null if not all failures could be judged.
    holds: bool | None
    #: Whether no migrations leave fewer VMs without a home.
    proven: bool
    lost: tuple[LostFailure, ...]


class DroppedStep(Record, frozen=True, omit_defaults=False):
    """A step that was dropped, since a rule refuses it."""

    step: PlannedStep
    because: tuple[str, ...]


class ClusterPlan(Record, frozen=True, omit_defaults=False):
    """The migrations that repair one cluster."""

    #: A digest of the cluster and its steps: equal plans have equal ids.
    id: str
    cluster: Named
    strategy: str
    #: What the dice of the strategy `random` were cast with; null of the others.
    seed: int | None
    #: How many VMs are migrated; one that is migrated twice counts twice.
    migrations: int
    #: Whether no plan repairs more, or as much with fewer migrations.
    proven: bool
    #: Migrations that any plan has that leaves no more violated than this one.
    at_least: int
    #: How long it is thought to take.
    seconds: float
    steps: tuple[PlannedStep, ...]
    #: Every rule that is not repaired, also one that nobody asked to repair.
    remaining: tuple[RemainingRule, ...]
    #: Hosts whose headroom is given up, for a hard rule.
    crowded: tuple[Named, ...]
    #: Null where nobody asked for it, or there is none.
    reservation: PlannedReservation | None
    refused: tuple[DroppedStep, ...]
    #: What holds its first steps back now, as a sentence: a mode, a pause, a window, an upgrade; null where
    #: nothing does, or where it is not known.
    not_now: str | None = None
    #: What fails less well afterwards, at its worst, since the rules that are repaired leave no other way.
    costs: tuple[LostFailure, ...] = ()


class Plans(Record, frozen=True, omit_defaults=False):
    """The plans of all clusters that were asked for."""

    format: Literal[1]
    #: Null without a cluster.
    strategy: str | None
    clusters: tuple[ClusterPlan, ...]


def plans_record(
    plans: Iterable[Plan], snapshot: Snapshot, not_now: Callable[[Plan], str | None] = lambda _: None
) -> Plans:
    """The plans with names, and what holds each back now."""
    plans = list(plans)
    return Plans(
        format=FORMAT,
        strategy=plans[0].strategy if plans else None,
        clusters=tuple(plan_record(plan, snapshot, not_now(plan)) for plan in plans),
    )


def plan_record(plan: Plan, snapshot: Snapshot, not_now: str | None = None) -> ClusterPlan:
    """The plan of one cluster: ids with names next to them. Of what is not known yet nothing is proven."""
    why = doubt(snapshot, plan.cluster)
    return ClusterPlan(
        id=plan.id,
        cluster=named_cluster(plan.cluster, snapshot),
        strategy=plan.strategy,
        seed=plan.seed,
        migrations=plan.migrations,
        proven=plan.proven and not why,
        at_least=plan.at_least,
        seconds=plan.seconds,
        steps=tuple(step_record(step, snapshot) for step in plan.steps),
        remaining=tuple(remaining_record(rule, snapshot) for rule in plan.remaining),
        crowded=named_hosts(plan.crowded, snapshot),
        reservation=None if plan.reservation is None else _reservation_record(plan.reservation, snapshot),
        refused=tuple(dropped_record(one, snapshot) for one in plan.refused),
        not_now=why or not_now,
        costs=_failures(plan.costs, snapshot),
    )


def step_record(step: Step, snapshot: Snapshot) -> PlannedStep:
    """One step, with names and with what it is for."""
    return PlannedStep(
        vms=tuple(
            MovedVm(vm, named_vm(vm, snapshot).name, named_host(source, snapshot))
            for vm, source in zip(step.vms, step.sources, strict=True)
        ),
        from_=named_host(step.sources[0], snapshot),
        to=named_host(step.target, snapshot),
        reason=reason(step, snapshot),
        after=step.after,
        seconds=step.seconds,
        closure=step.closure,
        reserves=step.reserves,
        groups=named_groups(step.groups, snapshot),
        repairs=named_groups(step.repairs, snapshot),
    )


def remaining_record(rule: Remaining, snapshot: Snapshot) -> RemainingRule:
    """One rule that remains violated, with names."""
    obstacles = named_obstacles(rule.obstacles, snapshot)
    return RemainingRule(
        groups=named_groups(rule.groups, snapshot),
        family=rule.family,
        asks=rule.asks,
        hard=rule.hard,
        vms=named_vms(rule.vms, snapshot),
        obstacles=obstacles,
        because=tuple(one.text for one in obstacles),
    )


def _reservation_record(reservation: Reservation, snapshot: Snapshot) -> PlannedReservation:
    return PlannedReservation(
        holds=not reservation.lost if reservation.known else None,
        proven=reservation.proven,
        lost=_failures(reservation.lost, snapshot),
    )


def _failures(lost: Iterable[LostReservation], snapshot: Snapshot) -> tuple[LostFailure, ...]:
    return tuple(
        LostFailure(named_hosts(one.hosts, snapshot), one.domains, named_vms(one.vms, snapshot))
        for one in lost
    )


def dropped_record(dropped: RefusedStep, snapshot: Snapshot) -> DroppedStep:
    """A step that the search took for legal and a rule refuses."""
    because = dict.fromkeys(f"{rule}: {sentence(reason, snapshot)}" for rule, reason in dropped.vetoes)
    return DroppedStep(step_record(dropped.step, snapshot), tuple(because))


def reason(step: Step, snapshot: Snapshot) -> str:
    """What a step is for, as a sentence."""
    if step.repairs:
        return f"repairs {_groups(step.repairs, snapshot)}"
    if step.reserves:
        return "for the HA reservation"
    if step.groups and step.purpose is not StepPurpose.MAINTENANCE:
        return f"helps to repair {_groups(step.groups, snapshot)}"
    return _PURPOSES[step.purpose]


def _groups(groups: Iterable[str], snapshot: Snapshot) -> str:
    return " and ".join(group_name(group, snapshot) for group in groups)
