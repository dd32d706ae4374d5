"""What one can do with a VM: add, edit, start, migrate, and what ends or restarts it."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import asdict, replace

from ovirt_placement import model

from ..scheduler.placing import Scheduler
from ..scheduler.request import Request
from . import ownership, refusals, vm_edit
from .backend import Backend
from .change_cluster_command import ChangeClusterCommand, leave_groups_and_labels
from .entities import ADMIN, SYSTEM, Caller, Job, Vm
from .event_codes import EventCode
from .migrate_command import MigrateCommand, Order
from .migrations import Migrations
from .power_commands import PowerCommands
from .rejections import Rejected, existing
from .restarts import Restarts
from .running import Running
from .vm_edit import VmEdit

#: What a VM of the template Blank has.
_BLANK_MB = 1024
_DOWN = {"down", "suspended"}


class VmCommands(PowerCommands):
    """Commands on VMs. Each returns at once with its job; what it started shows over simulated time.

    All raise `Rejected` as the engine refuses. `start` and `migrate` wait for the external scheduler.
    """

    def __init__(
        self,
        backend: Backend,
        running: Running,
        migrations: Migrations,
        restarts: Restarts,
        scheduler: Scheduler,
    ) -> None:
        super().__init__(backend, running, restarts)
        self._migrations = migrations
        self._scheduler = scheduler
        self._migrate = MigrateCommand(backend, migrations, scheduler)
        self._change_cluster = ChangeClusterCommand(backend)

    def add(self, vm: model.Vm, *, caller: Caller = ADMIN) -> Vm:
        """Create a VM that is down, at once; its name is unique (409)."""
        with self._backend.lock:
            if any(vm.name == known.name for known in self._state.vms.values()):
                raise refusals.vm_name_used("add")
            vm = replace(vm, host=None, status="down", migrating_to=None)
            created = Vm(**asdict(vm), created=self._backend.now)
            self._state.put_vm(created)
            ownership.grant(self._state, created)
            self._log(EventCode.USER_ADD_VM, created, caller)
            return created

    def create(self, cluster_id: str, edit: VmEdit, *, caller: Caller = ADMIN) -> Vm:
        """Create a VM that is down, of the template Blank but for what is named."""
        with self._backend.lock:
            existing(self._state.clusters, cluster_id)
            blank = Vm(
                id=self._backend.new_id(),
                name="",
                cluster=cluster_id,
                host=None,
                status="down",
                memory_mb=_BLANK_MB,
                guaranteed_mb=_BLANK_MB,
                usage_mem_percent=None,
                usage_cpu_percent=None,
                vcpus=1,
                ha=False,
                migratable=True,
                hosted_engine=False,
                created=self._backend.now,
            )
            vm = edit.applied(blank)
            vm_edit.check(self._state, blank, vm, "add")
            self._state.put_vm(vm)
            self._log(EventCode.USER_ADD_VM, vm, caller)
            return vm

    def remove(self, vm_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a VM that is down, with its permissions, from affinity groups and labels as well."""
        with self._backend.lock:
            vm = self._unlocked_vm(vm_id, "remove")
            if vm.status != "down":
                raise refusals.vm_not_down_for_removal()
            for permission in self._state.permissions_on(vm):
                self._state.drop(self._state.permissions, permission.id)
            leave_groups_and_labels(self._state, vm.id)
            self._running.forget(vm.id)
            self._state.drop_vm(vm.id)
            self._backend.jobs.note(f"Removing VM {vm.name} from system", caller)
            self._log(EventCode.USER_REMOVE_VM_FINISHED, vm, caller)

    def edit(self, vm_id: str, edit: VmEdit, *, caller: Caller = ADMIN) -> Vm:
        """Change what the edit names, at once."""
        with self._backend.lock:
            before = self._unlocked_vm(vm_id, "edit")
            vm = edit.applied(before)
            vm_edit.check(self._state, before, vm, "edit")
            self._state.put_vm(vm)
            self._backend.jobs.note(f"Editing VM {vm.name} properties", caller)
            self._log(EventCode.USER_UPDATE_VM, vm, caller)
            return vm

    def change_cluster(self, vm_id: str, cluster_id: str, *, caller: Caller = ADMIN) -> Vm:
        """Move a VM that is down to another cluster, at once; its affinity groups and labels lose it."""
        with self._backend.lock:
            return self._change_cluster.run(self._unlocked_vm(vm_id, "edit"), cluster_id, caller)

    def start(self, vm_id: str, *, host_id: str | None = None, caller: Caller = ADMIN) -> Job:
        """Start a VM that is down or suspended, on this host only if one is named."""
        with self._backend.lock:
            vm = self._unlocked_vm(vm_id, "run")
            request = self._validated_start(vm, host_id, caller)
            self._backend.vm_locks[vm_id] = refusals.vm_locked(vm.name)
            self._log(EventCode.USER_INITIATED_RUN_VM, vm, caller)
            job = self._backend.jobs.start(f"Launching VM {vm.name}", caller)
        try:
            self._scheduler.schedule(request, lambda target: self._launch(vm_id, target, job, caller))
        except Rejected:
            with self._backend.lock:
                self._log(EventCode.USER_FAILED_RUN_VM, vm, caller, {"error": ""})
                self._backend.jobs.end(job, "failed")
            raise
        finally:
            with self._backend.lock:
                del self._backend.vm_locks[vm_id]
        return job

    def migrate(
        self,
        vm_id: str,
        *,
        host_id: str | None = None,
        cluster_id: str | None = None,
        force: bool = False,
        closure: bool = False,
        caller: Caller = ADMIN,
    ) -> Job:
        """Begin a migration, to the host or where the scheduler says; `closure` takes hard peers along.

        `cluster_id` is what the action carried; it decides which refusal a target equal to the source gets.
        """
        return self._migrate.run(
            Order(
                vm_id=vm_id,
                host_id=host_id,
                cluster_id=cluster_id,
                force=force,
                closure=closure,
                caller=caller,
            )
        )

    def migrate_by_system(self, vm_id: str, reason: str, *, hosts: Collection[str] = ()) -> Job:
        """Begin a migration that the engine itself wants, to one of the hosts, or any if none is named.

        The reason is the one that the event gives.
        """
        order = Order(vm_id=vm_id, hosts=frozenset(hosts), caller=SYSTEM, reason=reason)
        return self._migrate.run(order)

    def cancel_migration(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Stop a migration that the source still holds."""
        with self._backend.lock:
            vm = self._vm(vm_id, "cancel migration of")
            if vm.engine_status != "MigratingFrom" or self._migrations.get(vm_id) is None:
                self._log(EventCode.VM_CANCEL_MIGRATION_FAILED, vm, caller)
                raise refusals.not_migrating()
            job = self._backend.jobs.start(f"Canceling Migration of VM {vm.name}", caller)
            self._migrations.cancel(vm_id, caller)
            self._backend.jobs.end(job, "finished")
            return job

    def crash(self, vm_id: str) -> None:
        """Let the VM die, which no engine commands: it is down with an error, and restarts if it is HA."""
        with self._backend.lock:
            vm = self._vm(vm_id, "crash")
            if not vm.runs:
                raise refusals.vm_not_running("crash")
            migration = self._migrations.get(vm_id)
            if migration is not None:
                self._migrations.abort(migration, "Lost connection with qemu process")
            words = {"exit": "Lost connection with qemu process"}
            self._log(EventCode.VM_DOWN_ERROR, vm, SYSTEM, words)
            self._running.set_down(vm_id, ended="failed")
            if vm.ha:
                self._log(EventCode.HA_VM_FAILED, self._vm(vm_id, "crash"), SYSTEM)
            self._restarts.restart(vm_id)

    def _validated_start(self, vm: Vm, host_id: str | None, caller: Caller) -> Request:
        """Give the scheduler's request; a refusal is logged as event 54."""
        try:
            if vm.runs:
                raise refusals.vm_running("run")
            if vm.status not in _DOWN:
                raise refusals.vm_status_illegal("run", vm.engine_status)
            if host_id is not None and host_id not in self._state.hosts:
                raise refusals.invalid_host("run")
            whitelist = frozenset() if host_id is None else frozenset({host_id})
            request = Request(vm_ids=(vm.id,), whitelist=whitelist)
            self._scheduler.validate(request, "run")
        except Rejected as refusal:
            words = {"error": f" due to a failed validation: {refusal.detail}"}
            self._log(EventCode.USER_FAILED_RUN_VM, vm, caller, words)
            raise
        return request

    def _launch(self, vm_id: str, host_id: str, job: Job, caller: Caller) -> None:
        self._running.launch(vm_id, host_id, job, caller)
        self._log(EventCode.USER_STARTED_VM, self._state.vms[vm_id], caller)
