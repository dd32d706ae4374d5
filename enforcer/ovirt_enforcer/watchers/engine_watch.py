"""What readings of the engine show and a person has to see: full hosts, units, names, lost memberships."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from typing import Final

from prometheus_client import Gauge

from ovirt_enforcer.log import LogText, NoticeKind, RetryState, report
from ovirt_enforcer.notifications import Notifications
from ovirt_placement.answers.configured import ConfiguredName, unmatched_names
from ovirt_placement.answers.orders import loss, loss_sentence, losses
from ovirt_placement.answers.placement import why
from ovirt_placement.engine.events import custom_id
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import UnmatchedName
from ovirt_placement.store.enforcer.observations import (
    LostMembership,
    Membership,
    MembershipChange,
    MembershipKind,
    MembershipStore,
    Seen,
)
from ovirt_service.repetition import Said

_MOST_VMS: Final = 5

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class DrainWatch:
    """Reports hosts on their way to maintenance whose VMs have stayed for long, but for those of our runs."""

    notifications: Notifications
    clock: Callable[[], float]
    #: A host whose VMs stay the same for so long does not become empty.
    patience_seconds: float
    #: The VMs that stay, by host, and since when the same do.
    _staying: dict[str, tuple[frozenset[str], float]] = field(default_factory=dict, init=False)
    _said: Said = field(default_factory=Said, init=False)

    def observe(self, snapshot: Snapshot) -> None:
        before, self._staying, now = self._staying, {}, self.clock()
        for host in snapshot.hosts:
            if host.status != "preparing_for_maintenance" or host.id in snapshot.draining_hosts:
                continue
            there = [vm for vm in snapshot.vms_of_host.get(host.id, ()) if vm.status != "migrating"]
            staying = frozenset(vm.id for vm in there)
            known, since = before.get(host.id, (staying, now))
            since = since if known == staying else now
            self._staying[host.id] = staying, since
            if staying and now - since >= self.patience_seconds:
                self._report(snapshot, host, there)
        for gone in before.keys() - self._staying.keys():
            self._said.is_over(gone)

    def _report(self, snapshot: Snapshot, host: Host, there: Sequence[Vm]) -> None:
        reason = "; ".join(_why(snapshot, vm) for vm in there[:_MOST_VMS])
        if len(there) > _MOST_VMS:
            reason += f"; and {len(there) - _MOST_VMS} more VMs"
        if self._said.is_news(host.id, reason):
            report(LogText.DRAIN_BLOCKED, host=host.name, reason=reason)
            name = snapshot.cluster_by_id[host.cluster].name
            facts = {"cluster": name, "host": host.name, "reason": reason}
            self.notifications.report(NoticeKind.DRAIN_BLOCKED, cluster_id=host.cluster, **facts)


def _why(snapshot: Snapshot, vm: Vm) -> str:
    """What keeps a VM where it is: itself, or each other host that is up; else a filter that is not known."""
    if not vm.migratable:
        return f"{vm.name} cannot migrate"
    others = [host for host in snapshot.hosts_of_cluster[vm.cluster] if host.up and host.id != vm.host]
    judged = why(snapshot, vm, others).hosts
    if not judged:
        return f"no other host is up for {vm.name}"
    refused = [one for one in judged if not one.accepted]
    if len(refused) < len(judged):
        return f"{vm.name} (no known rule prevents it)"
    sentences = (f"{one.host.name}: {one.reasons[0].sentence}" for one in refused if one.reasons)
    return f"{vm.name} ({', '.join(sentences)})"


#: An engine that starts has the proxy's answer by then: it waits for no more than 120 s.
START_SECONDS: Final = 150.0
_DAY_SECONDS: Final = 24 * 3600.0


@dataclass(eq=False)
class UnitWatch:
    """Reports clusters whose units stay disabled, once a day, and those whose units are enabled again."""

    notifications: Notifications
    clock: Callable[[], float]
    _since: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._said = Said(_DAY_SECONDS, self.clock)

    def observe(self, snapshot: Snapshot) -> None:
        before, self._since, now = self._since, {}, self.clock()
        for cluster in snapshot.clusters:
            about = {"cluster_id": cluster.id, "cluster": cluster.name}
            if cluster.scheduling_policy and (disabled := cluster.scheduling_policy.disabled):
                since = self._since[cluster.id] = before.get(cluster.id, now)
                if now - since >= START_SECONDS and self._said.is_news(cluster.id):
                    units = ", ".join(disabled)
                    report(LogText.UNITS_DISABLED, cluster=cluster.name, units=units)
                    self.notifications.report(NoticeKind.UNITS_DISABLED, **about, units=units)
            elif self._said.is_over(cluster.id):
                report(LogText.UNITS_ENABLED, cluster=cluster.name)
                self.notifications.report(NoticeKind.UNITS_ENABLED, **about)
        for gone in before.keys() - snapshot.cluster_by_id.keys():
            self._said.is_over(gone)


@dataclass(eq=False)
class NameWatch:
    """Compares the names of the configuration, of rules, keys and policies with the engine."""

    configured: Sequence[ConfiguredName]
    #: Gives the ids that bear the tag of the configuration; None while that is not known.
    tagged: Callable[[], frozenset[str] | None]
    gauge: Gauge
    _said: dict[tuple[str, str], UnmatchedName] = field(default_factory=dict, init=False)

    def observe(self, snapshot: Snapshot) -> None:
        found = {*unmatched_names(snapshot, self.configured, self.tagged())}
        before, self._said = self._said, {(one.where, one.word): one for one in found}
        self.gauge.set(len(found))
        for name in sorted(self._said.keys() - before.keys()):
            report(LogText.NAME_UNMATCHED, sentence=self._said[name].sentence)
        for where, word in sorted(before.keys() - self._said.keys()):
            report(LogText.NAME_MATCHES, where=where, word=word)


#: Each is a request: what is to be reported many VMs must not hold up the enforcer.
_EVENTS_AT_ONCE = 20


@dataclass(eq=False)
class MembershipRecorder:
    store: MembershipStore
    #: `engine.events.add_event` on a connection.
    add_event: Callable[..., bool]
    clock: Callable[[], float]
    longest_pause: float
    #: VMs that the last reading showed outside of the cluster that they are remembered in.
    _outside: frozenset[str] = field(default=frozenset(), init=False)

    def __post_init__(self) -> None:
        self._recording = RetryState("affinity group memberships")
        self._reporting = RetryState("events of lost affinity group memberships")

    def observe(self, snapshot: Snapshot) -> None:
        """Take a whole reading; what fails is logged and done later."""
        for retry_state, work in ((self._recording, self._record), (self._reporting, self._report)):
            retry_state.attempt(partial(work, snapshot), self.clock, self.longest_pause)

    def _record(self, snapshot: Snapshot) -> None:
        """Write down what is new.

        The requests of one reading may lie on both sides of a change: so who is outside is judged at the next
        reading, which has all of it, wherever the VM is then.
        """
        remembered, known = self.store.seen(), snapshot.vm_by_id
        present = {seen.vm: seen for seen in _present(snapshot)}
        outside = (vm for vm, one in remembered.items() if vm in known and known[vm].cluster != one.cluster)
        waiting = frozenset(outside) - self._outside
        settled = [vm for vm in remembered if vm in known and vm not in waiting]
        change = MembershipChange(
            seen=tuple(one for vm, one in present.items() if vm not in waiting and one != remembered.get(vm)),
            without=tuple(vm for vm in settled if vm not in present),
            lost=tuple(
                entry
                for vm in sorted(self._outside.intersection(settled))
                for entry in _lost(remembered[vm], present.get(vm), snapshot)
            ),
            regained=tuple(entry for entry in self.store.lost() if _has_again(entry, present.get(entry.vm))),
        )
        self.store.change(change)
        self._outside = waiting
        for one in losses(change.lost):
            _log.warning("%s", loss_sentence(one))

    def _report(self, snapshot: Snapshot) -> None:
        """Add an event for each loss, which the engine takes once, however often it is reported."""
        unreported = (entry for entry in self.store.lost() if not entry.reported)
        found = groupby(unreported, key=lambda entry: (entry.since, entry.vm, entry.cluster))
        for (since, vm, cluster), entries in islice(found, _EVENTS_AT_ONCE):
            known = snapshot.vm_by_id.get(vm)
            self.add_event(
                number=custom_id("lost memberships", vm, cluster, str(since)),
                severity="warning",
                description=loss_sentence(loss(tuple(entries))),
                cluster=None if known is None else known.cluster,
                vm=None if known is None else known.id,
            )
            self.store.mark_reported(vm, since)


def _present(snapshot: Snapshot) -> Iterator[Seen]:
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
    for membership in before.member_of:
        if membership.id not in kept and _is_still_there(membership, before.cluster, snapshot):
            yield LostMembership(
                vm=before.vm,
                vm_name=snapshot.vm_by_id[before.vm].name,
                cluster=before.cluster,
                cluster_name=before.cluster_name,
                kind=membership.kind,
                id=membership.id,
                name=membership.name,
            )


def _is_still_there(membership: Membership, cluster: str, snapshot: Snapshot) -> bool:
    """Whether a user could want it back: a group may also have gone with the cluster that its VMs left."""
    if membership.kind is MembershipKind.LABEL:
        return membership.id in snapshot.label_by_id
    return membership.id in snapshot.group_by_id or cluster not in snapshot.cluster_by_id


def _has_again(entry: LostMembership, after: Seen | None) -> bool:
    """Whether the VM is a member of something of that name: a group of another cluster has another id."""
    return after is not None and (entry.kind, entry.name) in {(one.kind, one.name) for one in after.member_of}
