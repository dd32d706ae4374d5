"""What all commands and queries share: the lock, the database, the clock, the log, the dice, and settings."""

import heapq
import random
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import wraps
from itertools import count
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_simulator.core.entities import Caller, Cluster, Event, Host, Job, Vm, reference, template_of
from ovirt_simulator.core.messages import EventType, Message
from ovirt_simulator.core.state import State

Command = TypeVar("Command", bound=Callable[..., Any])


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Simulated seconds and probabilities. The defaults are a small engine's on a good day."""

    #: From the accepted start until the VM powers up, and from there until it is up.
    launch_seconds: float = 1.0
    boot_seconds: float = 4.0
    #: From a shutdown until the VM is down, from a stop, and from a suspend until it is suspended.
    shutdown_seconds: float = 5.0
    stop_seconds: float = 1.0
    suspend_seconds: float = 3.0
    #: A migration takes the fixed part and the VM's memory over the bandwidth.
    migration_seconds: float = 2.0
    migration_mib_per_second: float = 1024.0
    #: How long the target has the VM before it reports it up: `migrating` with the target as host.
    hand_over_seconds: float = 0.5
    #: How often a migration without a host is tried again on another one (the engine's 3).
    migration_reruns: int = 3
    cancel_seconds: float = 0.5
    #: How often the engine looks at its hosts, and after what it tries a failed drain or restart again.
    refresh_seconds: float = 3.0
    retry_seconds: float = 30.0
    #: How often it looks at highly available VMs that went down, and how long in all such a VM waits for
    #: others of a higher priority (the engine's 600).
    restart_round_seconds: float = 1.0
    restart_blocked_seconds: float = 600.0
    #: From a host's crash until the engine sees it, how long it then tries to connect until the host is
    #: non-responsive, and until that is fenced and its VMs are known to be down.
    host_detection_seconds: float = 5.0
    host_connecting_seconds: float = 75.0
    host_fence_seconds: float = 30.0
    host_activation_seconds: float = 3.0
    update_check_seconds: float = 2.0
    #: How long an upgrade installs, and how long a host takes to come up from there.
    host_installation_seconds: float = 10.0
    host_boot_seconds: float = 5.0
    #: For so long the engine waits for a host that it has restarted.
    host_reboot_timeout_seconds: float = 600.0
    #: How much earlier an event may be logged than the state it speaks of shows: up to this, at random.
    state_lag_seconds: float = 0.5
    #: How probably an event shows later than its successors, and by how much at most.
    late_event_probability: float = 0.05
    late_event_seconds: float = 0.5
    #: How often the hosts report what VMs use, and how far the figures wobble around the state file's.
    statistics_seconds: float = 15.0
    statistics_wobble_percent: float = 5.0
    #: How often the engine counts the memory of the VMs on each host; 0: whenever one comes or goes.
    memory_count_seconds: float = 15.0
    #: How often the engine's own affinity enforcement and load balancing run; None switches them off.
    affinity_enforcement_seconds: float | None = None
    load_balancing_seconds: float | None = None


USUAL = Settings()
#: An engine that reports everything at once and in order: what most tests want.
PROMPT = Settings(
    state_lag_seconds=0.0,
    late_event_probability=0.0,
    statistics_wobble_percent=0.0,
    memory_count_seconds=0.0,
    host_connecting_seconds=0.0,
)


# -- What goes wrong on demand: migrations that fail, hang, crawl or are refused, and upgrades of hosts.
class MigrationFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens to a migration that starts now."""

    #: Fails after its time; the VM stays where it was.
    fail: bool = False
    #: Never ends by itself; cancelling it works.
    hang: bool = False
    #: Takes this many times as long.
    slow: float = 1.0
    #: VDSM refuses it at once: HTTP 400.
    refuse: bool = False


class UpgradeFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens to an upgrade of a host that is being installed now."""

    #: The installation fails; the host stays, and its status is install_failed.
    fail: bool = False
    #: The host does not come back from its restart until a test lets it recover.
    stay_away: bool = False


Fault = TypeVar("Fault", MigrationFault, UpgradeFault)


