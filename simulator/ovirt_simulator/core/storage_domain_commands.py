"""Storage domains: renamed, put into maintenance and activated again; a data center without one is not up.

Source: the engine's commands UpdateStorageDomain, DeactivateStorageDomain and ActivateStorageDomain.
"""

from __future__ import annotations

from msgspec.structs import replace

from . import storage_domains
from .backend import Backend
from .entities import ADMIN, Caller, Job, Vm
from .event_codes import EventCode, EventType
from .images import DiskImage
from .refusals import conflict
from .rejections import NotFound, Rejected
from .state import State
from .storage_domain import StorageDomain

_OFF = {"down", "suspended"}


def check_storage(state: State, vm: Vm) -> None:
    """Refuse to run a VM with a disk on a storage domain that is not active."""
    for domain in _domains_of(state, vm):
        if domain.status != "active":
            raise _status_illegal("run VM", domain)


class StorageDomainCommands:
    """Commands on storage domains; all raise `Rejected` or `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def edit(
        self, domain_id: str, name: str | None, description: str | None, *, caller: Caller = ADMIN
    ) -> StorageDomain:
        """Change the name and the description, where they are given."""
        with self._backend.lock:
            domain = self._known(domain_id)
            if name is not None and name != domain.name:
                if any(known.name == name for known in storage_domains.all_of(self._state)):
                    raise conflict(
                        "ACTION_TYPE_FAILED_STORAGE_DOMAIN_NAME_ALREADY_EXIST",
                        "Cannot edit Storage. The Storage Domain name is already in use.",
                    )
                domain = replace(domain, name=name)
            if description is not None:
                domain = replace(domain, description=description)
            self._state.put(self._state.storage_domains, domain)
            self._log(EventCode.USER_UPDATE_STORAGE_DOMAIN, domain, caller)
            return domain

    def deactivate(self, domain_id: str, *, caller: Caller = ADMIN) -> Job:
        """Put a domain into maintenance, which takes a while; no VM with a disk on it may run."""
        with self._backend.lock:
            domain = self._known(domain_id)
            if domain.status != "active":
                raise _status_illegal("deactivate Storage", domain)
            for vm in self._state.vms.values():
                if vm.status not in _OFF and domain in _domains_of(self._state, vm):
                    raise conflict(
                        "ACTION_TYPE_FAILED_DETECTED_ACTIVE_VMS",
                        'Cannot deactivate Storage. VMs in a state other than "Down" or "Suspended" were'
                        " detected.\n-Please ensure all VMs associated with this Storage Domain are stopped"
                        " and in the Down or Suspended state first.",
                    )
            self._set_status(domain, "preparing_for_maintenance")
            self._log(EventCode.USER_DEACTIVATED_STORAGE_DOMAIN, domain, caller)
            job = self._backend.jobs.start(f"Deactivating Storage Domain {domain.name}", caller)
            seconds = self._backend.settings.storage_deactivation_seconds
            self._backend.after(seconds, lambda: self._deactivated(domain_id, job))
            return job

    def activate(self, domain_id: str, *, caller: Caller = ADMIN) -> Job:
        """Bring a domain back from maintenance, at once."""
        with self._backend.lock:
            domain = self._known(domain_id)
            if domain.status != "maintenance":
                raise _status_illegal("activate Storage", domain)
            self._set_status(domain, "active")
            self._log(EventCode.USER_ACTIVATED_STORAGE_DOMAIN, domain, caller)
            job = self._backend.jobs.start(f"Activating Storage Domain {domain.name}", caller)
            self._backend.jobs.end(job, "finished")
            return job

    def _deactivated(self, domain_id: str, job: Job) -> None:
        self._set_status(self._known(domain_id), "maintenance")
        self._backend.jobs.end(job, "finished")

    def _set_status(self, domain: StorageDomain, status: str) -> None:
        """Change it, and let the data center follow: it is in maintenance when its last domain is."""
        self._state.put(self._state.storage_domains, replace(domain, status=status))
        center = self._state.data_centers[domain.data_center]
        statuses = {
            each.status for each in storage_domains.all_of(self._state) if each.data_center == center.id
        }
        now = "maintenance" if statuses == {"maintenance"} else "up"
        if now != center.status:
            self._state.put(self._state.data_centers, replace(center, status=now))

    def _known(self, domain_id: str) -> StorageDomain:
        for domain in storage_domains.all_of(self._state):
            if domain.id == domain_id:
                return domain
        raise NotFound(domain_id)

    def _log(self, code: EventType, domain: StorageDomain, caller: Caller) -> None:
        center = self._state.data_centers[domain.data_center]
        words = {"domain": domain.name, "data_center": center.name}
        self._backend.audit_log.log(code, caller, data_center=center, words=words)


def _domains_of(state: State, vm: Vm) -> list[StorageDomain]:
    center = state.clusters[vm.cluster].data_center
    known = [domain for domain in storage_domains.all_of(state) if domain.data_center == center]
    return [
        domain
        for disk in vm.disks
        for domain in storage_domains.of_disk(
            state.image(disk.id) or DiskImage(id=disk.id, name=disk.id), known
        )
    ]


def _status_illegal(doing: str, domain: StorageDomain) -> Rejected:
    status = "".join(word.capitalize() for word in domain.status.split("_"))
    return conflict(
        "ACTION_TYPE_FAILED_STORAGE_DOMAIN_STATUS_ILLEGAL2",
        f"Cannot {doing}. The relevant Storage Domain's status is {status}.",
    )
