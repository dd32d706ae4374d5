"""What each of those who migrate VMs does in its turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ovirt_enforcer.policy_simulation.balancing import Balance
from ovirt_enforcer.policy_simulation.course import Actor, MigrationMade
from ovirt_enforcer.policy_simulation.scene import Asking, Scene
from ovirt_enforcer.policy_simulation.scheduling import Scheduler, takes_effect
from ovirt_placement.answers.plans.records import reason
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.names import group_name
from ovirt_placement.planning.assignment import catalogue as strategies
from ovirt_placement.planning.assignment.catalogue import StrategyName
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.plan import Step
from ovirt_placement.planning.planner import Frozen, make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.rules.engine_enforcement.gain import gains
from ovirt_placement.rules.engine_enforcement.order import tiers
from ovirt_placement.rules.java.ids import in_order
from ovirt_placement.rules.placement import SnapshotPlacement


@dataclass
class EnforcerTurn:
    """A whole plan, carried out."""

    frozen: Frozen
    options: PlanOptions
    #: The violated rules of which it could repair none, when it last made a plan, by their groups.
    hopeless: frozenset[tuple[str, ...]] | None = None

    def act(self, scene: Scene, deadline: Deadline) -> Iterator[MigrationMade]:
        """Carry out the plan for what is violated; nothing once the deadline is over."""
        wanted = self.wanted(scene)
        if not wanted and not self.options.keys:
            return
        strategy = strategies.strategy(StrategyName.GREEDY)
        plan = make_plan(
            scene.snapshot,
            scene.cluster,
            self.frozen,
            options=self.options,
            strategy=strategy,
            deadline=deadline,
            explained=False,
        )
        if not deadline.over:  # what was made in haste would not be made again
            self.hopeless = None if plan.steps else wanted
            for step in plan.steps:
                yield from self._carry_out(step, scene)

    def wanted(self, scene: Scene) -> frozenset[tuple[str, ...]]:
        """The violated rules that it would repair, by their groups."""
        return frozenset(
            one.constraint.groups
            for one in scene.violated()
            if (Repair.HARD if one.constraint.hard else Repair.SOFT) in self.options.repair
        )

    @staticmethod
    def _carry_out(step: Step, scene: Scene) -> Iterator[MigrationMade]:
        because, cluster = reason(step, scene.snapshot), scene.snapshot.cluster_by_id
        asking = [one for one in scene.violated_of(step.vms) if {*one.constraint.groups} & {*step.groups}]
        scene.move(step.vms, step.target)
        units = _units(asking, cluster[scene.cluster])
        for vm, source in zip(step.vms, step.sources, strict=True):
            yield MigrationMade(
                vm=vm,
                source=source,
                target=step.target,
                by=Actor.ENFORCER,
                units=units,
                groups=step.groups,
                because=because,
            )


@dataclass(frozen=True)
class EngineTurn:
    """One VM, the first in the engine's order that can go anywhere; where it draws lots, the first by id."""

    scheduler: Scheduler

    def act(self, scene: Scene, deadline: Deadline) -> Iterator[MigrationMade]:
        """Migrate a VM of a violated rule; the engine does so while the cluster is being upgraded, too."""
        snapshot = scene.snapshot
        for vm, hard in _in_turn(scene):
            if deadline.over:
                return
            target = self._target(snapshot, vm, scene.hosts, hard=hard)
            if target is not None:
                yield from _enforced(scene, vm, target, hard=hard)
                return

    def _target(self, snapshot: Snapshot, name: str, hosts: tuple[str, ...], *, hard: bool) -> str | None:
        """Where a VM is migrated to, if it is: for a soft rule only if the best of all hosts is a gain.

        The engine asks its own filters first whether any host is left: the others leave no more than they do.
        """
        vm = snapshot.vm_by_id[name]
        if not hard:
            best = self.scheduler.best_host(snapshot, vm, hosts)
            if not gains(snapshot, name, best, as_engine=True):
                return None
        return self.scheduler.best_host(snapshot, vm, tuple(host for host in hosts if host != vm.host))


@dataclass(frozen=True)
class BalanceTurn:
    """The VM that the balance of the policy gives away, to the host that the engine then chooses."""

    balance: Balance
    scheduler: Scheduler

    def act(self, scene: Scene, deadline: Deadline) -> Iterator[MigrationMade]:
        """Ask the balance once."""
        snapshot, hosts = scene.snapshot, scene.hosts
        move = None if deadline.over else self.balance.ask(snapshot, scene.cluster, hosts)
        if move is None:
            return
        vm = snapshot.vm_by_id[move.vm]
        target = self.scheduler.best_host(snapshot, vm, move.hosts)
        if target is not None and vm.host is not None:
            because = self.balance.reason(snapshot, vm, hosts)
            scene.move((vm.id,), target)
            yield MigrationMade(
                vm=vm.id,
                source=vm.host,
                target=target,
                by=Actor.BALANCE,
                units=(self.balance.unit,),
                groups=(),
                because=because,
            )


def _in_turn(scene: Scene) -> Iterator[tuple[str, bool]]:
    """The VMs that may move, in the engine's order, with whether a hard rule asks for it."""
    snapshot = scene.snapshot
    violated = [one.constraint for one in scene.violated()]
    movable = {vm for one in violated for vm in one.vms if snapshot.vm_by_id[vm].movable}
    placement, seen = SnapshotPlacement(snapshot), set[tuple[str, bool]]()
    for hard, tier in tiers(violated, placement, movable, as_engine=True):
        for vm in sorted(tier, key=in_order):
            known = snapshot.vm_by_id[vm]
            if (vm, hard) not in seen and vm in movable and known.status == "up" and known.host is not None:
                seen.add((vm, hard))
                yield vm, hard


def _enforced(scene: Scene, vm: str, target: str, *, hard: bool) -> Iterator[MigrationMade]:
    snapshot = scene.snapshot
    asking = [
        one
        for one in scene.violated_of((vm,))
        if one.constraint.hard is hard and vm in _concerned(one, snapshot)
    ]
    source = snapshot.vm_by_id[vm].host or ""
    scene.move((vm,), target)
    yield MigrationMade(
        vm=vm,
        source=source,
        target=target,
        by=Actor.ENGINE,
        units=_units(asking, snapshot.cluster_by_id[scene.cluster]),
        groups=tuple(dict.fromkeys(group for one in asking for group in one.constraint.groups)),
        because="; ".join(_violated_text(one, snapshot) for one in asking),
    )


def _concerned(asking: Asking, snapshot: Snapshot) -> tuple[str, ...]:
    """The VMs that the engine might move for a violated rule: of one that gathers VMs any of them."""
    rule = asking.constraint
    gathers = rule.positive and rule.family == "vm_affinity"
    return rule.vms if gathers else rule.offenders(SnapshotPlacement(snapshot))


def _violated_text(asking: Asking, snapshot: Snapshot) -> str:
    rule = asking.constraint
    groups = " and ".join(group_name(group, snapshot) for group in rule.groups)
    verb = "is" if len(rule.groups) == 1 else "are"
    return f"{groups} {verb} violated ({'hard' if rule.hard else 'soft'}: {rule.asks})"


def _units(asking: Iterable[Asking], cluster: Cluster) -> tuple[str, ...]:
    """The units that stand for rules: ours where the policy has it, else the engine's twin."""
    return tuple(
        dict.fromkeys(
            rule.name if takes_effect(rule, cluster) or not rule.twins else rule.twins[0]
            for rule, _ in asking
        )
    )
