"""What can be wrong between engine and proxy: units that one does not know as the other does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ovirt_placement.answers.doctor.finding import Finding
from ovirt_placement.answers.document import utc_text
from ovirt_placement.answers.policy_units import usual_units
from ovirt_placement.answers.status.proxy import NoDiscovery, discover
from ovirt_placement.engine.event_codes import EventCode
from ovirt_placement.engine.parsing.policies import PolicyUnit
from ovirt_placement.engine.reading.events import EngineEvent
from ovirt_service.addresses import redacted, shown

#: The engine could not reach the proxy.
UNREACHABLE = EventCode.FAILED_TO_CONNECT_TO_SCHEDULER_PROXY
#: The engine has started: the first is written by its notifier alone, the other where it enforces affinity
#: groups.
STARTED = (EventCode.VDC_START, EventCode.AFFINITY_RULES_ENFORCEMENT_MANAGER_START)

_LATELY_SECONDS = 600.0

_RESTART = "systemctl restart ovirt-engine: it asks the proxy for its units only when it starts"
_SWITCH_ON = (
    "engine-config -s ExternalSchedulerEnabled=true, check engine-config -g ExternalSchedulerServiceURL,"
    f" start ovirt-scheduler-proxy, then {_RESTART}"
)


def examine_units(
    units: Mapping[str, PolicyUnit], events: Sequence[EngineEvent], answered: float | None = None
) -> Iterator[Finding]:
    """Look whether the engine knows our units and has them enabled.

    `answered` is when the proxy last answered the engine's discovery, as far as it says so.
    """
    known = {(unit.type, unit.name): unit for unit in units.values() if not unit.internal}
    usual = [(rule.kind, rule.name) for rule in usual_units()]
    missing = [name for kind, name in usual if (kind, name) not in known]
    disabled = [name for key in usual if key in known and not known[key].enabled for name in key[1:]]
    lost = _newest(events, UNREACHABLE)
    if disabled and answered and answered > (lost or 0.0):
        yield Finding(
            kind="units_lost_at_start",
            what="the engine has disabled policy units that the proxy reported to it at"
            f" {utc_text(answered)}: {', '.join(disabled)}; it compared them before its own start was"
            " complete, and VMs are placed without them",
            remedy="systemctl restart ovirt-engine; the proxy prevents it, unless [calls] discovery_seconds"
            " is 0 there",
        )
        return
    if len(missing) + len(disabled) == len(usual):
        state = "knows none" if not disabled else "has disabled all"
        cause = _cause(lost, _newest(events, *STARTED))
        yield Finding(
            kind="no_units", what=f"the engine {state} of our policy units: {cause}", remedy=_SWITCH_ON
        )
        return
    if missing:
        yield Finding(
            kind="unknown_units",
            what=f"the engine does not know these policy units: {', '.join(missing)}",
            remedy="put our plugins into the proxy's folder (ovirt-scheduler-proxy check shows them),"
            f" then {_RESTART}",
        )
    if disabled:
        yield Finding(
            kind="disabled_units",
            what=f"the engine has disabled policy units that the proxy did not offer: {', '.join(disabled)}",
            remedy=f"see with ovirt-scheduler-proxy check why they do not load, then {_RESTART}",
        )


def examine_connection(events: Sequence[EngineEvent], now: float) -> Iterator[Finding]:
    """Look whether the engine missed the proxy lately."""
    lost = _newest(events, UNREACHABLE)
    if lost is not None and now - lost < _LATELY_SECONDS:
        yield Finding(
            kind="proxy_not_reached",
            what=f"the engine could not reach the proxy at {utc_text(lost)}: what it placed then it placed"
            " without our units",
            remedy="is ovirt-scheduler-proxy up, and ExternalSchedulerServiceURL right? The engine allows"
            " 100 ms to connect",
        )


def examine_proxy(url: str, units: Mapping[str, PolicyUnit]) -> Iterator[Finding]:
    """Ask the proxy for its units as the engine does, and compare. Raises `UserError` as `discover`."""
    try:
        offered = discover(url)
    except NoDiscovery as error:
        why = redacted(str(error), url)
        yield Finding(
            kind="proxy_not_reached",
            what=f"the proxy at {shown(url)} does not answer as a scheduler proxy: {why}",
            remedy="start ovirt-scheduler-proxy, or correct --proxy and ExternalSchedulerServiceURL",
        )
        return
    known = {(unit.type, unit.name): unit for unit in units.values() if not unit.internal}
    lacking = [rule.name for rule in usual_units() if (rule.kind, rule.name) not in offered]
    if lacking:
        yield Finding(
            kind="units_not_offered",
            what=f"the proxy at {shown(url)} does not offer: {', '.join(lacking)}",
            remedy="see with ovirt-scheduler-proxy check which plugins it loads, and why not these",
        )
    yield from _differing(offered, known)


def _differing(
    offered: Mapping[tuple[str, str], Mapping[str, str]], known: Mapping[tuple[str, str], PolicyUnit]
) -> Iterator[Finding]:
    """One finding for each way in which units differ: all of a kind have one cause."""
    unknown = [name for kind, name in offered if (kind, name) not in known]
    disabled = [name for kind, name in offered if (kind, name) in known and not known[kind, name].enabled]
    others = [
        f"{key[1]} ({', '.join(_differing_properties(known[key].properties, properties))})"
        for key, properties in offered.items()
        if key in known and known[key].enabled and known[key].properties != properties
    ]
    for what, units in (
        ("the engine does not know units that the proxy offers", unknown),
        ("the engine has disabled units that the proxy offers", disabled),
        ("units have other properties in the engine than in the proxy", others),
    ):
        if units:
            yield Finding(kind="unit_differs", what=f"{what}: {', '.join(units)}", remedy=_RESTART)


def _differing_properties(in_engine: Mapping[str, str], in_proxy: Mapping[str, str]) -> list[str]:
    return sorted({name for name, _ in in_engine.items() ^ in_proxy.items()})


def _newest(events: Sequence[EngineEvent], *codes: int) -> float | None:
    return max((event.time for event in events if event.code in codes), default=None)


def _cause(lost: float | None, started: float | None) -> str:
    """Why no unit is enabled; what an earlier start of the engine came upon explains nothing."""
    if lost is None or (started is not None and lost < started):
        return (
            "its external scheduler is off, the proxy had no plugins when the engine started, or the engine"
            " compared them before its own start was complete"
        )
    return f"it could not reach the proxy at {utc_text(lost)}: the URL is wrong, or the proxy was away"
