"""What one can do with a VM: add, edit, start, migrate, and what ends or restarts it.

Source: the engine's UpdateVmCommand, ChangeVMClusterCommand, ChangeVmClusterValidator, StopVmCommandBase,
RebootVmCommand, ResetVmCommand and VMStatus.
"""

from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from ovirt_placement.model import Nic
from ovirt_simulator.core import messages
from ovirt_simulator.core.backend import Backend, Commands, locked
from ovirt_simulator.core.commands.migrations import Migrations, Order
from ovirt_simulator.core.commands.outages import Restarts
from ovirt_simulator.core.entities import ADMIN, SYSTEM, Caller, Job, Vm
from ovirt_simulator.core.messages import EventCode, EventType, Rejected, existing
from ovirt_simulator.core.state import State
from ovirt_simulator.scheduler.filters import Request

#: The engine's VmPriorityMaxValue.
HIGHEST_PRIORITY = 100


def check(state: State, before: Vm, vm: Vm, action: str) -> None:
    """Refuse what the engine's UpdateVmCommand refuses."""
    taken = {known.name for known in state.vms.values() if known.id != vm.id}
    if before.name != vm.name and vm.name in taken:
        used = "The VM name is already in use, please choose a unique name and try again."
        raise messages.cannot(action, used)
    for host_id in vm.pinned_hosts if before.pinned_hosts != vm.pinned_hosts else ():
        host = state.hosts.get(host_id)
        if host is None:
            raise messages.invalid_host(action)
        if host.cluster != vm.cluster:
            raise messages.bad_parameters(
                f"Cannot {action} VM. Specific Host(s) selected that are not in the same cluster as the VM."
            )
    if vm.guaranteed_mb > vm.memory_mb:
        raise messages.bad_parameters(
            f"Cannot {action} VM. Physical Memory Guaranteed cannot exceed Memory Size."
        )
    if not 0 <= vm.ha_priority <= HIGHEST_PRIORITY:
        raise messages.bad_parameters(
            f"Cannot {action} VM. Illegal priority value: it must be between 0 and {HIGHEST_PRIORITY}."
        )


def leave_groups_and_labels(state: State, vm_id: str) -> None:
    """Take a VM out of all affinity groups and labels, which no event reports."""
    tables: tuple[dict[str, Any], ...] = (state.groups, state.labels)
    for table in tables:
        for one in tuple(table.values()):
            if vm_id in one.vms:
                left = tuple(member for member in one.vms if member != vm_id)
                state.put(table, replace(one, vms=left))


_STOPPABLE = {"up", "powering_down", "powering_up", "reboot_in_progress", "migrating"}
_STOPPABLE |= {"wait_for_launch", "paused", "not_responding", "suspended"}
_AT_WORK = "VM is in saving/restoring state.\n-Please try again when the VM is either up or down."
_UNSTOPPABLE = dict.fromkeys(("saving_state", "restoring_state"), _AT_WORK)
#: What a VM of the template Blank has.
_BLANK_MB = 1024
_DOWN = {"down", "suspended"}


