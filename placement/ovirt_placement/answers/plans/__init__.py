"""Plans as data: what `ovirt-enforcer plan --json` prints, `apply` reads and the history keeps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Final, Literal

from msgspec import field

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import (
    GroupOrRule,
    NamedCluster,
    NamedHost,
    NamedVm,
    counted,
    group_names,
    host_name,
    vm_name,
)
from ovirt_placement.model.record import From, Record, with_names
from ovirt_placement.planning.plan import (
    Obstacle,
    ObstacleKind,
    Plan,
    RefusedStep,
    Remaining,
    Step,
    StepPurpose,
)
from ovirt_placement.planning.steps import Misfit
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.elements.verdict import Reason, sentence

# -- What stands in the way of a repair, a migration or a plan: in sentences, and as data with names.
_KIND = ObstacleKind

#: Of a VM that was named before: why it is not migrated back.
_OF_ONE_VM: Final[Mapping[ObstacleKind, str]] = {
    _KIND.STAYS: "{why}",
    _KIND.ELSEWHERE: "it was moved meanwhile: it is {there}",
    _KIND.NO_SEQUENCE: "no legal sequence of migrations moves it",
    _KIND.NOT_FOUND: "no legal sequence of migrations that moves it was found; not all could be tried",
}
#: What is said where there is neither a reason nor words of another.
_NO_REASON: Final = {_KIND.STAYS: "no host lets it in", _KIND.REFUSED: "the rules refuse it"}


class NamedObstacle(Record, frozen=True, omit_defaults=False):
    """One thing that stands in the way; which fields count depends on the kind."""

    kind: str
    vms: tuple[NamedVm, ...]
    hosts: tuple[NamedHost, ...]
    groups: tuple[GroupOrRule, ...]
    #: Highly available VMs that would not restart.
    unplaced: tuple[NamedVm, ...]
    #: As a sentence.
    text: Annotated[str, From(lambda one, snapshot: obstacle_text(one, snapshot))]


def named_obstacles(obstacles: Iterable[Obstacle], snapshot: Snapshot) -> tuple[NamedObstacle, ...]:
    """Obstacles with names; hosts that refuse the same VMs for the same reason are reported as one."""
    return tuple(with_names(NamedObstacle, one, snapshot) for one in _by_reason(obstacles, snapshot))


def _by_reason(obstacles: Iterable[Obstacle], snapshot: Snapshot) -> Iterable[Obstacle]:
    found: dict[str, Obstacle] = {}
    for obstacle in obstacles:
        anywhere = replace(obstacle, hosts=()) if obstacle.kind in _BY_HOST else obstacle
        words = obstacle_text(anywhere, snapshot)
        known = found.get(words)
        found[words] = obstacle if known is None else replace(obstacle, hosts=(*known.hosts, *obstacle.hosts))
    return found.values()


_BY_HOST = {_KIND.REFUSED, _KIND.REFUSED_TOGETHER, _KIND.NO_MEMORY, _KIND.NO_MEMORY_TOGETHER}


def obstacle_text(obstacle: Obstacle, snapshot: Snapshot) -> str:
    return _text(obstacle.kind.text, obstacle, snapshot)


def kept_reasons(vm: str, obstacles: Iterable[Obstacle], snapshot: Snapshot) -> tuple[str, ...]:
    """Why a VM stays where it is, of which the name was said before."""
    found = []
    for obstacle in _by_reason(obstacles, snapshot):
        own = _OF_ONE_VM if obstacle.vms in ((), (vm,)) else {}
        found.append(_text(own.get(obstacle.kind, obstacle.kind.text), obstacle, snapshot))
    return tuple(dict.fromkeys(found))


def misfit_text(misfit: Misfit, snapshot: Snapshot) -> str:
    """Why a plan must not be carried out any more, in a sentence."""
    what = misfit.obstacle
    if what.kind is not _KIND.REFUSED:
        text = obstacle_text(what, snapshot)
    else:
        why = _why(what, snapshot) if what.reasons else "its VM is not up, or may not be migrated"
        vms = ", ".join(vm_name(vm, snapshot) for vm in what.vms)
        text = f"{vms} may not go to {host_name(what.hosts[0], snapshot)} any more: {why}"
    return text if misfit.step is None else f"step {misfit.step}: {text}"


def reasons_text(reasons: Iterable[Reason], snapshot: Snapshot) -> str:
    return "; ".join(dict.fromkeys(sentence(reason, snapshot) for reason in reasons))


def _text(template: str, obstacle: Obstacle, snapshot: Snapshot) -> str:
    hosts = [host_name(host, snapshot) for host in obstacle.hosts]
    groups = group_names(obstacle.groups, snapshot)
    return template.format(
        vms=_and([vm_name(vm, snapshot) for vm in obstacle.vms]),
        hosts=", ".join(sorted(hosts)),
        home=hosts[0] if hosts else "",
        there=f"on {hosts[1]}" if len(hosts) > 1 else "on no host",
        groups=groups,
        of_groups=f" ({groups})" if groups else "",
        unplaced=_and([vm_name(vm, snapshot) for vm in obstacle.unplaced]),
        asks=obstacle.asks,
        needed=obstacle.needed,
        lost=counted(obstacle.needed, "VM"),
        available=obstacle.available,
        count=obstacle.count,
        still=counted(obstacle.needed, "VM"),
        before=f" (before the plan {obstacle.before})" if obstacle.before > obstacle.needed else "",
        of_sums=_of_many(obstacle, "capacities that were exceeded"),
        of_places=_of_many(obstacle, "hosts or failure domains that had too many"),
        words=obstacle.words,
        why=_why(obstacle, snapshot),
    )


def _of_many(obstacle: Obstacle, what: str) -> str:
    if obstacle.count < 2:
        return ""
    remaining = obstacle.count - obstacle.repaired
    return f"; of {obstacle.count} {what}: {obstacle.repaired} below now, {remaining} still above"


def _why(obstacle: Obstacle, snapshot: Snapshot) -> str:
    return obstacle.words or reasons_text(obstacle.reasons, snapshot) or _NO_REASON.get(obstacle.kind, "")


def _and(names: Collection[str]) -> str:
    *most, last = names or ("",)
    return f"{', '.join(most)} and {last}" if most else last


# -- Plans as data: what `ovirt-enforcer plan --json` prints, `apply` reads, and the history keeps.
#: Grows when something that programs may rely on goes, or changes its meaning; not when something is added.
FORMAT: Final = 1


class MovedVm(Record, frozen=True, omit_defaults=False):
    """A VM that a step moves, and the host that it leaves."""

    id: str
    name: Annotated[str, From(lambda moved, snapshot: vm_name(moved[0], snapshot))]
    from_: NamedHost = field(name="from")


class PlannedStep(Record, frozen=True, omit_defaults=False):
    """One migration request: of a VM, or of a whole positive group at once."""

    vms: Annotated[tuple[MovedVm, ...], From(lambda step, _: zip(step.vms, step.sources, strict=True))]
    #: The host that the first VM leaves.
    from_: Annotated[NamedHost, From(lambda step, _: step.sources[0])] = field(name="from")
    to: Annotated[NamedHost, From("target")]
    #: What it is for, as a sentence.
    reason: Annotated[str, From(lambda step, snapshot: reason(step, snapshot))]
    #: Places in `steps`, from 0, of the steps that must have ended before this one begins.
    after: tuple[int, ...]
    #: How long the migration is estimated to take.
    seconds: float
    #: Whether the engine is asked to move all VMs of the positive group with the first one.
    closure: bool
    #: Whether it is taken for the HA reservation.
    reserves: bool
    #: Violated affinity groups, or legacy labels, that the VMs belong to.
    groups: tuple[GroupOrRule, ...]
    #: Those of them that are satisfied afterwards.
    repairs: tuple[GroupOrRule, ...]


class RemainingRule(Record, frozen=True, omit_defaults=False):
    """A violated rule that the steps do not repair."""

    #: Affinity groups, or a legacy label; none of placement keys.
    groups: tuple[GroupOrRule, ...]
    #: `vm_affinity`, `host_affinity` or `placement_keys`.
    family: str
    #: "together", "apart", "on its hosts" ...
    asks: str
    hard: bool
    vms: tuple[NamedVm, ...]
    #: What stands in the way; nothing where its repair was not asked for.
    obstacles: tuple[NamedObstacle, ...]
    #: The same as sentences.
    because: tuple[str, ...]


class LostFailure(Record, frozen=True, omit_defaults=False):
    """Hosts that must not fail together, and VMs that find no home then."""

    hosts: tuple[NamedHost, ...]
    #: The failure domains that fail, where domains do.
    domains: tuple[str, ...]
    vms: tuple[NamedVm, ...]


class PlannedReservation(Record, frozen=True, omit_defaults=False):
    """What becomes of an HA reservation that the plan was to restore."""

    #: Null if not all failures could be judged.
    holds: Annotated[bool | None, From(lambda one, _: not one.lost if one.known else None)]
    #: Whether no migrations leave fewer VMs without a home.
    proven: bool
    lost: tuple[LostFailure, ...]
    #: What its restoration waits for; empty where nothing.
    waits: str


class DroppedStep(Record, frozen=True, omit_defaults=False):
    """A step that was dropped, since a rule refuses it."""

    step: PlannedStep
    because: Annotated[tuple[str, ...], From(lambda dropped, snapshot: _vetoes(dropped, snapshot))]


class ClusterPlan(Record, frozen=True, omit_defaults=False):
    """The migrations that repair one cluster."""

    #: A digest of the cluster and its steps: equal plans have equal ids.
    id: str
    cluster: NamedCluster
    strategy: str
    #: What the dice of the strategy `random` were cast with; null of the others.
    seed: int | None
    #: How many VMs are migrated; one that is migrated twice counts twice.
    migrations: int
    #: Whether no plan repairs more, or as much with fewer migrations.
    proven: bool
    #: Migrations that any plan has that leaves no more violated than this one.
    at_least: int
    #: How long it is estimated to take.
    seconds: float
    steps: tuple[PlannedStep, ...]
    #: Every rule that is not repaired, also one whose repair was not asked for.
    remaining: tuple[Annotated[RemainingRule, remaining_record], ...]
    #: Hosts whose headroom is given up, for a hard rule.
    crowded: tuple[NamedHost, ...]
    #: Null where it was not asked for, or there is none.
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
    return with_names(ClusterPlan, plan, snapshot, proven=plan.proven and not why, not_now=why or not_now)


def remaining_record(rule: Remaining, snapshot: Snapshot) -> RemainingRule:
    obstacles = named_obstacles(rule.obstacles, snapshot)
    because = tuple(one.text for one in obstacles)
    return with_names(RemainingRule, rule, snapshot, obstacles=obstacles, because=because)


def _vetoes(dropped: RefusedStep, snapshot: Snapshot) -> tuple[str, ...]:
    because = dict.fromkeys(f"{rule}: {sentence(reason, snapshot)}" for rule, reason in dropped.vetoes)
    return tuple(because)


def reason(step: Step, snapshot: Snapshot) -> str:
    if step.repairs:
        return f"repairs {group_names(step.repairs, snapshot)}"
    if step.reserves:
        return "for the HA reservation"
    if step.groups and step.purpose is not StepPurpose.MAINTENANCE:
        return f"helps to repair {group_names(step.groups, snapshot)}"
    return step.purpose.text