class Faults:
    """The faults to come. Each is used up by the first migration or upgrade that it fits."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str | None, MigrationFault | UpgradeFault]] = []

    def expect(
        self, fault: MigrationFault | UpgradeFault, count: int = 1, identity: str | None = None
    ) -> None:
        """Let the next migrations or upgrades (of this VM or host, if one is named) go wrong."""
        self._waiting.extend([(identity, fault)] * count)

    def clear(self) -> None:
        """Forget all faults that have not come yet."""
        self._waiting.clear()

    def pop_fault(self, kind: type[Fault], identity: str) -> Fault:
        """Give what a migration of this VM, or an upgrade of this host, meets; harmless if none waits."""
        for index, (wanted, fault) in enumerate(self._waiting):
            if wanted in (None, identity) and isinstance(fault, kind):
                del self._waiting[index]
                return fault
        return kind()


# -- What the engine keeps of the past: jobs, and events, of which some show late.
Action = Callable[[], object]


class Jobs:
    """All jobs, oldest first."""

    def __init__(self, backend: "Backend") -> None:
        self._backend = backend
        self.by_id: dict[str, Job] = {}

    def start(self, description: str, caller: Caller) -> Job:
        """Open a job for what the caller asked for."""
        job = Job(
            id=self._backend.new_id(),
            description=description,
            status="started",
            started=self._backend.now,
            correlation_id=caller.correlation_id,
        )
        self.by_id[job.id] = job
        return job

    def note(self, description: str, caller: Caller, status: str = "finished") -> Job:
        """Remember a job that has ended at once."""
        job = self.start(description, caller)
        self.end(job, status)
        return job

    def end(self, job: Job | None, status: str) -> None:
        """Close the job, if there is one and it is still open: finished, failed or aborted."""
        if job is not None and self.by_id[job.id].status == "started":
            self.by_id[job.id] = replace(self.by_id[job.id], status=status, ended=self._backend.now)


class Backend:
    """The shared parts of one engine, with a clock that moves only when moved.

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
        self.state = State(counts_late=settings.memory_count_seconds > 0)
        self.jobs = Jobs(self)
        self.faults = Faults()
        #: The message that a command meets whose VM another command holds, by VM id.
        self.vm_locks: dict[str, Message] = {}
        #: Ids of hosts that have crashed, whether the engine knows it yet or not.
        self.failed_hosts: set[str] = set()
        #: Seconds since the start.
        self.elapsed = 0.0
        self._start = clock
        #: What falls due when, in order; of equals the first that was asked for.
        self._order = count()
        self._queue: list[tuple[float, int, Action]] = []
        #: All there are by id, be they visible or not.
        self.events: dict[int, Event] = {}
        self._silent_until: dict[tuple[object, ...], datetime] = {}
        self._background = background
        self._snapshot: tuple[int, Snapshot] | None = None

    def unlock(self, vm_id: str, held: Message) -> None:
        """Let go of a VM, unless another command holds it by now."""
        if self.vm_locks.get(vm_id) is held:
            del self.vm_locks[vm_id]

    @property
    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.elapsed)

    def new_id(self) -> str:
        """Draw an id for something new; the same in every run with the same seed and commands."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def live_snapshot(self) -> Snapshot:
        """Give the present state as the scheduler sees it; the same object until something changes."""
        if self._snapshot is None or self._snapshot[0] != self.state.revision:
            self._snapshot = self.state.revision, self.state.live_snapshot()
        return self._snapshot[1]

    # -- Events. An id is given before its transaction ends, so a lower one may show after a higher.

    def log(self, *, prompt: bool = False, flood_seconds: int = 0, **fields: Any) -> Event:
        """Log an event with these fields, the next id and the moment it shows; a prompt one shows at once.

        The same event is not logged again within these seconds.
        """
        now = self.now
        event = Event(**{"id": len(self.events) + 1, "time": now, "visible": now, **fields})
        key = event.code, event.description, event.vm, event.host, event.cluster
        if flood_seconds:
            if self._silent_until.get(key, now) > now:
                return event
            self._silent_until[key] = now + timedelta(seconds=flood_seconds)
        if not prompt and self.random.random() < self.settings.late_event_probability:
            late = self.random.uniform(0.0, self.settings.late_event_seconds)
            event = replace(event, visible=now + timedelta(seconds=late))
        self.events[event.id] = event
        return event

    # -- What happens later.

    def next_due(self, until: float) -> Action | None:
        """Move to the next action that is due until then and take it; None moves all the way."""
        if self._queue and self._queue[0][0] <= until:
            due, _, action = heapq.heappop(self._queue)
            self.elapsed = max(self.elapsed, due)
            return action
        self.elapsed = max(self.elapsed, until)
        return None

    def after(self, seconds: float, action: Action) -> None:
        """Run the action under the lock when its time has come."""

        def under_the_lock() -> None:
            with self.lock:
                action()

        self._due(seconds, under_the_lock)

    def go_through(self, steps: Iterator[float], goes_on: Callable[[], bool] = lambda: True) -> None:
        """Take steps, each as long after the one before as that yields, in seconds, while it goes on.

        The caller holds the lock, as each step does; the first is taken now.
        """

        def step() -> None:
            if goes_on() and (seconds := next(steps, None)) is not None:
                self.after(seconds, step)

        step()

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
        self._due(seconds, lambda: self._background(action))

    def _due(self, seconds: float, action: Action) -> None:
        with self.lock:
            heapq.heappush(self._queue, (self.elapsed + seconds, next(self._order), action))


class Commands:
    """Commands of one subject, which share the engine's backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state
        self._settings = backend.settings
        self._jobs = backend.jobs

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
        about = {"vm": vm, "host": host, "cluster": cluster}
        names = {name: "<UNKNOWN>" if record is None else record.name for name, record in about.items()}
        self._backend.log(
            flood_seconds=code.flood_seconds,
            code=code.number,
            severity=code.severity,
            description=code.text.format(**{"user": caller.user, **names, **words}),
            correlation_id=caller.correlation_id,
            user=caller.reference,
            data_center=reference(data_center),
            template=None if vm is None else template_of(vm),
            **dict[str, Any]((name, reference(record)) for name, record in about.items()),
        )

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
