"""How VMs come up, go down and are suspended over time."""

from dataclasses import dataclass
from zlib import crc32

from ovirt_simulator.core.backend import Action, Backend, Commands
from ovirt_simulator.core.entities import SYSTEM, Caller, Job, Vm
from ovirt_simulator.core.messages import EventCode, EventType


@dataclass
class Course:
    """What a VM is in the middle of. A new course ends the old one, whose actions then come to nothing."""

    _backend: Backend
    _vm_id: str
    job: Job | None
    is_over: bool = False

    def later(self, seconds: float, action: Action) -> None:
        """Do the next step, unless the course has ended by then, or the VM's host has crashed."""

        def step() -> None:
            state, failed = self._backend.state, self._backend.failed_hosts
            if not self.is_over and state.vms[self._vm_id].host not in failed:
                action()

        self._backend.after(seconds, step)

    def after_event(self, action: Action) -> None:
        """Change the state that the event just logged speaks of, unless the course has ended by then."""
        self._backend.after_event(lambda: None if self.is_over else action())


class Running(Commands):
    """Moves VMs through their statuses; the caller holds the lock."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._courses: dict[str, Course] = {}

    def launch(self, vm_id: str, host_id: str, job: Job | None, caller: Caller) -> None:
        """Bring a VM up on a host: it takes the host's memory now, and is up some time later."""
        vm = self._state.vms[vm_id]
        waiting = "restoring_state" if vm.status == "suspended" else "wait_for_launch"
        self._state.drop_pending(vm_id)
        self._change_vm(vm_id, status=waiting, host=host_id, migrating_to=None)
        self._continue_launch(vm_id, job, caller)

    def _continue_launch(self, vm_id: str, job: Job | None, caller: Caller) -> None:
        course, boot = self.begin(vm_id, job), self._settings.launch_seconds
        if self._state.vms[vm_id].status == "wait_for_launch":
            course.later(boot, lambda: self._change_vm(vm_id, status="powering_up"))
            boot += self._settings.boot_seconds

        def up() -> None:
            vm = self._state.vms[vm_id]
            restarted = caller == SYSTEM and vm.ha
            self._log(EventCode.VDS_INITIATED_RUN_VM if restarted else EventCode.USER_RUN_VM, caller, vm=vm)
            course.after_event(lambda: self._set_up(vm_id, course))

        course.later(boot, up)

    def power_down(self, vm_id: str, seconds: float, job: Job | None, caller: Caller) -> None:
        """Let a VM go down within these seconds; a suspended one is down at once."""
        course = self.begin(vm_id, job)
        if self._state.vms[vm_id].runs:
            self._change_vm(vm_id, status="powering_down")
            self._leave_later(vm_id, course, seconds, "down", EventCode.VM_DOWN, caller)
        else:
            self.leave_host(vm_id)

    def suspend(self, vm_id: str, job: Job | None, caller: Caller) -> None:
        course, seconds = self.begin(vm_id, job), self._settings.suspend_seconds
        self._change_vm(vm_id, status="saving_state")
        self._leave_later(vm_id, course, seconds, "suspended", EventCode.USER_SUSPEND_VM_OK, caller)

    def resume(self, vm: Vm) -> None:
        """Take a VM on that was found, or left, in the middle of something but a migration."""
        if vm.status in {"wait_for_launch", "powering_up", "restoring_state", "reboot_in_progress"}:
            self._continue_launch(vm.id, None, SYSTEM)
        elif vm.status == "powering_down":
            self.power_down(vm.id, self._settings.stop_seconds, None, SYSTEM)
        elif vm.status == "saving_state":
            self.suspend(vm.id, None, SYSTEM)

    def begin(self, vm_id: str, job: Job | None = None, *, ended: str = "finished") -> Course:
        """End what the VM is in the middle of (its job with this status), and begin something new."""
        if vm_id in self._courses:
            self._courses[vm_id].is_over = True
            self._jobs.end(self._courses[vm_id].job, ended)
        course = self._courses[vm_id] = Course(self._backend, vm_id, job)
        return course

    def forget(self, vm_id: str) -> None:
        """End what the VM is in the middle of: it is there no more."""
        self.begin(vm_id).is_over = True
        del self._courses[vm_id]

    def leave_host(self, vm_id: str, status: str = "down", *, ended: str = "finished") -> None:
        """Record that the VM is down or suspended; its host's memory is free, and its last job ended so."""
        self.begin(vm_id, ended=ended)
        self._state.drop_pending(vm_id)
        gone = {"host": None, "migrating_to": None, "handed_over": False, "started": None}
        self._change_vm(vm_id, status=status, **gone)

    def _leave_later(
        self, vm_id: str, course: Course, seconds: float, status: str, code: EventType, caller: Caller
    ) -> None:
        def leave() -> None:
            self._log(code, caller, vm=self._state.vms[vm_id], exit="")
            course.after_event(lambda: self.leave_host(vm_id, status))

        course.later(seconds, leave)

    def _set_up(self, vm_id: str, course: Course) -> None:
        """Let a VM run, with some memory and little CPU of which the state file does not say what it uses."""
        vm, dice = self._state.vms[vm_id], crc32(f"{self._backend.seed}/{vm_id}".encode())
        self._change_vm(
            vm_id,
            status="up",
            started=self._backend.now,
            usage_mem_percent=vm.usage_mem_percent or 20.0 + dice % 50,
            usage_cpu_percent=vm.usage_cpu_percent or 2.0 + dice // 50 % 20,
        )
        self._jobs.end(course.job, "finished")
