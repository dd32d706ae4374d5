"""Adds an event of ours to the engine's log, where administrators look and notifications start."""

from __future__ import annotations

import binascii

from ovirtsdk4 import types

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineFault, EngineSetupError

#: By which the engine distinguishes our events from others'.
ORIGIN = "ovirt-placement"

_LARGEST_ID = 0x7FFFFFFF


def custom_id(*words: str) -> int:
    """Derive an event's number from what makes it the same event: the engine takes each only once, for ever.

    So words that name the day let the same event be reported again the next day, and not before.
    """
    return binascii.crc32("\0".join(words).encode()) & _LARGEST_ID


def add_event(
    connection: EngineConnection,
    *,
    number: int,
    severity: str,
    description: str,
    cluster: str | None = None,
    vm: str | None = None,
) -> bool:
    """Add an event; return whether it is new, false if the engine has one of this number already.

    It is shown with the cluster and the VM that it is about.

    Raises what `EngineConnection.get` raises.
    """
    event = types.Event(
        origin=ORIGIN,
        custom_id=number,
        severity=types.LogSeverity(severity),
        description=description,
        cluster=None if cluster is None else types.Cluster(id=cluster),
        vm=None if vm is None else types.Vm(id=vm),
    )
    try:
        with connection.session("/events") as sdk:
            sdk.system_service().events_service().add(event)
    except EngineFault as fault:
        if fault.code == 400 and "custom id" in fault.fault.detail:
            return False
        if fault.code == 403:
            raise EngineSetupError(
                f"{connection.settings.username} may not add events: it needs the permit"
                " inject_external_events (role ExternalEventsCreator)"
            ) from None
        raise
    return True
