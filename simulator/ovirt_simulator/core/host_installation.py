"""Hosts that come: added, installed, and up after a while; hosts that are changed or installed once more.

Source: the engine's AddVdsCommand, UpdateVdsCommand and InstallVdsInternalCommand. What a real host would say
of itself is as the hosts are that its cluster has.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict, replace

from . import host_refusals
from .backend import Backend
from .entities import ADMIN, SYSTEM, Caller, Host, Job, Record
from .event_codes import EventCode, EventType
from .maintenance import Maintenance
from .rejections import existing

_CAN_BE_INSTALLED = {"maintenance", "non_operational", "install_failed"}
_UNDER_WAY = {"installing", "reboot", "initializing"}
#: What a host has of whose like the state has none.
_CORES, _MEMORY_MB = 16, 65536


class HostEdit(Record, frozen=True):
    """What a client says of a host; what is None stays as it is."""

    name: str | None = None
    address: str | None = None
    comment: str | None = None
    power_management: bool | None = None
    automatic_power_management: bool | None = None
    kdump_detection: bool | None = None

    @property
    def given(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


class Installing(Record, frozen=True):
    """How a host is to be installed."""

    #: Whether there is a password, or a key that needs none.
    authenticated: bool
    #: Whether it comes up in the end, else it is in maintenance; and whether it restarts before.
    activate: bool = True
    reboot: bool = True


class HostInstallation:
    """Commands on hosts; all raise `Rejected` or `NotFound`."""

    def __init__(self, backend: Backend, maintenance: Maintenance) -> None:
        self._backend = backend
        self._state = backend.state
        self._maintenance = maintenance

    def add(self, cluster_id: str, edit: HostEdit, how: Installing, *, caller: Caller = ADMIN) -> Host:
        """Add a host and begin to install it; it knows nothing of itself until it is up."""
        with self._backend.lock:
            existing(self._state.clusters, cluster_id)
            plain = Host(
                id=self._backend.new_id(),
                name="",
                cluster=cluster_id,
                status="installing",
                memory_mb=0,
                free_mb=0,
                cpu_percent=0.0,
                cores=0,
            )
            host = replace(plain, **edit.given)
            self._check(plain, host, "add")
            if any(known.address == host.address for known in self._state.hosts.values()):
                raise host_refusals.host_address_used()
            if not how.authenticated:
                raise host_refusals.host_without_password()
            self._state.put(self._state.hosts, host)
            self._alert(host, caller)
            self._log(EventCode.USER_ADD_VDS, host, caller)
            self._install(host, how, self._backend.jobs.start(f"Adding new Host {host.name}", caller))
            return host

    def edit(self, host_id: str, edit: HostEdit, *, caller: Caller = ADMIN) -> Host:
        """Change what the edit names, whatever the host's status; the address stays."""
        with self._backend.lock:
            before = self._known(host_id)
            host = replace(before, **edit.given)
            if host.address != before.address and host.status != "install_failed":
                raise host_refusals.host_address_changed()
            self._check(before, host, "edit")
            if host.kdump_detection != before.kdump_detection:
                host = replace(host, reinstallation_required=True)
            self._state.put(self._state.hosts, host)
            self._alert(host, caller)
            self._log(EventCode.USER_UPDATE_VDS, host, caller)
            return host

    def install(self, host_id: str, how: Installing, *, caller: Caller = ADMIN) -> Job:
        """Install a host that is in maintenance or never came up once more."""
        with self._backend.lock:
            host = self._known(host_id)
            if host.status not in _CAN_BE_INSTALLED:
                raise host_refusals.host_status_for_installation()
            if not how.authenticated:
                raise host_refusals.host_without_password()
            self._alert(host, caller)
            self._log(EventCode.USER_UPDATE_VDS, host, caller)
            job = self._backend.jobs.start(f"Installing Host {host.name}", caller)
            self._install(host, how, job)
            return job

    def resume(self) -> None:
        """Go on with what a state file found under way."""
        for host in tuple(self._state.hosts.values()):
            if host.status in _UNDER_WAY:
                job = self._backend.jobs.start(f"Installing Host {host.name}", SYSTEM)
                self._install(host, Installing(authenticated=True), job)

    def _check(self, before: Host, host: Host, action: str) -> None:
        used = {known.name.lower() for known in self._state.hosts.values() if known.id != host.id}
        if host.name.lower() != before.name.lower() and host.name.lower() in used:
            raise host_refusals.host_name_used(action)
        agents = self._state.fence_agents.values()
        if host.power_management and not any(agent.host == host.id for agent in agents):
            raise host_refusals.power_management_without_agent(action)

    def _install(self, host: Host, how: Installing, job: Job) -> None:
        self._set_status(host.id, "installing")
        self._log(EventCode.VDS_ANSIBLE_INSTALL_STARTED, host, SYSTEM)
        seconds = self._backend.settings.host_installation_seconds
        self._backend.after(seconds, lambda: self._installed(host.id, how, job))

    def _installed(self, host_id: str, how: Installing, job: Job) -> None:
        host = self._state.hosts.get(host_id)
        if host is None or host.status != "installing":
            self._backend.jobs.end(job, "aborted")
            return
        host = replace(self._with_figures(host), reinstallation_required=False, booted=self._backend.now)
        self._state.put_installed(host)
        self._log(EventCode.VDS_INSTALL, host, SYSTEM)
        if not how.activate:
            self._set_status(host_id, "maintenance")
            self._backend.jobs.end(job, "finished")
            return
        self._set_status(host_id, "reboot" if how.reboot else "initializing")
        boot = self._backend.settings.host_boot_seconds if how.reboot else 0.0
        self._backend.after(boot, lambda: self._booted(host_id, job))

    def _booted(self, host_id: str, job: Job) -> None:
        host = self._state.hosts.get(host_id)
        if host is None or host.status not in {"reboot", "initializing"}:
            self._backend.jobs.end(job, "aborted")
            return
        self._maintenance.activate(host_id, job)

    def _with_figures(self, host: Host) -> Host:
        """Give the host as big as others of its cluster, or as any other; one that has figures keeps them."""
        if host.memory_mb:
            return host
        others = [known for known in self._state.hosts.values() if known.memory_mb]
        of_cluster = [known for known in others if known.cluster == host.cluster]
        like = next(iter(of_cluster or others), None)
        memory = _MEMORY_MB if like is None else like.memory_mb
        free = memory * self._state.clusters[host.cluster].memory_overcommit_percent // 100
        if like is None:
            return replace(host, cores=_CORES, memory_mb=memory, free_mb=free)
        return replace(host, cores=like.cores, threads=like.threads, memory_mb=memory, free_mb=free)

    def _set_status(self, host_id: str, status: str) -> None:
        self._state.put(self._state.hosts, replace(self._state.hosts[host_id], status=status))

    def _alert(self, host: Host, caller: Caller) -> None:
        if not host.power_management:
            self._log(EventCode.VDS_ALERT_FENCE_IS_NOT_CONFIGURED, host, caller)

    def _log(self, code: EventType, host: Host, caller: Caller) -> None:
        self._backend.audit_log.log(code, caller, host=host)

    def _known(self, host_id: str) -> Host:
        return existing(self._state.hosts, host_id)
