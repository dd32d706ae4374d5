"""Who moved a VM lately, and what follows: it, its soft rules or a target are left alone for a while."""

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from math import inf
from typing import Final, NamedTuple, TypeVar

import msgspec

from ovirt_enforcer.gates.gate import Held, asked, by_vm, refused
from ovirt_enforcer.plans import Holding
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine import events
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.model import Snapshot
from ovirt_placement.model.infrastructure import set_up
from ovirt_placement.model.names import host_name, vm_name
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.store.enforcer.intents import Cause, Intent, IntentState
from ovirt_service.daemon import BackOff

#: How often a VM must have come to a host where it was before: once, a user may have decided otherwise.
_RETURNS: Final = 2
_REMEMBERED: Final = 20
#: A migration of ours may have ended a little before the reading that shows it.
_SLACK_SECONDS: Final = 10.0
#: A VM that we migrated is not news for so long afterwards.
_OURS_SECONDS: Final = 60.0


class Move(NamedTuple):
    """A move of a VM by others, and when a reading showed it, by the process's clock."""

    at: float
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Restless:
    """A VM that the engine or a user moves back and forth."""

    #: The hosts that it was on, the last one now.
    hosts: tuple[str, ...]
    #: Since the first of these migrations, and until it counts as at rest if it is not moved again.
    within_seconds: float
    left_seconds: float

    def reason(self, snapshot: Snapshot) -> str:
        names = sorted(host_name(host, snapshot) for host in {*self.hosts})
        return f"the engine or a user moves it back and forth between {' and '.join(names)}"


class Moves:
    """The one record of who moved which VM, when, from where to where: by readings, intents and events.

    It says what is ours, which VMs others move back and forth, who moved a VM, and when a move of ours was
    undone. A plan that counts on where a restless VM is would be out of date before it is carried out.
    Nothing of this must survive: after a restart it is found out again.
    """

    def __init__(self, connection: EngineConnection, seconds: float, clock: Callable[[], float]) -> None:
        """A VM that was not moved for this many `seconds` is at rest."""
        self._connection = connection
        self._seconds = seconds
        self._clock = clock
        self._looked_at = clock()
        #: VMs that we migrate and our correlation ids, and until when they count.
        self._ours: dict[str, float] = {}
        self._hosts: dict[str, str] = {}
        #: The moves of each VM by others, the oldest first.
        self._by_others: dict[str, deque[Move]] = {}
        #: VMs that others moved back and forth as of the last reading, by id.
        self.restless: Mapping[str, Restless] = {}
        #: What `undone_after` found, by intent and the VM's host since.
        self._undone_after: dict[tuple[int, str], float] = {}

    def note_ours(self, *words: str) -> None:
        """Remember VMs that we migrate, or correlation ids of ours, from now on."""
        self._ours.update(dict.fromkeys(words, self._clock() + _OURS_SECONDS))

    @property
    def ours(self) -> Set[str]:
        self._ours = {one: until for one, until in self._ours.items() if until > self._clock()}
        return self._ours.keys()

    def observe(self, snapshot: Snapshot, migrations: Iterable[Intent]) -> None:
        """Take note of a reading; what the enforcer's own `migrations` explain is no move by others."""
        now = self._clock()
        lately = now - self._looked_at + _SLACK_SECONDS
        ours = {
            (migration.vm, migration.target)
            for migration in migrations
            if migration.open or (migration.state is IntentState.DONE and migration.age_seconds < lately)
        }
        self._looked_at = now
        serving = {host.id for host in snapshot.hosts if host.status == "up"}
        before, self._hosts = self._hosts, {vm.id: vm.host for vm in snapshot.vms if vm.host is not None}
        for vm, host in self._hosts.items():
            source = before.get(vm, host)
            # Where its host does not serve it had to leave: that is drained, or has failed.
            if source != host and source in serving and (vm, host) not in ours:
                moves = self._by_others.setdefault(vm, deque(maxlen=_REMEMBERED))
                moves.append(Move(now, source, host))
        # The next start of a VM that runs nowhere places it again.
        self._by_others = {
            vm: moves
            for vm, moves in self._by_others.items()
            if vm in self._hosts and now - moves[-1].at < self._seconds
        }
        found = ((vm, self._as_restless(moves, now)) for vm, moves in self._by_others.items())
        self.restless = {vm: one for vm, one in found if one is not None}

    def _as_restless(self, moves: Sequence[Move], now: float) -> Restless | None:
        hosts = [moves[0].source]
        for move in moves:  # where one of ours is between two of them, it was on both hosts
            hosts += [move.target] if move.source == hosts[-1] else [move.source, move.target]
        if len(hosts) - len({*hosts}) < _RETURNS:
            return None
        return Restless(tuple(hosts), now - moves[0].at, self._seconds - (now - moves[-1].at))

    def who_moved(self, vm: str, ours: Collection[str]) -> str:
        """The engine's sentence about the last migration of a VM that was none of ours, by correlation id.

        Raises what `EngineConnection.get` raises, as does `undone_after`.
        """
        begun = [event for event in self._begun(vm) if (event.correlation_id or "") not in ours]
        return begun[-1].description.strip() if begun else "the engine's events do not show by whom"

    def undone_after(self, intent: Intent, host: str) -> float:
        """How many seconds after a migration of ours others last moved its VM, which is on `host` now.

        0 where events do not show it. Both moments are those of the engine's clock, which is asked once.
        """
        if (intent.id, host) not in self._undone_after:
            begun, took = self._begun(intent.vm), max(0.0, intent.updated - intent.created)
            ours = [event for event in begun if event.correlation_id == intent.request_id]
            last = begun[-1] if begun else None
            after = last.time - ours[-1].time - took if last and ours and last is not ours[-1] else 0.0
            self._undone_after[intent.id, host] = max(0.0, after)
        return self._undone_after[intent.id, host]

    def _begun(self, vm: str) -> list[events.EngineEvent]:
        found = events.find_migration_events(self._connection, vm)
        return [event for event in found if event.code in events.STARTED]


