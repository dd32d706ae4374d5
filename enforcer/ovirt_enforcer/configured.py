"""What the configuration asks of plans, in the planner's own words, and what is added to their answers."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from itertools import islice
from typing import Final

from msgspec.structs import replace

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.ha_check import configured_domains
from ovirt_placement.config import HaSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import vm_name
from ovirt_placement.planning.assignment import catalogue
from ovirt_placement.planning.assignment.catalogue import StrategyName
from ovirt_placement.planning.obstacles import Obstacle, ObstacleKind
from ovirt_placement.planning.plan import Plan, Remaining
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.rules.failover.units import Domain
from ovirt_service.errors import UserError

#: How long planning may take, in seconds, where the configuration does not say.
_SECONDS: Final = {StrategyName.OPTIMAL: 30.0}
_QUICK_SECONDS: Final = 5.0


def options(
    settings: EnforcerSettings,
    spared: Collection[str] = (),
    closed: Collection[str] = (),
    domains: tuple[Domain, ...] | None = (),
) -> PlanOptions:
    """What plans are to repair and to keep; groups in `spared` and hosts in `closed` are left alone for now.

    HA reservations survive the failure of `domains`, too; None where these are not known.
    """
    return PlanOptions(
        repair=frozenset(map(Repair, settings.repair)),
        keys=settings.repair_placement_keys,
        memory_headroom=settings.memory_headroom_percent / 100,
        cpu_headroom=settings.cpu_headroom_percent / 100,
        spared=frozenset(spared),
        closed=frozenset(closed),
        reserve=settings.ha.repair and domains is not None,
        domains=domains or (),
    )


def domains(settings: HaSettings, snapshot: Snapshot) -> tuple[Domain, ...] | None:
    """The failure domains; None where the configuration is at fault, which the HA watch reports."""
    try:
        return configured_domains(snapshot, settings)
    except UserError:
        return None


def strategy_name(settings: EnforcerSettings) -> StrategyName:
    """The strategy that plans are made by."""
    return catalogue.DEFAULT if settings.strategy is None else StrategyName(settings.strategy)


def seconds(settings: EnforcerSettings) -> float:
    """How long a plan may take."""
    return settings.planning_seconds or _SECONDS.get(strategy_name(settings), _QUICK_SECONDS)


#: This many targets are reported a rule: a large group may have a hundred.
_MOST: Final = 10


def with_held_back(
    plan: Plan,
    snapshot: Snapshot,
    spared: Mapping[str, str],
    left_out: Mapping[tuple[str, str], str],
    frozen: Container[str] = (),
) -> Plan:
    """The plan with more obstacles: groups that are `spared`, and VMs with hosts that are `left_out`.

    Of VMs that are held anyway targets say nothing.
    """
    if not spared and not left_out:
        return plan

    def obstacles(rule: Remaining) -> Iterator[Obstacle]:
        yield from (_held(spared[group], groups=(group,)) for group in rule.groups if group in spared)
        yield from rule.obstacles
        targets = (
            _held(f"{vm_name(vm, snapshot)}: {reason}", vms=(vm,), hosts=(host,))
            for (vm, host), reason in left_out.items()
            if vm in rule.vms and vm not in frozen
        )
        yield from islice(targets, _MOST)

    remaining = (replace(rule, obstacles=tuple(obstacles(rule))) for rule in plan.remaining)
    return replace(plan, remaining=tuple(remaining))


def _held(
    words: str, vms: tuple[str, ...] = (), hosts: tuple[str, ...] = (), groups: tuple[str, ...] = ()
) -> Obstacle:
    return Obstacle(ObstacleKind.HELD, vms, hosts, groups, words=words)
