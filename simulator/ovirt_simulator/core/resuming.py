"""What a state file found under way goes on: starts, migrations, shutdowns, hosts that drain."""

from __future__ import annotations

from .backend import Backend
from .entities import SYSTEM
from .maintenance import Maintenance
from .migrations import Migrations
from .running import Running

_CAN_START = {"down", "suspended"}


def resume(backend: Backend, running: Running, migrations: Migrations, maintenance: Maintenance) -> None:
    """Take on every VM and host that is in the middle of something, and every start that is pending."""
    with backend.lock:
        for host in tuple(backend.state.hosts.values()):
            if host.status == "preparing_for_maintenance":
                job = backend.jobs.start(f"Moving Host {host.name} to Maintenance", SYSTEM)
                maintenance.begin(host.id, job, SYSTEM)
        for vm in tuple(backend.state.vms.values()):
            if vm.status == "migrating":
                migrations.resume(vm)
            else:
                running.resume(vm)
        for pending in tuple(backend.state.pending.values()):
            if backend.state.vms[pending.vm].status in _CAN_START:
                _launch_soon(backend, running, pending.vm, pending.host)
            else:
                backend.state.drop_pending(pending.vm)


def _launch_soon(backend: Backend, running: Running, vm_id: str, host_id: str) -> None:
    def launch() -> None:
        pending = backend.state.pending.get(vm_id)
        if pending is not None and backend.state.vms[vm_id].status in _CAN_START:
            running.launch(vm_id, host_id, None, SYSTEM)

    backend.after(backend.settings.launch_seconds, launch)
