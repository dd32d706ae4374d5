"""What a rolling maintenance of hosts would be, for a person who asks; nothing is carried out."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ovirt_enforcer.on_request.question import Asked
from ovirt_placement.model.maintenance import Return
from ovirt_placement.planning.maintenance.data import MaintenanceOptions
from ovirt_placement.rules.failover.units import Domain

#: How long a host is thought to be out, in seconds.
HOST_SECONDS = MaintenanceOptions().host_seconds


def maintenance_options(
    found: Asked,
    hosts: Iterable[str],
    *,
    stopped: Collection[str],
    back: Return,
    at_once: int = 1,
    host_seconds: float = HOST_SECONDS,
    domains: tuple[Domain, ...] | None = None,
) -> MaintenanceOptions:
    """With what is held back while these hosts are emptied.

    `stopped` are ids of VMs that may be; `domains` replace those found.
    """
    held = found.frozen_while_emptying
    return MaintenanceOptions(
        at_once=at_once,
        back=back,
        host_seconds=host_seconds,
        stopped=frozenset(stopped),
        frozen=found.frozen if held is None else held(tuple(hosts)),
        refused=frozenset(found.left_out),
        closed=found.options.closed,
        domains=found.options.domains if domains is None else domains,
    )
