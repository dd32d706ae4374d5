"""What the configuration asks of plans, in the planner's own words."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.ha_check_domains import configured_domains
from ovirt_placement.config import HaSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.assignment import catalogue
from ovirt_placement.planning.assignment.catalogue import StrategyName
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
