"""Events that clients add to the log.

Source: the engine's AddExternalEventCommand and ExternalEventCommandBase.
"""

from __future__ import annotations

from datetime import datetime

from ovirt_simulator.core import rejections
from ovirt_simulator.core.backend import Commands, locked
from ovirt_simulator.core.entities import ADMIN, Caller, Event, Reference
from ovirt_simulator.core.events import EventCode, reference, template_of

#: The engine's MaxAuditLogMessageLength.
LONGEST_DESCRIPTION = 10000

SEVERITIES = {
    "normal": EventCode.EXTERNAL_EVENT_NORMAL,
    "warning": EventCode.EXTERNAL_EVENT_WARNING,
    "error": EventCode.EXTERNAL_EVENT_ERROR,
    "alert": EventCode.EXTERNAL_ALERT,
}


class EventCommands(Commands):
    """Commands on events; `add` raises `Rejected`."""

    @locked
    def add(
        self,
        *,
        origin: str,
        severity: str,
        custom_id: int,
        description: str,
        time: datetime | None = None,
        correlation_id: str | None = None,
        user: str | None = None,
        vm: str | None = None,
        host: str | None = None,
        cluster: str | None = None,
        data_center: str | None = None,
        caller: Caller = ADMIN,
    ) -> Event:
        """Log an external event; origin and custom id are unique for ever.

        Of a VM that it is about also its host and cluster are; what is not there is left out. `user` is whom
        it is about: the author is not shown.
        """
        self._check(origin, custom_id)
        state, now = self._state, self._backend.now
        about = state.vms.get(vm or "")
        if about is not None:
            host, cluster = host or about.host, cluster or about.cluster
        return self._backend.audit_log.add(
            Event(
                id=0,
                code=SEVERITIES[severity].number,
                severity=severity,
                time=time or now,
                visible=now,
                description=description[:LONGEST_DESCRIPTION],
                correlation_id=correlation_id or caller.correlation_id,
                origin=origin,
                custom_id=custom_id,
                user=None if user is None else Reference(id=user),
                vm=reference(about),
                host=reference(state.hosts.get(host or "")),
                cluster=reference(state.clusters.get(cluster or "")),
                data_center=reference(state.data_centers.get(data_center or "")),
                template=None if about is None else template_of(about),
            ),
            prompt=True,
        )

    def _check(self, origin: str, custom_id: int) -> None:
        if origin.lower() == "ovirt":
            raise rejections.bad_parameters(
                "Cannot add External Event. Illegal Origin for External Event : oVirt"
            )
        if self._backend.audit_log.has_external(origin, custom_id):
            raise rejections.bad_parameters(
                "=Cannot add External Event. External Event with this custom id already exists."
            )