class VmCommands(Commands):
    """Commands on VMs. Each returns at once with its job; what it started shows over simulated time.

    All raise `Rejected` as the engine refuses. `start` and `migrate` wait for the external scheduler.
    """

    def __init__(self, backend: Backend, migrations: Migrations, restarts: Restarts) -> None:
        super().__init__(backend)
        self._restarts = restarts
        self._migrations = migrations
        self._running, self._scheduler = migrations.running, migrations.scheduler

    @locked
    def create(self, cluster: str, *, caller: Caller = ADMIN, **fields: Any) -> Vm:
        """Create a VM that is down, of the template Blank but for what is named."""
        existing(self._state.clusters, cluster)
        blank = Vm(
            id=self._backend.new_id(),
            name="",
            cluster=cluster,
            host=None,
            status="down",
            memory_mb=_BLANK_MB,
            guaranteed_mb=_BLANK_MB,
            vcpus=1,
            usage_mem_percent=None,
            usage_cpu_percent=None,
            ha=False,
            migratable=True,
            hosted_engine=False,
        )
        vm = replace(blank, **fields)
        check(self._state, blank, vm, "add")
        self._state.put_vm(vm)
        self._log(EventCode.USER_ADD_VM, caller, vm=vm)
        return vm

    @locked
    def remove(self, vm_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a VM that is down, with its permissions, from affinity groups and labels as well."""
        vm = self._unlocked_vm(vm_id, "remove")
        if vm.status != "down":
            raise messages.conflict(
                "Cannot remove VM that its state is not down.\n-Please stop the VM first."
            )
        for permission in tuple(self._state.permissions.values()):
            if permission.vm == vm.id:
                self._state.drop(self._state.permissions, permission.id)
        leave_groups_and_labels(self._state, vm.id)
        self._running.forget(vm.id)
        self._state.drop_vm(vm.id)
        self._jobs.note(f"Removing VM {vm.name} from system", caller)
        self._log(EventCode.USER_REMOVE_VM_FINISHED, caller, vm=vm)

    @locked
    def edit(self, vm_id: str, *, caller: Caller = ADMIN, **changes: Any) -> Vm:
        """Change fields of the VM, at once."""
        before = self._unlocked_vm(vm_id, "edit")
        vm = replace(before, **changes)
        check(self._state, before, vm, "edit")
        self._state.put_vm(vm)
        self._jobs.note(f"Editing VM {vm.name} properties", caller)
        self._log(EventCode.USER_UPDATE_VM, caller, vm=vm)
        return vm

    @locked
    def change_cluster(self, vm_id: str, cluster_id: str, *, caller: Caller = ADMIN) -> Vm:
        """Move a VM that is down to another cluster, at once; its affinity groups and labels lose it."""
        vm = self._unlocked_vm(vm_id, "edit")
        if cluster_id == vm.cluster:
            return vm
        if vm.status != "down":
            raise messages.conflict("Cannot update a VM in this status. Try stopping the VM first.")
        target = self._state.clusters.get(cluster_id)
        if target is None:
            raise messages.bad_parameters("Cannot edit VM Cluster. Cluster ID is not valid.")
        if target.data_center != self._state.clusters[vm.cluster].data_center:
            raise messages.conflict("VM can be moved only to a Cluster in the same Data Center.")
        # The first CPU profile there: the state file knows a cluster's profiles by its VMs alone.
        profiles = {one.cpu_profile for one in self._state.vms.values() if one.cluster == cluster_id}
        profile = min(filter(None, profiles), default=None)
        moved = replace(vm, cluster=cluster_id, pinned_hosts=(), cpu_profile=profile)
        self._state.put_vm(moved)
        leave_groups_and_labels(self._state, vm.id)
        cleared = EventCode.USER_UPDATE_VM_CLUSTER_DEFAULT_HOST_CLEARED
        self._log(cleared if vm.pinned_hosts else EventCode.USER_UPDATE_VM, caller, vm=moved)
        return moved

    @locked
    def add_nic(
        self, vm_id: str, *, name: str, vnic_profile: str | None = None, caller: Caller = ADMIN
    ) -> Nic:
        """Add a NIC, whether the VM runs or not."""
        vm, nic = existing(self._state.vms, vm_id), Nic(self._backend.new_id(), name, vnic_profile)
        self._state.put_vm(replace(vm, nics=(*vm.nics, nic)))
        self._log(EventCode.NETWORK_ADD_VM_INTERFACE, caller, vm=vm, nic=nic.name)
        return nic

    def start(self, vm_id: str, *, host_id: str | None = None, caller: Caller = ADMIN) -> Job:
        """Start a VM that is down or suspended, on this host only if one is named."""
        with self._backend.lock:
            vm = self._unlocked_vm(vm_id, "run")
            request = self._validated_start(vm, host_id, caller)
            held = self._backend.vm_locks[vm_id] = messages.Message(
                f"Cannot run VM. Related operation on VM {vm.name} is currently in progress."
                " Please try again later.",
                conflict=True,
            )
            job = self._jobs.start(f"Launching VM {vm.name}", caller)

        def launch(target: str) -> None:
            self._running.launch(vm_id, target, job, caller)
            self._log(EventCode.USER_STARTED_VM, caller, vm=self._state.vms[vm_id])

        with self._migrations.failing(EventCode.USER_FAILED_RUN_VM, vm, job, caller, {vm_id: held}):
            self._scheduler.schedule(request, launch)
        return job

    def migrate(self, vm_id: str, *, caller: Caller = ADMIN, **wanted: Any) -> Job:
        """Begin a migration as fields of `Order` say, to the host or where the scheduler says."""
        return self._migrations.carry_out(Order(vm_id=vm_id, caller=caller, **wanted))

    def migrate_by_system(self, vm_id: str, reason: str, hosts: Collection[str] = ()) -> Job:
        """Begin a migration that the engine itself wants, to one of the hosts, or any if none is named.

        The reason is the one that the event gives.
        """
        order = Order(vm_id=vm_id, hosts=frozenset(hosts), caller=SYSTEM, reason=reason)
        return self._migrations.carry_out(order)

    @locked
    def cancel_migration(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Stop a migration that the source still holds."""
        vm = self._vm(vm_id, "cancel migration of")
        if vm.engine_status != "MigratingFrom" or self._migrations.get(vm_id) is None:
            self._log(EventCode.VM_CANCEL_MIGRATION_FAILED, caller, vm=vm)
            raise messages.conflict("Cannot cancel migration for non migrating VM.")
        job = self._jobs.start(f"Canceling Migration of VM {vm.name}", caller)
        self._migrations.cancel(vm_id, caller)
        self._jobs.end(job, "finished")
        return job

    @locked
    def crash(self, vm_id: str) -> None:
        """Let the VM die, which no engine commands: it is down with an error, and restarts if it is HA."""
        vm = self._vm(vm_id, "crash")
        if not vm.runs:
            raise messages.cannot("crash", "VM is not running.")
        if (migration := self._migrations.get(vm_id)) is not None:
            self._migrations.abort(migration, "Lost connection with qemu process")
        self._log(EventCode.VM_DOWN_ERROR, SYSTEM, vm=vm, exit="Lost connection with qemu process")
        self._running.leave_host(vm_id, ended="failed")
        if vm.ha:
            self._log(EventCode.HA_VM_FAILED, SYSTEM, vm=self._vm(vm_id, "crash"))
        self._restarts.restart(vm_id)

    def _validated_start(self, vm: Vm, host_id: str | None, caller: Caller) -> Request:
        """Give the scheduler's request; a refusal is logged as event 54."""
        try:
            if vm.status not in _DOWN:
                raise messages.vm_status_illegal("run", vm.engine_status)
            if host_id is not None and host_id not in self._state.hosts:
                raise messages.invalid_host("run")
            whitelist = frozenset() if host_id is None else frozenset({host_id})
            request = Request(vm_ids=(vm.id,), whitelist=whitelist)
            self._scheduler.validate(request, "run")
        except Rejected as refusal:
            error = f" due to a failed validation: {refusal.detail}"
            self._log(EventCode.USER_FAILED_RUN_VM, caller, vm=vm, error=error)
            self._jobs.note(f"Launching VM {vm.name}", caller, "failed")
            raise
        return request

    def stop(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Power the VM off; one that is down stays so, which an event reports."""
        code = EventCode.USER_STOP_VM
        return self._end_run(vm_id, "stop", code, self._settings.stop_seconds, "Stopping", caller)

    def shutdown(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Ask the guest to shut down; one that is down stays so, which an event reports."""
        seconds = self._settings.shutdown_seconds
        code = EventCode.USER_INITIATED_SHUTDOWN_VM
        return self._end_run(vm_id, "shutdown", code, seconds, "Shutting down", caller)

    @locked
    def suspend(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Save the VM's memory and free its host."""
        vm = self._unlocked_vm(vm_id, "suspend")
        if vm.status in {"wait_for_launch", "not_responding"}:
            raise messages.vm_status_illegal("suspend", vm.engine_status)
        if vm.status != "up":
            raise messages.cannot("suspend", "VM is not up.")
        self._log(EventCode.USER_SUSPEND_VM, caller, vm=vm)
        job = self._jobs.start(f"Performing Hibernate action on VM {vm.name}", caller)
        self._running.suspend(vm_id, job, caller)
        return job

    @locked
    def _end_run(
        self, vm_id: str, action: str, code: EventType, seconds: float, description: str, caller: Caller
    ) -> Job:
        vm = self._vm(vm_id, action)  # no lock hinders it
        if vm.status == "down":
            code, skipped = EventCode.VM_ALREADY_IN_REQUESTED_STATUS, f"{action.capitalize()} VM"
            self._log(code, caller, vm=vm, status="Down", action=skipped)
            return self._jobs.note(f"{action.capitalize()} VM {vm.name}", caller)
        if vm.status not in _STOPPABLE:
            raise messages.cannot(action, _UNSTOPPABLE.get(vm.status, "VM is not running."))
        suspended = vm.status == "suspended"
        self._log(EventCode.USER_STOP_SUSPENDED_VM if suspended else code, caller, vm=vm)
        job = self._jobs.start(f"{description} VM {vm.name}", caller)
        if (migration := self._migrations.get(vm_id)) is not None:
            self._migrations.forget(migration, "failed")
        self._running.power_down(vm_id, seconds, job, caller)
        return job

    def _vm(self, vm_id: str, action: str) -> Vm:
        vm = self._state.vms.get(vm_id)
        if vm is None:
            raise messages.vm_not_found(action)
        return vm

    def _unlocked_vm(self, vm_id: str, action: str) -> Vm:
        vm = self._vm(vm_id, action)
        if vm_id in self._backend.vm_locks:
            held = self._backend.vm_locks[vm_id]
            raise Rejected(replace(held, text=held.text.replace("Cannot migrate", f"Cannot {action}")))
        return vm
