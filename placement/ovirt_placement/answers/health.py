"""Health in one word, with the reasons: what needs somebody now, and what needs a look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from ovirt_placement.answers.cluster_status import ClusterStatus
from ovirt_placement.answers.configured import summary
from ovirt_placement.answers.document import listed
from ovirt_placement.answers.enforcement import EnforcementRecord, degraded_by
from ovirt_placement.answers.local_proxy import NOT_THIS_USER, ProxyRecord
from ovirt_placement.lookups.called import UnmatchedName
from ovirt_placement.model.amounts import be, counted


class Health(StrEnum):
    """The worse of all that is known."""

    HEALTHY = "healthy"
    #: Hard rules are violated, or nothing repairs them for now.
    DEGRADED = "degraded"
    #: The engine does not answer, a command will not start, or HA VMs might not restart.
    UNHEALTHY = "unhealthy"


def judge(
    error: str | None,
    mistakes: Iterable[str],
    clusters: Iterable[ClusterStatus],
    enforcer: EnforcementRecord | None,
    proxy: ProxyRecord | None,
    rule_problems: int = 0,
    unmatched: Sequence[UnmatchedName] = (),
) -> tuple[Health, tuple[str, ...]]:
    """The health, and all reasons for it, the worst first; `error` is why nothing newer is known.

    "Healthy" promises: the engine answers, every highly available VM that should run does, on a host that
    answers, all would restart where a reservation asks for that, no hard rule is violated, and nothing that
    is configured is in vain or rests.
    """
    known = tuple(clusters)
    grave = tuple(_grave(error, mistakes, known))
    light = (*_light(known, enforcer, proxy), *_of_rules(rule_problems), *_of_names(unmatched))
    health = Health.UNHEALTHY if grave else Health.DEGRADED if light else Health.HEALTHY
    return health, (*grave, *light)


def _grave(error: str | None, mistakes: Iterable[str], clusters: Iterable[ClusterStatus]) -> Iterator[str]:
    if error is not None:
        yield error
    yield from (f"a command will not start: {mistake}" for mistake in mistakes)
    for one in clusters:
        yield from _lost(one)
        if one.disabled_units:
            yield f"cluster {one.cluster.name}: {disabled_text(one.disabled_units)} (ovirt-placement doctor)"
        if one.ha_reservation and one.ha_safe is False and not one.lost:
            yield f"cluster {one.cluster.name}: HA VMs would not all restart (ovirt-placement ha-check)"


def disabled_text(units: Sequence[str]) -> str:
    """What it means that the engine has disabled units of a policy."""
    they = "it" if len(units) == 1 else "them"
    return f"the engine has disabled {', '.join(units)} of its policy, and places VMs without {they}"


def _lost(one: ClusterStatus) -> Iterator[str]:
    """Highly available VMs that do not run, by whether a host would take them."""
    fates = {
        False: ("finds no host", "find no host"),
        True: ("does not run yet", "do not run yet"),
        None: ("may find no host", "may find no host"),
    }
    for could_start, (single, several) in fates.items():
        names = [lost.vm.name for lost in one.lost if lost.could_start is could_start]
        if names:
            vms = f"{counted(len(names), 'highly available VM')} {be(len(names))} down"
            fate = single if len(names) == 1 else several
            what = f"{vms} and {fate}: {listed(names)} (ovirt-placement why {names[0]})"
            yield f"cluster {one.cluster.name}: {what}"


def _of_rules(problems: int) -> Iterator[str]:
    if problems:
        mistakes = f"{problems} mistakes are" if problems > 1 else "a mistake is"
        yield f"{mistakes} in placement rules (ovirt-placement rules check)"


def _of_names(unmatched: Sequence[UnmatchedName]) -> Iterator[str]:
    """Those of rules are mistakes in rules."""
    if others := [one for one in unmatched if not one.in_rule]:
        what = "a name matches" if len(others) == 1 else f"{len(others)} names match"
        yield f"{what} nothing: {summary(others)}"


def _light(
    clusters: Iterable[ClusterStatus], enforcer: EnforcementRecord | None, proxy: ProxyRecord | None
) -> Iterator[str]:
    for one in clusters:
        if one.hard_violations:
            number = one.hard_violations
            yield f"cluster {one.cluster.name}: {number} hard rule{'s are' if number > 1 else ' is'} violated"
        if one.hard_violations and one.upgrade:
            yield f"cluster {one.cluster.name}: {one.upgrade}: nothing is migrated until that is over"
        if one.doubt:
            yield f"cluster {one.cluster.name}: no verdict, and nothing is planned: {one.doubt}"
        elif one.ha_reservation and one.ha_safe is None:
            yield f"cluster {one.cluster.name}: not all failures of hosts could be judged"
    if proxy is not None and proxy.error not in (None, NOT_THIS_USER):
        yield "the proxy does not answer" if proxy.url else "the proxy's configuration cannot be read"
    if enforcer is not None:
        yield from degraded_by(enforcer)
