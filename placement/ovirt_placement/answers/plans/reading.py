"""Reads plans back from what `ovirt-enforcer plan --json` has printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ovirt_placement.planning.plan import Plan, Remaining, Step
from ovirt_service.errors import UserError


class NoPlan(UserError):
    """A document is not of a plan, or not as it was printed; the text says in which way."""


def plan_of(document: Mapping[str, Any]) -> Plan:
    """The plan of one cluster. Raises `NoPlan`, also if its steps were changed since it was printed."""
    try:
        plan = Plan(
            cluster=document["cluster"]["id"],
            strategy=document["strategy"],
            seed=document["seed"],
            steps=tuple(map(_step, document["steps"])),
            remaining=tuple(map(_remaining, document["remaining"])),
        )
        written = document["id"]
    except (KeyError, TypeError, IndexError) as error:
        raise NoPlan(f"it is not a plan as `ovirt-enforcer plan --json` prints it: {error!r}") from None
    if plan.id != written:
        raise NoPlan(f"plan {written}: its steps are not those that it was printed with")
    return plan


def steps_of(documents: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    """The steps of a plan, as they are written down. Raises `NoPlan`."""
    try:
        return tuple(map(_step, documents))
    except (KeyError, TypeError, IndexError) as error:
        raise NoPlan(f"these are not the steps of a plan: {error!r}") from None


def _step(document: Mapping[str, Any]) -> Step:
    return Step(
        vms=tuple(vm["id"] for vm in document["vms"]),
        sources=tuple(vm["from"]["id"] for vm in document["vms"]),
        target=document["to"]["id"],
        groups=_ids(document["groups"]),
        repairs=_ids(document["repairs"]),
        after=tuple(document["after"]),
        seconds=document["seconds"],
        reserves=document["reserves"],
    )


def _remaining(document: Mapping[str, Any]) -> Remaining:
    return Remaining(
        groups=_ids(document["groups"]),
        family=document["family"],
        asks=document["asks"],
        hard=document["hard"],
        vms=_ids(document["vms"]),
        obstacles=(),  # they were of another time
    )


def _ids(documents: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(one["id"] for one in documents)