_DIGITS = 12


def digest(snapshot: Snapshot, vm: str, hosts: tuple[str, ...]) -> str:
    """The circumstances of a VM's migration between hosts, in whatever direction.

    They are the VM and the hosts as they are set up, its cluster's policy, the groups that it is in, which of
    their members run, and whether a host is emptied for maintenance: that is over soon, and VMs may return.
    Not where VMs run, how busy anything is and how much memory is free: a move that is undone and repeated
    changes these itself.
    """
    known = snapshot.vm_by_id.get(vm)
    groups = snapshot.groups_of_vm.get(vm, ())
    members = {vm, *(peer for group in groups for peer in snapshot.group_vms[group.id])}
    running = (one for peer in members if (one := snapshot.vm_by_id.get(peer)) and one.host is not None)
    busy = {"host": None, "usage_mem_percent": None, "usage_cpu_percent": None, "migrating_to": None}
    facts = (
        None if known is None else msgspec.structs.replace(known, status="", **busy),
        [set_up(host) if (host := snapshot.host_by_id.get(one)) else None for one in sorted(hosts)],
        None if known is None else snapshot.cluster_by_id.get(known.cluster),
        [
            (group, sorted(snapshot.group_vms[group.id]), sorted(snapshot.group_hosts[group.id]))
            for group in groups
        ],
        sorted((one.id, one.running_since or 0.0) for one in running),
    )
    drained = sorted(set(hosts).intersection(snapshot.draining_hosts))
    return hashlib.sha256(msgspec.json.encode((*facts, drained) if drained else facts)).hexdigest()[:_DIGITS]


#: What stands against the VM itself is a lock, a backup or its state, and mostly over soon.
_FIRST_WAIT_SECONDS: Final = 10.0
_LONGEST_WAIT_SECONDS: Final = 600.0
#: This many refusals in a row of a VM, whatever the targets, are a matter of the VM, too.
_MOST_IN_A_ROW: Final = 6
_LONGEST_SECONDS: Final = 24 * 3600.0


def _in_a_row(intents: Sequence[Intent]) -> list[Intent]:
    return list(takewhile(refused, reversed(intents)))


