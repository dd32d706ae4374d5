"""What clients add to the log: events, and jobs.

Source: the engine's AddExternalEventCommand, ExternalEventCommandBase, AddExternalJobCommand and
EndExternalJobCommand.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from . import rejections
from .audit_log import template_of
from .backend import Backend, Commands, locked
from .entities import ADMIN, Caller, Cluster, DataCenter, Event, Host, Job, Reference, Vm
from .events import EventCode
from .rejections import existing

_SILENCE = timedelta(seconds=5)
#: The engine's MaxAuditLogMessageLength.
LONGEST_DESCRIPTION = 10000

SEVERITIES = {
    "normal": EventCode.EXTERNAL_EVENT_NORMAL,
    "warning": EventCode.EXTERNAL_EVENT_WARNING,
    "error": EventCode.EXTERNAL_EVENT_ERROR,
    "alert": EventCode.EXTERNAL_ALERT,
}


class ExternalEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What a request says; the REST face has checked that the mandatory fields are there."""

    origin: str
    #: normal, warning, error or alert.
    severity: str
    custom_id: int
    description: str
    cluster: str | None = None
    data_center: str | None = None
    host: str | None = None
    vm: str | None = None
    #: Whom it is about: the author of an event is not shown.
    user: str | None = None
    #: Seconds in which an event like this is logged only once.
    flood_rate: int = 30
    custom_data: str | None = None
    time: datetime | None = None
    #: Stands in place of the request's own.
    correlation_id: str | None = None


class EventCommands(Commands):
    """Commands on events; `add` raises `Rejected`."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._logged_in: dict[str, datetime] = {}

    @locked
    def log_in(self, source: str, session: str, *, caller: Caller = ADMIN) -> None:
        """Log that a user has logged in: `source` is an address, `session` what the engine calls it.

        Source: the engine's CreateUserSessionCommand; it reports the same user once in five seconds.
        """
        now, before = self._backend.now, self._logged_in.get(caller.user)
        if before is not None and now - before < _SILENCE:
            return
        self._logged_in[caller.user] = now
        self._log(EventCode.USER_VDC_LOGIN, caller, source=source, session=session)

    @locked
    def add(self, event: ExternalEvent, *, caller: Caller = ADMIN) -> Event:
        """Log an external event; origin and custom id are unique for ever, dismissed ones included."""
        self._check(event)
        now = self._backend.now
        return self._backend.audit_log.add(
            Event(
                id=0,
                code=SEVERITIES[event.severity].number,
                severity=event.severity,
                time=event.time or now,
                visible=now,
                description=event.description[:LONGEST_DESCRIPTION],
                correlation_id=event.correlation_id or caller.correlation_id,
                origin=event.origin,
                custom_id=event.custom_id,
                custom_data=event.custom_data,
                flood_rate=event.flood_rate,
                user=None if event.user is None else Reference(id=event.user),
                **self._subjects(event),
            ),
            prompt=True,
        )

    def _subjects(self, event: ExternalEvent) -> dict[str, Any]:
        """Give what the event is about: of a VM also its host and cluster. What is not there is left out."""
        vm = self._state.vms.get(event.vm or "")
        host, cluster = (None, None) if vm is None else (vm.host, vm.cluster)
        return {
            "vm": _reference(self._state.vms, event.vm),
            "host": _reference(self._state.hosts, event.host or host),
            "cluster": _reference(self._state.clusters, event.cluster or cluster),
            "template": None if vm is None else template_of(vm),
            "data_center": _reference(self._state.data_centers, event.data_center),
        }

    @locked
    def remove(self, event_id: str, *, caller: Caller = ADMIN) -> None:
        """Dismiss an event that shows; no event reports it."""
        self._backend.audit_log.dismiss(int(event_id))

    def _check(self, event: ExternalEvent) -> None:
        if event.origin.lower() == "ovirt":
            raise rejections.bad_parameters(
                "Cannot add External Event. Illegal Origin for External Event : oVirt"
            )
        if self._backend.audit_log.find_external(event.origin, event.custom_id) is not None:
            raise rejections.bad_parameters(
                "=Cannot add External Event. External Event with this custom id already exists."
            )


def _reference(
    table: Mapping[str, Vm] | Mapping[str, Host] | Mapping[str, Cluster] | Mapping[str, DataCenter],
    entity_id: str | None,
) -> Reference | None:
    found = table.get(entity_id or "")
    return None if found is None else Reference(id=found.id, name=found.name)


class JobCommands:
    """Commands on external jobs."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._jobs = backend.jobs

    def add(self, description: str, *, caller: Caller = ADMIN) -> Job:
        """Open a job."""
        with self._backend.lock:
            job = replace(self._jobs.start(description, caller), external=True)
            self._jobs.by_id[job.id] = job
            words = {"description": description}
            self._backend.audit_log.log(EventCode.USER_ADD_EXTERNAL_JOB, caller, words=words)
            return job

    def end(self, job_id: str, *, success: bool) -> None:
        """Close a job; raises `NotFound`."""
        with self._backend.lock:
            self._jobs.end(existing(self._jobs.by_id, job_id), "finished" if success else "failed")
