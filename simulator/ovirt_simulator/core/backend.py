"""What all commands and queries share: the lock, the database, the clock, the audit log, the dice."""

import random
import threading
import uuid
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_simulator.core.entities import Caller, Cluster, Event, Host, Vm
from ovirt_simulator.core.events import Action, AuditLog, EventType, Jobs, Timeline, reference, template_of
from ovirt_simulator.core.rejections import Message
from ovirt_simulator.core.settings import Faults, Settings
from ovirt_simulator.core.state import State

Command = TypeVar("Command", bound=Callable[..., Any])


class Backend:
    """The shared parts of one engine.

    `lock` guards everything else here. It is never held while the external scheduler is asked, so that what
    the scheduler's plugins read from the engine meanwhile is answered.
    """

    def __init__(
        self, *, clock: datetime, seed: int, settings: Settings, background: Callable[[Action], object]
    ) -> None:
        self.lock = threading.RLock()
        self.settings = settings
        self.random = random.Random(seed)  # noqa: S311 - dice, not secrets
        self.seed = seed
        self.state = State()
        self.timeline = Timeline(clock)
        self.audit_log = AuditLog(self.timeline, self.random, settings)
        self.jobs = Jobs(self.timeline, self.random)
        self.faults = Faults()
        #: The message that a command meets whose VM another command holds, by VM id.
        self.vm_locks: dict[str, Message] = {}
        #: Ids of hosts that have crashed, whether the engine knows it yet or not.
        self.failed_hosts: set[str] = set()
        self._background = background
        self._snapshot: tuple[int, Snapshot] | None = None

    def unlock(self, vm_id: str, held: Message) -> None:
        """Let go of a VM, unless another command holds it by now."""
        if self.vm_locks.get(vm_id) is held:
            del self.vm_locks[vm_id]

    @property
    def now(self) -> datetime:
        return self.timeline.now

    def new_id(self) -> str:
        """Draw an id for something new; the same in every run with the same seed and commands."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def live_snapshot(self) -> Snapshot:
        """Give the present state as the scheduler sees it; the same object until something changes."""
        if self._snapshot is None or self._snapshot[0] != self.state.revision:
            self._snapshot = self.state.revision, self.state.live_snapshot()
        return self._snapshot[1]

    def after(self, seconds: float, action: Action) -> None:
        """Run the action under the lock when its time has come."""

        def under_the_lock() -> None:
            with self.lock:
                action()

        with self.lock:
            self.timeline.after(seconds, under_the_lock)

    def after_event(self, action: Action) -> None:
        """Change the state that the event just logged speaks of: at once, or a little later."""
        lag = self.random.uniform(0.0, self.settings.state_lag_seconds)
        if lag > 0:
            self.after(lag, action)
        else:
            action()

    def every(self, seconds: float, action: Action) -> None:
        """Run the action again and again, as `unlocked` does."""

        def again() -> None:
            action()
            self.unlocked(seconds, again)

        self.unlocked(seconds, again)

    def unlocked(self, seconds: float, action: Action) -> None:
        """Run the action without the lock when its time has come: it asks the external scheduler."""
        with self.lock:
            self.timeline.after(seconds, lambda: self._background(action))


class Commands:
    """Commands of one subject, which share the engine's backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def _log(
        self,
        code: EventType,
        caller: Caller,
        *,
        vm: Vm | None = None,
        host: Host | str | None = None,
        cluster: Cluster | None = None,
        **words: object,
    ) -> None:
        """Log an event with these words; of a VM also its host, and of either its cluster."""
        if not isinstance(host, Host):
            host = self._state.hosts.get(host or (vm.host if vm is not None else None) or "")
        of = vm or host
        if cluster is None and of is not None:
            cluster = self._state.clusters.get(of.cluster)
        data_center = None
        if vm is not None and cluster is not None:
            data_center = self._state.data_centers.get(cluster.data_center or "")
        names = {"user": caller.user}
        for name, record in (("vm", vm), ("host", host), ("cluster", cluster)):
            names[name] = "<UNKNOWN>" if record is None else record.name
        now = self._backend.now
        event = Event(
            id=0,
            code=code.number,
            severity=code.severity,
            time=now,
            visible=now,
            description=code.text.format(**{**names, **words}),
            correlation_id=caller.correlation_id,
            user=caller.reference,
            vm=reference(vm),
            host=reference(host),
            cluster=reference(cluster),
            data_center=reference(data_center),
            template=None if vm is None else template_of(vm),
        )
        self._backend.audit_log.add(event, flood_seconds=code.flood_seconds)

    def _change_host(self, host_id: str, **changes: Any) -> None:
        self._state.put(self._state.hosts, replace(self._state.hosts[host_id], **changes))

    def _change_vm(self, vm_id: str, **changes: Any) -> None:
        self._state.put_vm(replace(self._state.vms[vm_id], **changes))


def locked(command: Command) -> Command:
    """Carry a command out under the engine's lock."""

    @wraps(command)
    def under_the_lock(self: Commands, *args: Any, **options: Any) -> Any:
        with self._backend.lock:
            return command(self, *args, **options)

    return cast("Command", under_the_lock)
