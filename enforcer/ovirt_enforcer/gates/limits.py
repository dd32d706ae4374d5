"""What a cluster bears: limits, pauses after failures or a migration, what moves already, rules and room."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import inf
from typing import Final

from ovirt_enforcer.gates.gate import (
    HOUR_SECONDS,
    Facts,
    Gate,
    Held,
    HostAction,
    Movement,
    begun_ago,
    begun_within,
    by_vm,
    failed,
    fits,
    refused,
    seconds_until_fewer,
)
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model.names import counted, host_name, vm_name
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.planning.problem.build_problem import legal
from ovirt_placement.store.enforcer.intents import Intent, IntentKind, IntentState
from ovirt_placement.store.orders import ALL_CLUSTERS
from ovirt_service.daemon import BackOff


def _running_limit(
    name: str,
    setting: str,
    where: str,
    counts: Callable[[Movement, str], bool],
    places: Callable[[str, Step], Sequence[str]],
) -> Gate:
    """Closed where as many migrations run, ours or others', as a setting allows.

    `where` is in words, in which {} is the host; `counts` says whether a movement counts at a cluster or
    host; `places` are those that a step is limited at, each as often as VMs would join there.
    """

    def step(facts: Facts, cluster: str, step: Step) -> str | None:
        for place, more in Counter(places(cluster, step)).items():
            count = sum(counts(one, place) for one in facts.movements)
            if not fits(count, more, getattr(facts.settings, setting)):
                there = where.format(host_name(place, facts.snapshot))
                return f"limit reached: {counted(count, 'migration')} running {there} ({setting})"
        return None

    return Gate(name=name, step=step)


def _begun_limit(name: str, setting: str, when: str, within: Callable[[EnforcerSettings], float]) -> Gate:
    """Closed where as many migrations of a cluster began within a period as a setting allows."""

    def step(facts: Facts, cluster: str, step: Step) -> str | None:
        count = begun_within(facts.begun_in(cluster), within(facts.settings))
        if fits(count, len(step.vms), getattr(facts.settings, setting)):
            return None
        return f"limit reached: {counted(count, 'migration')} {when} ({setting})"

    def seconds_left(facts: Facts, cluster: str) -> float:
        most = getattr(facts.settings, setting)
        return seconds_until_fewer(facts.begun_in(cluster), within(facts.settings), most)

    return Gate(name=name, step=step, seconds_left=seconds_left, reach=within)


def _here(cluster: str, step: Step) -> Sequence[str]:
    return (cluster,) * len(step.vms)


LIMITS: Final = (
    # Of the whole engine: its migrations share networks and threads.
    _running_limit(
        "engine_at_once", "migrations_at_once", "in the engine", lambda one, _: one.migrates, _here
    ),
    _running_limit(
        "cluster_at_once",
        "cluster_migrations_at_once",
        "in this cluster",
        lambda one, cluster: one.migrates and one.cluster == cluster,
        _here,
    ),
    # From each host that the step leaves: it carries them all.
    _running_limit(
        "host_at_once",
        "host_migrations_out",
        "from {}",
        lambda one, host: one.source == host,
        lambda _, step: step.sources,
    ),
    _running_limit(
        "host_at_once",
        "host_migrations_in",
        "to {}",
        lambda one, host: one.migrates and host in one.targets,
        lambda _, step: (step.target,) * len(step.vms),
    ),
    # As many as this, then the enforcer reads again whether they help.
    _begun_limit(
        "cluster_cycle_limit",
        "cluster_migrations_per_cycle",
        "within this cycle",
        lambda settings: settings.interval_seconds,
    ),
    # Safety limit against endless repair loops.
    _begun_limit("cluster_limit", "cluster_migrations_per_hour", "in the last hour", lambda _: HOUR_SECONDS),
)


def _often_moved(facts: Facts) -> Mapping[str, Held]:
    """VMs that were migrated often: one more migration does not repair what asks for it again."""
    found, most = {}, facts.settings.vm_migrations_per_hour
    for vm, intents in by_vm(facts.begun).items():
        count = begun_within(intents, HOUR_SECONDS)
        if count >= facts.settings.vm_migrations_per_hour:
            often = f"migrated {counted(count, 'time')} in the last hour"
            reason = f"{often}, as often as vm_migrations_per_hour allows"
            found[vm] = Held(reason, seconds_until_fewer(intents, HOUR_SECONDS, most))
    return found


VM_LIMIT: Final = Gate(name="vm_limit", vms=_often_moved, reach=lambda _: HOUR_SECONDS)

#: The longest cooldown is this many times the first.
_LONGEST: Final = 16
#: This many of the longest cooldowns are looked back upon: a VM that keeps failing must not begin again.
_COOLDOWNS_REMEMBERED: Final = 8


def _cooling_down(facts: Facts) -> Mapping[str, Held]:
    """VMs whose migration failed, longer with each failure in a row.

    A refusal is none: the engine let nothing begin, and another target may do.
    """
    first, found = facts.settings.cooldown_seconds, {}
    pauses = BackOff(first, first * _LONGEST)
    for intents in by_vm(intent for intent in facts.ended if not refused(intent)).values():
        last = intents[-1]
        cooldown = pauses.pause_after(sum(1 for _ in takewhile(failed, reversed(intents))))
        if last.age_seconds < cooldown:
            failure = f"its migration to {host_name(last.target, facts.snapshot)} failed ({last.reason})"
            reason = f"{failure}; the cooldown is {cooldown:.0f} s"
            found[last.vm] = Held(reason, cooldown - last.age_seconds)
    return found


COOLDOWN: Final = Gate(
    name="cooldown",
    vms=_cooling_down,
    reach=lambda settings: settings.cooldown_seconds * _LONGEST * _COOLDOWNS_REMEMBERED,
)


def _just_moved(facts: Facts) -> Mapping[str, Held]:
    """VMs that were migrated a moment ago: their guests and peers have only just come to rest.

    A plan that parks a VM, to free the way for others, may take it on at once.
    """
    seconds, found = facts.settings.cooldown_after_success_seconds, {}
    for *_, last in by_vm(intent for intent in facts.ended if not refused(intent)).values():
        just_moved = last.state is IntentState.DONE and last.age_seconds < seconds
        if just_moved and not _goes_on(last, facts.plan):
            reason = f"it came to {host_name(last.target, facts.snapshot)} less than {seconds:.0f} s ago"
            found[last.vm] = Held(reason, seconds - last.age_seconds)
    return found


JUST_MOVED: Final = Gate(
    name="just_moved", vms=_just_moved, reach=lambda settings: settings.cooldown_after_success_seconds
)


def _goes_on(done: Intent, plan: Plan | None) -> bool:
    """Whether the plan that moved a VM moves it on from there."""
    of_vm = [
        (step.sources[step.vms.index(done.vm)], step.target)
        for step in (plan.steps if plan is not None else ())
        if done.vm in step.vms
    ]
    return (done.source, done.target) in of_vm and any(source == done.target for source, _ in of_vm)


def _in_backup(facts: Facts) -> Mapping[str, Held]:
    """VMs that are being backed up, as far as that is known: the engine says so when it refuses.

    A VM does not show that it is being backed up, and to ask for the backups of each takes a request each.
    """
    seconds, found = facts.settings.cooldown_seconds, {}
    refusal = "the engine refused, since it is being backed up"
    for vm, (*_, last) in by_vm(facts.ended).items():
        names_a_backup = refused(last) and "backup" in (last.error or "").lower()
        if names_a_backup and last.age_seconds < seconds:
            reason = f"{refusal}; it is asked again after {seconds:.0f} s"
            found[vm] = Held(reason, seconds - last.age_seconds)
    return found


BACKUP: Final = Gate(name="backup", vms=_in_backup, reach=lambda settings: settings.cooldown_seconds)

#: This many of the longest pauses are looked back upon: a cluster that keeps failing must not begin again.
_PAUSES_REMEMBERED: Final = 4


def why_open(facts: Facts, cluster: str) -> str | None:
    """Why the breaker is open after many failures: more migrations repair no cause of failure.

    Afterwards one migration is let through. If it fails, the breaker opens again, for twice as long; once one
    has succeeded, all is as before. All of this follows from the history: a restart changes nothing.
    """
    trips = _trips(facts, cluster)
    if not trips.in_a_row:
        return None
    if trips.left > 0:
        failures, pause = counted(trips.failures, "migration"), f"{trips.pause:.0f} s"
        return (
            f"{failures} failed here of late, the last for this reason: {trips.reason};"
            f" the next is tried {pause} after that, or after ovirt-enforcer resume"
        )
    if any(one.cluster == cluster and begun_ago(one) < trips.last_ago for one in facts.open_intents):
        return "circuit breaker open: waiting for the trial migration"
    return None


@dataclass(slots=True)
class _Trips:
    """What the history of a cluster comes to, read from its begin."""

    settings: EnforcerSettings
    in_a_row: int = 0
    #: How many seconds ago it did last.
    last_ago: float = inf
    #: How many failures made it, and how the last one read.
    failures: int = 0
    reason: str | None = None
    #: How long ago migrations failed that have not opened it, by the request: a group fails as one.
    recent: dict[str, float] = field(default_factory=dict)

    @property
    def pause(self) -> float:
        first = self.settings.breaker_pause_seconds
        return BackOff(first, first * _LONGEST).pause_after(self.in_a_row)

    @property
    def left(self) -> float:
        return self.pause - self.last_ago

    def add(self, intent: Intent) -> None:
        """Take the next migration that ended; one that began before the breaker opened says nothing new."""
        ago = intent.age_seconds
        if begun_ago(intent) >= self.last_ago:
            return
        if intent.state is IntentState.DONE:
            self.in_a_row, self.last_ago = 0, inf
            return
        within = self.settings.breaker_seconds
        self.recent = {request: then for request, then in self.recent.items() if then - ago < within}
        self.recent[intent.request_id] = ago
        if self.in_a_row or len(self.recent) >= self.settings.breaker_failures:
            self.failures = self.failures + 1 if self.in_a_row else len(self.recent)
            self.in_a_row += 1
            self.last_ago, self.reason, self.recent = ago, intent.reason, {}


def _trips(facts: Facts, cluster: str) -> _Trips:
    """By what ended in a cluster since it was last resumed, in the order in which it ended."""
    known = facts.snapshot.cluster_by_id[cluster]
    since = min(facts.resumed.get(key, inf) for key in (ALL_CLUSTERS, cluster, known.name))
    ended = (
        intent
        for intent in facts.ended
        if intent.cluster == cluster
        and intent.age_seconds < since
        and (intent.state is IntentState.DONE or failed(intent))
    )
    trips = _Trips(facts.settings)
    for intent in sorted(ended, key=lambda intent: -intent.age_seconds):
        trips.add(intent)
    return trips


def _until_trial(facts: Facts, cluster: str) -> float:
    left = _trips(facts, cluster).left
    return left if left > 0 else inf


BREAKER: Final = Gate(
    name="breaker",
    step=lambda facts, cluster, _: why_open(facts, cluster),
    seconds_left=_until_trial,
    reach=lambda settings: (
        settings.breaker_seconds + settings.breaker_pause_seconds * _LONGEST * _PAUSES_REMEMBERED
    ),
)


def _why_not_empty(facts: Facts, cluster: str, action: HostAction) -> str | None:
    """Of a host with VMs that is to be deactivated: the engine would drop rules while it drains it."""
    if action.kind is not IntentKind.DEACTIVATE_HOST:
        return None
    there = {vm.id for vm in facts.snapshot.vms_of_host.get(action.host, ())}
    there.update(one.vm for one in facts.snapshot.pending if one.host == action.host)
    there.update(one.vm for one in facts.open_intents if action.host in (one.source, one.target))
    names = sorted(vm_name(vm, facts.snapshot) for vm in there)
    return f"the host is not empty: {', '.join(names)}" if names else None


HOST_EMPTY: Final = Gate(name="host_empty", action=_why_not_empty)


def _movement_reasons(facts: Facts, step: Step) -> Iterator[str]:
    """What touches a VM, a host or a group that moves already waits.

    The engine's own enforcement, its balancing, a maintenance or a person migrate as well. That is no reason
    to leave a whole cluster alone; but where they are at work, our migrations undo theirs, or they ours.
    What we ourselves have under way holds its VMs only: which of our steps may run at once the plan knows.
    """
    names, peers, hosts = facts.snapshot, _peers(facts, step), (step.target, *step.sources)
    for movement in facts.movements:
        name = vm_name(movement.vm, names)
        goes = "is expected to be on its way (not confirmed)" if movement.expected else "is on its way"
        if movement.vm in step.vms:
            yield f"{name} {goes} already, by {'us' if movement.ours else 'the engine or a user'}"
        elif movement.ours:
            continue
        # A start takes its room on the host, and no more.
        elif movement.migrates and (host := next((one for one in hosts if one in movement.ends), None)):
            yield f"{name} {goes} from or to {host_name(host, names)}, by the engine or a user"
        elif movement.vm in peers:
            yield f"{name} of affinity group {peers[movement.vm]} {goes}, by the engine or a user"


def _peers(facts: Facts, step: Step) -> dict[str, str]:
    """The VMs that the step's have rules with, each with the name of a group that they share."""
    return {
        vm: group.name
        for moved in step.vms
        for group in facts.snapshot.groups_of_vm.get(moved, ())
        if group.vms_rule.enabled
        for vm in facts.snapshot.group_vms[group.id]
    }


MOVEMENT: Final = Gate(
    name="movement", step=lambda facts, cluster, step: next(_movement_reasons(facts, step), None)
)


def _why_illegal(facts: Facts, cluster: str, step: Step) -> str | None:
    """Of a plan that is older than the facts."""
    if legal(facts.snapshot, step):
        return None
    return "the rules or the room on the target no longer allow it"


LEGALITY: Final = Gate(name="legality", step=_why_illegal)
