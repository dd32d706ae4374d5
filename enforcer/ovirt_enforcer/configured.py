"""What the configuration asks of plans, in the planner's own words."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.planning.choosing import catalogue
from ovirt_placement.planning.choosing.catalogue import StrategyName
from ovirt_placement.planning.problem.posing import Repair, Wishes

#: How long planning may take, in seconds, where the configuration does not say.
_SECONDS: Final = {StrategyName.OPTIMAL: 30.0}
_QUICK_SECONDS: Final = 5.0


def wishes(settings: EnforcerSettings, spared: Collection[str] = (), closed: Collection[str] = ()) -> Wishes:
    """What plans are to mend and to keep; groups in `spared` and hosts in `closed` are left alone for now."""
    return Wishes(
        repair=frozenset(map(Repair, settings.repair)),
        keys=settings.repair_placement_keys,
        memory_headroom=settings.memory_headroom_percent / 100,
        cpu_headroom=settings.cpu_headroom_percent / 100,
        spared=frozenset(spared),
        closed=frozenset(closed),
    )


def strategy_name(settings: EnforcerSettings) -> StrategyName:
    """The strategy that plans are made by."""
    return catalogue.DEFAULT if settings.strategy is None else StrategyName(settings.strategy)


def seconds(settings: EnforcerSettings) -> float:
    """How long a plan may take."""
    return settings.planning_seconds or _SECONDS.get(strategy_name(settings), _QUICK_SECONDS)
