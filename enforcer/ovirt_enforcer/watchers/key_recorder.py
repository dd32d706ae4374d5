"""Records the placement keys of running VMs, with those copied from the host on which each started."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import partial

from ovirt_enforcer.log import LogText, RetryState, report
from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.inventory.stored import with_keys
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.infrastructure import RESTING_STATUSES, RUNNING_STATUSES
from ovirt_placement.model.names import vm_name
from ovirt_placement.model.record import NODE
from ovirt_placement.rules.placement_keys.capacity import present_set
from ovirt_placement.rules.placement_keys.hierarchy import (
    NAME,
    MistakenKey,
    is_readable,
    keys_by_resource,
    property_keys,
    sticky_copies,
)
from ovirt_placement.rules.placement_keys.host_table import copies_after_start, sticky_keys
from ovirt_placement.rules.placement_keys.keys import Code, ignored_because
from ovirt_placement.store.keys import KeyStore, Run

#: How much earlier than its run the engine may date the event that reports it.
_EARLIER_SECONDS = 10.0


def start_hosts(vms: Iterable[Vm], starts: Iterable[EngineEvent]) -> dict[str, str]:
    """Host ids by VM, from events of starts, oldest first; without VMs whose start is not among them.

    An event of an earlier run is not taken for one of the present run, whose own may not show yet.
    """
    latest = {event.vm: event for event in starts if event.host is not None}
    found = {}
    for vm in vms:
        event = latest.get(vm.id)
        if event is None or event.host is None:
            continue
        if vm.running_since is None or event.time >= vm.running_since - _EARLIER_SECONDS:
            found[vm.id] = event.host
    return found


#: For so long the engine must not have had a VM, by the store's clock.
MISSING_SECONDS = 7 * 24 * 3600.0
#: In this many whole readings in a row, all of them by this process.
READINGS = 3


def warn_of_properties(snapshot: Snapshot, known: Set[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """Log what is wrong with custom properties that are not known; all that there are, each with its VM."""
    texts = ((vm.id, vm.custom_properties.get(NAME, "")) for vm in snapshot.vms)
    present = frozenset((vm, text) for vm, text in texts if text)
    for vm, text in sorted(present - known):
        complaints = []
        if not is_readable(text):
            complaints.append(f" is ignored: {text!r} is not of the form NAME:VALUE:WEIGHT,...")
        for key in property_keys(snapshot.vm_by_id[vm]):
            # One without a weight is no placement key, which is no mistake.
            codes = tuple(code for code in ignored_because(key) if code is not Code.WEIGHT_ZERO)
            if codes:
                complaints.append(f": key {key.name} is ignored: {MistakenKey(key, codes).sentence}")
        for complaint in complaints:
            report(LogText.BAD_PROPERTY, vm=vm_name(vm, snapshot), name=NAME, complaint=complaint)
    return present


#: On a host, but not for sure: a start that fails leaves nothing behind.
_STARTING = {"wait_for_launch", "powering_up", "restoring_state"}
#: In so short a time no VM starts and moves on. An engine or inventory that is away shows nothing for longer.
_WATCHED_SECONDS = 10.0
#: For so long it waits for what keys refer to; then a record without some of them is better than none.
_LONGEST_WAIT_SECONDS = 600.0
#: The engine writes down when it starts a VM, or resumes a suspended one, and may report that in whole
#: seconds.
_SAME_RUN_SECONDS = 1.0


@dataclass(eq=False)
class KeyRecorder:
    """Follows starts and stops through the snapshots that it is shown."""

    store: KeyStore
    clock: Callable[[], float]
    longest_pause: float
    #: Gives the engine's events of starts, the oldest first.
    read_starts: Callable[[], Sequence[EngineEvent]]
    #: Whether the last snapshot that it is shown, with its keys, holds all that these refer to.
    suffices: Callable[[Snapshot], bool]
    #: Of the lease: a process that does not lead is shown nothing.
    epoch: Callable[[], int]
    _lacking_since: float | None = field(default=None, init=False)
    #: Of VMs, as they were seen last.
    _properties: frozenset[tuple[str, str]] = field(default=frozenset(), init=False)
    _clusters: dict[str, RetryState] = field(default_factory=dict, init=False)
    #: As of this revision of the store, since when the VMs that have a record were running.
    _revision: int | None = field(default=None, init=False)
    _recorded: dict[str, float | None] = field(default_factory=dict, init=False)
    #: VMs that were down, or about to run, when they were last seen, and in which epoch and when that was.
    _idle: frozenset[str] = field(default=frozenset(), init=False)
    _seen_in: int = field(default=0, init=False)
    _seen_at: float = field(default=0.0, init=False)
    #: In how many readings in a row each VM was missing that is remembered.
    _missing: dict[str, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._all = RetryState("placement keys")

    @property
    def needs_retry(self) -> bool:
        """Whether something failed that is to be tried again now."""
        return any(
            retry_state.failing and retry_state.due <= self.clock()
            for retry_state in (self._all, *self._clusters.values())
        )

    def observe_latest(self, read: Callable[[], Snapshot]) -> None:
        self._try_to_observe(lambda: self._record_changes(read()))

    def observe(self, snapshot: Snapshot) -> None:
        """Take a whole reading of the engine: it also shows which VMs are gone."""
        self._try_to_observe(lambda: self._record_changes(snapshot, whole=True))

    def _try_to_observe(self, record: Callable[[], None]) -> None:
        """Look, or again later where that fails; what VMs do is not watched until then."""
        if not self._all.attempt(record, self.clock, self.longest_pause) and self._all.failing:
            self._idle = frozenset()

    def _record_changes(self, snapshot: Snapshot, *, whole: bool = False) -> None:
        if self.epoch() != self._seen_in or self.clock() - self._seen_at > _WATCHED_SECONDS:
            self._idle = frozenset()
        self._seen_in, self._seen_at = self.epoch(), self.clock()
        self._properties = warn_of_properties(snapshot, self._properties)
        revision = self.store.revision()
        if revision != self._revision:
            self._recorded = self.store.runs()
            self._revision = revision
        # Sets of runs that are over are dropped; a VM that is missing keeps its own until it is surely gone.
        known = snapshot.vm_by_id
        self.store.end_runs(
            [vm for vm, since in self._recorded.items() if vm in known and _is_over(known[vm], since)]
        )
        self._remember_started(snapshot)
        if whole and snapshot.vms:  # a reading without any VM says nothing about them
            self._forget_departed(snapshot)

    def _forget_departed(self, snapshot: Snapshot) -> None:
        """Forget VMs, once it is sure that the engine has them no more.

        One reading may be partial, an engine may list nothing for a moment, and a VM whose storage domain is
        detached comes back with it under the same id. So a VM must be missing for a week, and several
        readings of this process must agree on that: it does not rely on what was seen before it started.
        """
        missing = self.store.remembered_vms() - snapshot.vm_by_id.keys()
        self._missing = {vm: self._missing.get(vm, 0) + 1 for vm in missing}
        ages = self.store.mark_missing(missing)
        surely = (vm for vm, readings in sorted(self._missing.items()) if readings >= READINGS)
        gone = [vm for vm in surely if ages[vm] >= MISSING_SECONDS]
        self.store.forget_vms(gone)
        if gone:
            report(LogText.VMS_FORGOTTEN, vms=", ".join(gone))

    def _remember_started(self, snapshot: Snapshot) -> None:
        """Record each cluster by itself: one cluster's failure never ends another's."""
        started = defaultdict(list)
        for vm in snapshot.vms:
            if _runs(vm) and (vm.id not in self._recorded or _is_other_run(vm, self._recorded[vm.id])):
                started[vm.cluster].append(vm)
        if started:
            # Not as the snapshot has them: what this store holds is newer.
            keyed = with_keys(snapshot, self.store.records())
            if self._must_wait(keyed):
                self._idle = frozenset()  # they may have moved by then
                return
            for cluster, vms in started.items():
                retry_state = self._clusters.setdefault(
                    cluster, RetryState(f"placement keys of cluster {cluster}")
                )
                work = partial(self._remember, cluster, vms, keyed)
                retry_state.attempt(work, self.clock, self.longest_pause)
        for cluster in self._clusters.keys() - started.keys():
            self._clusters.pop(cluster).recover()  # what failed there is not to be done any more
        idle = RESTING_STATUSES | _STARTING  # they will have started where they are known to run next
        self._idle = frozenset(vm.id for vm in snapshot.vms if vm.status in idle)

    def _must_wait(self, keyed: Snapshot) -> bool:
        """Whether a set compiled now might lack keys that counted when the VM was placed."""
        if self.suffices(keyed):
            self._lacking_since = None
            return False
        if self._lacking_since is None:
            self._lacking_since = self.clock()
        if self.clock() - self._lacking_since < _LONGEST_WAIT_SECONDS:
            return True
        self._all.say(LogText.KEYS_LACK)
        return False

    def _remember(self, cluster: str, vms: list[Vm], keyed: Snapshot) -> None:
        """Record running VMs as if they had started just now, on the host where each did."""
        own, before = keys_by_resource(keyed), sticky_copies(keyed)
        unwatched = [vm for vm in vms if vm.id not in self._idle]
        # Only where hosts have sticky keys it matters on which one a VM started.
        nodes = keyed.hosts_of_cluster.get(cluster, ())
        matters = unwatched and any(sticky_keys(own.get((NODE, host.id), ())) for host in nodes)
        hosts = start_hosts(unwatched, self.read_starts()) if matters else {}
        begun = []
        for vm in vms:
            of_host = sticky_keys(own.get((NODE, hosts.get(vm.id) or vm.host or ""), ()))
            copies = copies_after_start(vm.id, before.get(vm.id, ()), of_host)
            begun.append(Run(vm.id, vm.running_since, present_set(keyed, vm), copies))
        self.store.begin_runs(tuple(begun))


def _runs(vm: Vm) -> bool:
    return vm.host is not None and vm.status in RUNNING_STATUSES - _STARTING


def _is_over(vm: Vm, since: float | None) -> bool:
    """Whether the run that was recorded is over; another may be under way and not have succeeded yet.

    A VM whose host does not respond may run still; to resume a suspended one is a start.
    """
    return vm.status in RESTING_STATUSES or (not _runs(vm) and _is_other_run(vm, since))


def _is_other_run(vm: Vm, since: float | None) -> bool:
    """Whether a VM has stopped and started since its record was made, unobserved.

    The engine says when the last start began; a migration and a reboot of the guest are no start.
    """
    if vm.running_since is None:
        return False
    return since is None or abs(vm.running_since - since) > _SAME_RUN_SECONDS
