"""Notices that VMs lost affinity groups and labels with their cluster, which the engine does not report.

What the store holds is all its memory, so it notices too what happened while no enforcer ran. A member that
is removed within its cluster, and a group or label that is no more, are what somebody wanted, and no loss.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Set
from itertools import groupby, islice
from typing import Protocol

from ovirt_enforcer.log import RetryState
from ovirt_placement.answers.groups.change import loss, loss_sentence, losses
from ovirt_placement.engine.writing.events import custom_id
from ovirt_placement.model import Snapshot
from ovirt_placement.store.memberships import (
    LostMembership,
    Membership,
    MembershipChange,
    MembershipKind,
    MembershipStore,
    Seen,
)

#: Each is a request: what is to be reported many VMs must not hold up the enforcer.
_EVENTS_AT_ONCE = 20

_log = logging.getLogger(__name__)


class AddEvent(Protocol):
    """Adds an event to the engine's log, unless it holds one of this number."""

    def __call__(
        self, *, number: int, severity: str, description: str, cluster: str | None, vm: str | None
    ) -> bool: ...


class MembershipKeeper:
    """Follows memberships through whole readings of the engine."""

    def __init__(
        self, store: MembershipStore, add_event: AddEvent, clock: Callable[[], float], longest_pause: float
    ) -> None:
        self._store = store
        self._add_event = add_event
        self._clock = clock
        self._longest_pause = longest_pause
        self._recording = RetryState("affinity group memberships")
        self._reporting = RetryState("events of lost affinity group memberships")
        #: VMs that the last reading showed outside of the cluster that they are remembered in.
        self._outside: frozenset[str] = frozenset()

    def look(self, snapshot: Snapshot) -> None:
        """Take a whole reading; what fails is logged and done later."""
        for retry_state, work in ((self._recording, self._record), (self._reporting, self._report)):
            if retry_state.due > self._clock():
                continue
            try:
                work(snapshot)
            except Exception as error:  # the enforcer has other work, too
                retry_state.fail(error, self._clock(), self._longest_pause)
            else:
                retry_state.recover()

    def _record(self, snapshot: Snapshot) -> None:
        """Write down what is new.

        The requests of one reading may lie on both sides of a change: so who is outside is judged at the next
        reading, which has all of it, wherever the VM is then.
        """
        remembered = self._store.seen()
        outside = frozenset(_outside(remembered, snapshot))
        change = found_change(
            remembered, self._store.lost(), snapshot, judged=self._outside, waiting=outside - self._outside
        )
        self._store.change(change)
        self._outside = outside - self._outside
        for one in losses(change.lost):
            _log.warning("%s", loss_sentence(one))

    def _report(self, snapshot: Snapshot) -> None:
        """Add an event for each loss, which the engine takes once, however often it is reported."""
        unreported = (entry for entry in self._store.lost() if not entry.reported)
        found = groupby(unreported, key=lambda entry: (entry.since, entry.vm, entry.cluster))
        for (since, vm, cluster), entries in islice(found, _EVENTS_AT_ONCE):
            known = snapshot.vm_by_id.get(vm)
            self._add_event(
                number=custom_id("lost memberships", vm, cluster, str(since)),
                severity="warning",
                description=loss_sentence(loss(tuple(entries))),
                cluster=None if known is None else known.cluster,
                vm=None if known is None else known.id,
            )
            self._store.mark_reported(vm, since)


def found_change(
    remembered: Mapping[str, Seen],
    lost: tuple[LostMembership, ...],
    snapshot: Snapshot,
    *,
    judged: Set[str],
    waiting: Set[str],
) -> MembershipChange:
    """What a reading adds to what is remembered: of those judged what they lost; nothing of those waiting."""
    present = {seen.vm: seen for seen in _present(snapshot)}
    return MembershipChange(
        seen=tuple(seen for vm, seen in present.items() if vm not in waiting and seen != remembered.get(vm)),
        without=tuple(
            vm for vm in remembered if vm in snapshot.vm_by_id and vm not in present and vm not in waiting
        ),
        lost=tuple(
            entry
            for vm in sorted(judged & remembered.keys() & snapshot.vm_by_id.keys())
            for entry in _lost(remembered[vm], present.get(vm), snapshot)
        ),
        regained=tuple(entry for entry in lost if _has_again(entry, present.get(entry.vm))),
    )


def _outside(remembered: Mapping[str, Seen], snapshot: Snapshot) -> Iterator[str]:
    known = snapshot.vm_by_id
    return (vm for vm, seen in remembered.items() if vm in known and known[vm].cluster != seen.cluster)


def _present(snapshot: Snapshot) -> Iterator[Seen]:
    """The memberships that a reading shows, of whatever cluster the group is."""
    member_of: dict[str, list[Membership]] = defaultdict(list)
    for vm, groups in snapshot.groups_of_vm.items():
        member_of[vm] += (Membership(MembershipKind.GROUP, group.id, group.name) for group in groups)
    for label in snapshot.affinity_labels:
        for vm in label.vms:
            member_of[vm].append(Membership(MembershipKind.LABEL, label.id, label.name))
    for vm in sorted(member_of.keys() & snapshot.vm_by_id.keys()):
        cluster = snapshot.cluster_by_id[snapshot.vm_by_id[vm].cluster]
        yield Seen(vm, cluster.id, cluster.name, tuple(sorted(member_of[vm])))


def _lost(before: Seen, after: Seen | None, snapshot: Snapshot) -> Iterator[LostMembership]:
    kept = set() if after is None else {one.id for one in after.member_of}
    for one in before.member_of:
        if one.id not in kept and _is_still_there(one, before.cluster, snapshot):
            yield LostMembership(
                vm=before.vm,
                vm_name=snapshot.vm_by_id[before.vm].name,
                cluster=before.cluster,
                cluster_name=before.cluster_name,
                kind=one.kind,
                id=one.id,
                name=one.name,
            )


def _is_still_there(one: Membership, cluster: str, snapshot: Snapshot) -> bool:
    """Whether somebody could want it back: a group may also have gone with the cluster that its VMs left."""
    if one.kind is MembershipKind.LABEL:
        return one.id in snapshot.label_by_id
    return one.id in snapshot.group_by_id or cluster not in snapshot.cluster_by_id


def _has_again(entry: LostMembership, after: Seen | None) -> bool:
    """Whether the VM is a member of something of that name: a group of another cluster has another id."""
    return after is not None and (entry.kind, entry.name) in {(one.kind, one.name) for one in after.member_of}
