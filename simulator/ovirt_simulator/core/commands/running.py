"""How VMs come up, go down and are suspended over time."""

from zlib import crc32

from ovirt_simulator.core.backend import Action, Backend, Commands
from ovirt_simulator.core.entities import SYSTEM, Caller, Job, Vm
from ovirt_simulator.core.messages import EventCode


class Course:
    """What a VM is in the middle of. A new course ends the old one, whose actions then come to nothing."""

    def __init__(self, backend: Backend, vm_id: str, job: Job | None) -> None:
        self._backend = backend
        self._vm_id = vm_id
        self.job = job
        self.is_over = False

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
        self.continue_launch(vm_id, job, caller)

    def continue_launch(self, vm_id: str, job: Job | None, caller: Caller) -> None:
        """Take a VM that waits for launch, or powers up, the rest of the way."""
        course = self.begin(vm_id, job)
        settings = self._backend.settings
        boot = settings.launch_seconds
        if self._state.vms[vm_id].status == "wait_for_launch":
            course.later(boot, lambda: self._change_vm(vm_id, status="powering_up"))
            boot += settings.boot_seconds
        course.later(boot, lambda: self._up(vm_id, course, caller))

    def power_down(self, vm_id: str, seconds: float, job: Job | None, caller: Caller) -> None:
        """Let a VM go down within these seconds; a suspended one is down at once."""
        course = self.begin(vm_id, job)
        if not self._state.vms[vm_id].runs:
            self.set_down(vm_id)
            return
        self._change_vm(vm_id, status="powering_down")
        course.later(seconds, lambda: self._down(vm_id, course, caller))

    def suspend(self, vm_id: str, job: Job | None, caller: Caller) -> None:
        course = self.begin(vm_id, job)
        self._change_vm(vm_id, status="saving_state")
        course.later(self._backend.settings.suspend_seconds, lambda: self._suspended(vm_id, course, caller))

    def resume(self, vm: Vm) -> None:
        """Take a VM on that was found, or left, in the middle of something but a migration."""
        if vm.status in {"wait_for_launch", "powering_up", "restoring_state", "reboot_in_progress"}:
            self.continue_launch(vm.id, None, SYSTEM)
        elif vm.status == "powering_down":
            self.power_down(vm.id, self._backend.settings.stop_seconds, None, SYSTEM)
        elif vm.status == "saving_state":
            self.suspend(vm.id, None, SYSTEM)

    def begin(self, vm_id: str, job: Job | None = None, *, ended: str = "finished") -> Course:
        """End what the VM is in the middle of (its job with this status), and begin something new."""
        if vm_id in self._courses:
            self._courses[vm_id].is_over = True
            self._backend.jobs.end(self._courses[vm_id].job, ended)
        course = self._courses[vm_id] = Course(self._backend, vm_id, job)
        return course

    def forget(self, vm_id: str) -> None:
        """End what the VM is in the middle of: it is there no more."""
        self.begin(vm_id).is_over = True
        del self._courses[vm_id]

    def set_down(self, vm_id: str, *, ended: str = "finished") -> None:
        """Record that the VM is down; its host's memory is free again, and its last job ended so."""
        self._leave_host(vm_id, "down", ended=ended)

    def _leave_host(self, vm_id: str, status: str, *, ended: str) -> None:
        self.begin(vm_id, ended=ended)
        self._state.drop_pending(vm_id)
        gone = {"host": None, "migrating_to": None, "handed_over": False, "started": None}
        self._change_vm(vm_id, status=status, **gone)

    def _up(self, vm_id: str, course: Course, caller: Caller) -> None:
        vm = self._state.vms[vm_id]
        restarted = caller == SYSTEM and vm.ha
        code = EventCode.VDS_INITIATED_RUN_VM if restarted else EventCode.USER_RUN_VM
        self._log(code, caller, vm=vm)
        course.after_event(lambda: self._set_up(vm_id, course))

    def _set_up(self, vm_id: str, course: Course) -> None:
        vm = self._state.vms[vm_id]
        self._change_vm(vm_id, status="up", started=self._backend.now, **self._usage(vm))
        self._backend.jobs.end(course.job, "finished")

    def _down(self, vm_id: str, course: Course, caller: Caller) -> None:
        self._log(EventCode.VM_DOWN, caller, vm=self._state.vms[vm_id], exit="")
        course.after_event(lambda: self.set_down(vm_id))

    def _suspended(self, vm_id: str, course: Course, caller: Caller) -> None:
        self._log(EventCode.USER_SUSPEND_VM_OK, caller, vm=self._state.vms[vm_id])
        course.after_event(lambda: self._leave_host(vm_id, "suspended", ended="finished"))

    def _usage(self, vm: Vm) -> dict[str, float]:
        """Give what a VM uses of which the state file does not say it: some of its memory, little CPU."""
        dice = crc32(f"{self._backend.seed}/{vm.id}".encode())
        return {
            "usage_mem_percent": vm.usage_mem_percent or 20.0 + dice % 50,
            "usage_cpu_percent": vm.usage_cpu_percent or 2.0 + dice // 50 % 20,
        }