def _any_target(intent: Intent) -> bool:
    return refused(intent) and intent.cause is Cause.VM_REFUSED


#: How far back the history must go.
REACH_SECONDS: Final = 2 * _LONGEST_SECONDS
_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Backoff:
    """VMs and targets that are left alone since VMs were moved lately, or were not; by VM, or VM and host id.

    Each for a pause, doubled with each time in a row, up to a day, or until the circumstances of the
    migration have changed.
    """

    settings: EnforcerSettings
    snapshot: Snapshot
    history: Sequence[Intent]
    moves: Moves

    @cached_property
    def refused_targets(self) -> Mapping[tuple[str, str], Held]:
        pauses = BackOff(self.settings.refusal_seconds, _LONGEST_SECONDS)
        to_hosts: dict[tuple[str, str], list[Intent]] = {}
        for intent in asked(self.history):
            to_hosts.setdefault((intent.vm, intent.target), []).append(intent)
        return self._held(
            (pair, intents[-1], pauses.pause_after(len(_in_a_row(intents))), self._refusal(intents[-1]))
            for pair, intents in to_hosts.items()
            if refused(intents[-1]) and not _any_target(intents[-1])
        )

    @cached_property
    def refused_vms(self) -> Mapping[str, Held]:
        of_vm = BackOff(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS)
        of_rounds = BackOff(self.settings.refusal_seconds, _LONGEST_SECONDS)

        def pause(intents: Sequence[Intent]) -> float:
            refusals = _in_a_row(intents)
            rounds = len(refusals) // _MOST_IN_A_ROW
            any_target = sum(1 for _ in takewhile(_any_target, refusals))
            return max(of_vm.pause_after(any_target), of_rounds.pause_after(rounds))

        return self._held(
            (vm, intents[-1], pause(intents), self._refusal(intents[-1]))
            for vm, intents in by_vm(asked(self.history)).items()
        )

    @cached_property
    def left_behind(self) -> Mapping[tuple[str, str], Held]:
        """Hosts that we took VMs from lately, and do not send them back to for no new cause."""
        reason = "it was taken from {} lately, and no rule has changed since".format
        return self._held(
            ((vm, host), intent, self._circle(intent, intents), reason(host_name(host, self.snapshot)))
            for vm, intents in self._done.items()
            for intent in intents
            if (host := intent.source) is not None
        )

    @cached_property
    def undone(self) -> Mapping[str, Held]:
        """VMs that others move away from where we move them. Raises what `Moves` raises.

        What moved one back (the engine's balancing, its affinity enforcement, an administrator) will do so
        again: to move it once more repairs nothing.
        """
        found = {}
        for vm, intents in self._done.items():
            last, now = intents[-1], self.snapshot.vm_by_id.get(vm)
            if now is None or now.host in (None, last.target) or not self._is_unchanged(last):
                continue
            pause, times = self._circle(last, intents), _times(last, intents)
            left = pause - max(0.0, last.age_seconds - self.moves.undone_after(last, now.host))
            if left > 0:
                often = "once" if times == 1 else f"{times} times"
                reason = (
                    f"it was moved to {host_name(last.target, self.snapshot)} {often}, and away again by"
                    f" the engine or a user, though no rule has changed; it is left alone for {pause:.0f} s"
                )
                found[vm] = Held(reason, left)
        return found

    def holding(
        self, by_gates: Mapping[str, Held], spared: Mapping[str, str], cluster: str | None = None
    ) -> Holding:
        """What plans leave alone in a cluster, or in all; besides, VMs `by_gates` and groups `spared`."""
        vms = {vm.id for vm in self.snapshot.vms if cluster in (None, vm.cluster)}
        # What may be done in a while: VMs with hosts, or with "" for any. What goes round in circles is not
        # among it: it would again.
        seconds = {pair: one.seconds for pair, one in self.refused_targets.items()}
        for vm, one in (*self.refused_vms.items(), *by_gates.items()):
            seconds[vm, ""] = max(one.seconds, seconds.get((vm, ""), 0.0))
        ends = {vm for (vm, _), left in seconds.items() if left == inf}
        lasting = {*self.undone, *self.moves.restless, *ends}
        waits = {
            (vm, host): left
            for (vm, host), left in seconds.items()
            if vm in vms and vm not in lasting and (vm, host) not in self.left_behind
        }
        return Holding(
            {**self.frozen(cluster), **{vm: one.reason for vm, one in by_gates.items()}},
            {(vm, host): why for (vm, host), why in self.left_out.items() if vm in vms},
            spared,
            waits,
        )

    @cached_property
    def left_out(self) -> Mapping[tuple[str, str], str]:
        return {pair: one.reason for pair, one in {**self.left_behind, **self.refused_targets}.items()}

    def frozen(self, cluster: str | None = None) -> dict[str, str]:
        """VMs of a cluster, or of all, that are not to be moved at all, with the reason: plans avoid them.

        Where the rules of another cluster cannot be judged, that is none of its business. Of VMs that others
        move back and forth these are the ones that no hard rule needs elsewhere.
        """
        if cluster is None:
            return {vm: why for one in self.snapshot.clusters for vm, why in self.frozen(one.id).items()}
        restless, known = self.restless_in(cluster), self.snapshot.vm_by_id
        violations = find_violations(self.snapshot, cluster) if restless else ()
        needed = {location.vm for one in violations if one.hard for location in one.locations}
        held = {**self.undone, **self.refused_vms}
        return {
            **{vm: one.reason(self.snapshot) for vm, one in restless.items() if vm not in needed},
            **{vm: one.reason for vm, one in held.items() if vm in known and known[vm].cluster == cluster},
        }

    def restless_in(self, cluster: str) -> dict[str, Restless]:
        known = self.snapshot.vm_by_id
        return {vm: found for vm, found in self.moves.restless.items() if known[vm].cluster == cluster}

    def spared(self, cluster: str) -> dict[str, str]:
        """The soft groups of these, with the reason: what is repaired there does not last."""
        return {
            group.id: f"{vm_name(vm, self.snapshot)}: {one.reason(self.snapshot)}"
            for vm, one in self.restless_in(cluster).items()
            for group in self.snapshot.groups_of_vm.get(vm, ())
            if not (group.vms_rule.hard or group.hosts_rule.hard)
        }

    def seconds_left(self, cluster: str) -> float:
        known = self.snapshot.vm_by_id
        targets = {**self.left_behind, **self.refused_targets}
        held = [(vm, one.seconds) for (vm, _), one in targets.items()]
        held += [(vm, one.seconds) for vm, one in (*self.refused_vms.items(), *self.undone.items())]
        held += [(vm, one.left_seconds) for vm, one in self.moves.restless.items()]
        return min(
            (seconds for vm, seconds in held if vm in known and known[vm].cluster == cluster), default=inf
        )

    @cached_property
    def _done(self) -> Mapping[str, Sequence[Intent]]:
        return by_vm(intent for intent in self.history if intent.state is IntentState.DONE)

    def _held(self, found: Iterable[tuple[_Key, Intent, float, str]]) -> dict[_Key, Held]:
        return {
            key: Held(reason, pause - intent.age_seconds)
            for key, intent, pause, reason in found
            if intent.age_seconds < pause and self._is_unchanged(intent)
        }

    def _circle(self, intent: Intent, intents: Sequence[Intent]) -> float:
        return BackOff(self.settings.circle_seconds, _LONGEST_SECONDS).pause_after(_times(intent, intents))

    def _refusal(self, intent: Intent) -> str:
        return f"the engine refused to move it to {host_name(intent.target, self.snapshot)}: {intent.error}"

    def _is_unchanged(self, intent: Intent) -> bool:
        hosts = (intent.source or "", intent.target)
        return intent.fingerprint == digest(self.snapshot, intent.vm, hosts)


def _times(intent: Intent, intents: Iterable[Intent]) -> int:
    """How often the same move was made under the same circumstances."""
    move = intent.target, intent.fingerprint
    return sum((other.target, other.fingerprint) == move for other in intents)
