"""Reads the engine: single objects again, side by side, and all of a kind.

Of single objects, one that takes long holds up no other. Only the asking happens in threads. What is answered
is put into the view by the thread that takes the turns, in that turn or, if it came late, in the next; an
answer that is older than what is known by then counts for nothing, and the object is read again.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from http import HTTPStatus
from typing import NamedTuple, TypeVar

from ovirt_placement.engine.connection.client import EngineConnection, at_most
from ovirt_placement.engine.connection.dialogues import Dialogue, Dialogues
from ovirt_placement.engine.connection.failures import EngineFault
from ovirt_placement.engine.policies import PolicyReader
from ovirt_placement.engine.requests import RULES, Doubts, Kinds, kinds_of
from ovirt_placement.engine.topology import (
    LONGEST_SEARCH,
    find_vms,
    read_as_reported,
    read_hosts,
    read_labels,
    read_networks,
    reread_cluster,
    reread_hosts,
    reread_vms,
)
from ovirt_placement.engine.vms import Detail
from ovirt_placement.inventory.on_demand import Demands, Span, read_details, read_searches, read_statistics
from ovirt_placement.inventory.service.schedule import (
    BRIEFLY,
    LATER_SECONDS,
    ONCE,
    SOON_SECONDS,
    Found,
    ReconciliationScope,
    Rereads,
    Subject,
    SubjectKind,
    places,
)
from ovirt_placement.inventory.service.view import Reading, View
from ovirt_placement.model import Host, Vm
from ovirt_service.errors import UserError
from ovirt_service.repetition import Said

_log = logging.getLogger(__name__)


def read_vms(connection: EngineConnection, ids: Sequence[str], wanted: Detail) -> tuple[dict[str, Vm], bool]:
    """Read VMs by their ids; whether that was with the details that are wanted.

    A disk that is removed at this moment is enough for the engine to fail on all that it is to follow.
    """
    try:
        return reread_vms(connection, ids, wanted), True
    except EngineFault as fault:
        if not wanted or fault.code != HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        _log.info("reads VMs without what hangs on them, for now: %s", fault)
    return reread_vms(connection, ids), False


#: So long a turn waits for an answer; one that comes later is taken in when it is there.
PATIENCE_SECONDS = 1.0
#: A search for several that takes this many times as long is given up, and each is asked for by itself.
_SEARCH_PATIENCE = 5.0
#: If the engine takes long about more objects than these, it is no longer a matter of some objects.
_MOST_LATE = 4
#: While VMs come and go, the memory of their hosts is read so often after a turn, and so seldom within one.
_MEMORY_SECONDS, _LONGEST_MEMORY_SECONDS = 1.5, 3.0
_NEVER = float("-inf")

_Answer = TypeVar("_Answer")


class _Asked(NamedTuple):
    """What one dialogue is about."""

    kind: SubjectKind
    ids: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {', '.join(self.ids)}".rstrip()


class Rereading:
    """What is due, read and put into the view; for one thread at a time."""

    def __init__(
        self,
        connection: EngineConnection,
        clock: Callable[[], float],
        view: View,
        rereads: Rereads,
        came_late: Callable[[], None],
        patience_seconds: float,
    ) -> None:
        """`came_late` is called, in any thread, when an answer is there that no turn has waited for."""
        self._connection, self._clock, self._view, self._rereads = connection, clock, view, rereads
        self.policies = PolicyReader()
        self._dialogues: Dialogues[_Asked] = Dialogues(patience_seconds=patience_seconds, came_late=came_late)
        self._search_seconds = _SEARCH_PATIENCE * patience_seconds
        #: Those that a search held up, or that were late: each is asked for by itself.
        self._alone: set[Subject] = set()
        self._said = Said()
        self._sought: list[str] = []
        #: When hosts were last read by their ids.
        self._memory_at = _NEVER

    @property
    def keeps_up(self) -> bool:
        """Whether what is due is known, but for a few objects about which the engine takes long."""
        return sum(len(asked.ids) for asked in self._dialogues.late) <= _MOST_LATE

    def take_sought(self) -> tuple[str, ...]:
        """Those that were looked for since this was asked last; in the view if the engine has them."""
        taken, self._sought = tuple(self._sought), []
        return taken

    def seek(self, vms: Sequence[str]) -> None:
        """Look for VMs that somebody asks for and that are not known: an event of one may be late."""
        wanted = [vm for vm in vms if self._view.vm(vm) is None]
        self._sought += set(vms) - {*wanted}
        unasked = [vm for vm in wanted if vm not in self._under_way(SubjectKind.VM)]
        if unasked:
            self._begin_reading(SubjectKind.VM, unasked, self._seek)

    def read_due(self) -> None:
        """Read what is due: VMs first, for those that came or went name hosts.

        Raises what `EngineConnection.get` raises, unless that is of an answer that came late.
        """
        self._begin_vms()
        self._settle()
        self._begin_hosts(_LONGEST_MEMORY_SECONDS)
        self._begin_clusters()
        for kind, reading in ((SubjectKind.LABELS, self._labels), (SubjectKind.NETWORKS, self._networks)):
            if self._due(kind):
                self._begin_reading(kind, [""], reading)
        self._settle()

    def read_hosts(self) -> None:
        """Read hosts that VMs have come to or left; raises as `read_due` does."""
        self._begin_hosts(_MEMORY_SECONDS)
        self._settle()

    def _settle(self) -> None:
        """Wait for the answers; raise what went wrong, once all of them have been taken in."""
        self._dialogues.wait()
        errors: list[Exception] = []
        for asked, outcome in self._dialogues.take_ended():
            self._note(asked, late=outcome.late)
            if outcome.late and isinstance(outcome.error, UserError):
                _log.info("%s: asks again: %s", asked, outcome.error)
            elif outcome.error is not None:
                errors.append(outcome.error)
        for asked in self._dialogues.late:
            self._note(asked, late=True)
        if errors:
            raise errors[0]

    def _note(self, asked: _Asked, *, late: bool) -> None:
        """Take note of whether an answer is late: no other object shall wait for that the next time."""
        subjects = {Subject(asked.kind, identity) for identity in asked.ids}
        if late:
            self._alone |= subjects
            if len(subjects) == 1 and self._said.is_news(asked):
                _log.warning("%s: the engine takes long to answer; all else is read meanwhile", asked)
        elif self._alone & subjects:
            self._alone -= subjects
            if self._said.is_over(asked):
                _log.info("%s: the engine answers in time again", asked)

    def _under_way(self, kind: SubjectKind) -> set[str]:
        return {one for asked in self._dialogues.under_way if asked.kind is kind for one in asked.ids}

    def _due(self, kind: SubjectKind, ahead: float = 0.0) -> list[str]:
        """Name what must be read; or again so soon that it is read along, in case more shows by now.

        Nothing is asked for twice at once.
        """
        due = self._rereads.due(self._clock(), ahead)
        asked = self._under_way(SubjectKind.HOST if kind is SubjectKind.MEMORY else kind)
        return [subject.id for subject in due if subject.kind is kind and subject.id not in asked]

    def _begin_reading(
        self, kind: SubjectKind, ids: Sequence[str], reading: Callable[[list[str]], Dialogue[None]]
    ) -> None:
        """Begin to read these: those that were late each by itself, all others together."""
        together = [one for one in ids if Subject(kind, one) not in self._alone]
        chunks = [together[at : at + LONGEST_SEARCH] for at in range(0, len(together), LONGEST_SEARCH)]
        for chunk in (*chunks, *([one] for one in ids if Subject(kind, one) in self._alone)):
            self._dialogues.begin(_Asked(kind, tuple(chunk)), reading(chunk))

    def _begin_vms(self) -> None:
        self._begin_reading(SubjectKind.VM, self._due(SubjectKind.VM, SOON_SECONDS), self._vms)

    def _begin_hosts(self, memory_seconds: float) -> None:
        """Read hosts that events speak of; with them, or after this many seconds, those with other memory."""
        ids, began = self._due(SubjectKind.HOST, SOON_SECONDS), self._clock()
        if ids or began >= self._memory_at + memory_seconds:
            ids = sorted({*ids, *self._due(SubjectKind.MEMORY, SOON_SECONDS)})
        if ids:
            self._memory_at = began
            self._begin_reading(SubjectKind.HOST, ids, self._hosts)

    def _begin_clusters(self) -> None:
        """Read clusters that events speak of; all where they speak of policies, which any may use."""
        if self._due(SubjectKind.POLICIES):
            self.policies.forget()
            now = self._clock()
            for cluster in self._view.cluster_ids:
                self._rereads.ask(Subject(SubjectKind.CLUSTER, cluster), now, ONCE)
            self._rereads.read(Subject(SubjectKind.POLICIES), None, now)
        for cluster in self._due(SubjectKind.CLUSTER):
            self._begin_reading(SubjectKind.CLUSTER, [cluster], self._cluster)

    def _seek(self, ids: list[str]) -> Dialogue[None]:
        began, wanted = self._clock(), self._view.demands.details
        found: Mapping[str, Vm] = yield partial(find_vms, self._connection, ids, wanted)
        span = self._span(began)
        for vm in found.values():
            self._put_vm(vm.id, vm, span, detailed=self._view.demands.details in wanted)
            self._rereads.ask(
                Subject(SubjectKind.CLUSTER, vm.cluster), span.ended, BRIEFLY
            )  # with its groups
            self._rereads.ask(Subject(SubjectKind.LABELS), span.ended, BRIEFLY)
        self._sought += ids

    def _vms(self, ids: list[str]) -> Dialogue[None]:
        began, wanted = self._clock(), self._view.demands.details
        ask = partial(read_vms, self._connection, ids, wanted)
        found, detailed = yield self._within_patience(ids, ask)
        span = self._span(began)
        detailed = detailed and self._view.demands.details in wanted
        for vm_id in () if detailed else ids:
            self._rereads.ask(Subject(SubjectKind.VM, vm_id), span.ended, (LATER_SECONDS,))
        for vm_id in ids:
            self._put_vm(vm_id, found.get(vm_id), span, detailed=detailed)

    def _put_vm(self, vm_id: str, vm: Vm | None, span: Span, *, detailed: bool) -> None:
        before = self._view.vm(vm_id)
        newer = self._view.put_vm(vm_id, vm, span, detailed=detailed)
        self._note_found(Subject(SubjectKind.VM, vm_id), vm, span, newer=newer)
        after = self._view.vm(vm_id)
        if places(before) != places(after):
            self._rereads.ask_for_hosts(places(before) | places(after), span.ended)
        if after is not None and self._view.has_unknown_profile(after):
            self._rereads.ask(Subject(SubjectKind.NETWORKS), span.ended, BRIEFLY)

    def _hosts(self, ids: list[str]) -> Dialogue[None]:
        began = self._clock()
        ask = partial(reread_hosts, self._connection, ids)
        found: Mapping[str, Host] = yield self._within_patience(ids, ask)
        span = self._span(began)
        for host_id in ids:
            newer = self._view.put_host(host_id, found.get(host_id), span)
            for kind in (SubjectKind.HOST, SubjectKind.MEMORY):
                self._note_found(Subject(kind, host_id), found.get(host_id), span, newer=newer)

    def _cluster(self, ids: list[str]) -> Dialogue[None]:
        (cluster,) = ids
        ask = partial(reread_cluster, self._connection, cluster, self.policies)
        return self._alike(
            Subject(SubjectKind.CLUSTER, cluster), ask, partial(self._view.put_cluster, cluster)
        )

    def _labels(self, _: list[str]) -> Dialogue[None]:
        ask = partial(read_labels, self._connection)
        return self._alike(Subject(SubjectKind.LABELS), ask, self._view.put_labels)

    def _networks(self, _: list[str]) -> Dialogue[None]:
        ask = partial(read_networks, self._connection)
        return self._alike(Subject(SubjectKind.NETWORKS), ask, self._view.put_networks)

    def _alike(
        self, subject: Subject, ask: Callable[[], _Answer], put: Callable[[_Answer, Span], bool]
    ) -> Dialogue[None]:
        """Read what is put into the view as it is answered."""
        began = self._clock()
        found = yield ask
        span = self._span(began)
        self._note_found(subject, None, span, newer=put(found, span))

    def _within_patience(self, ids: Sequence[str], ask: Callable[[], _Answer]) -> Callable[[], _Answer]:
        """Ask for several no longer than for a while, since they can be asked for one by one."""
        return ask if len(ids) == 1 else partial(_asked, at_most(self._search_seconds), ask)

    def _span(self, began: float) -> Span:
        return Span(began, self._clock())

    def _note_found(self, subject: Subject, found: Found, span: Span, *, newer: bool) -> None:
        """Take note of what was put into the view; what was not newer stays due."""
        if newer:
            self._rereads.read(subject, found, span.began)
        else:
            self._rereads.ask(subject, span.ended, ONCE)


def _asked(within: AbstractContextManager[object], ask: Callable[[], _Answer]) -> _Answer:
    with within:
        return ask()


def read_plausible(
    doubts: Doubts, connection: EngineConnection, scope: ReconciliationScope, needs: Demands, began: float
) -> Reading:
    """Make one, doubting what suddenly lacks most of what was there; raises `Implausible` besides."""
    reading = partial(read, connection, scope, needs, began)
    return doubts.confirm(reading, _kinds, lambda doubt: doubt.kinds <= RULES)


def _kinds(found: Reading) -> Kinds:
    if found.whole is not None:
        return kinds_of(found.whole)
    return {} if found.hosts is None else {"hosts": [host.id for host in found.hosts]}


def read(connection: EngineConnection, scope: ReconciliationScope, needs: Demands, began: float) -> Reading:
    """Make one of the larger readings; raises what `EngineConnection.get` raises."""
    if scope is ReconciliationScope.WHOLE:
        # Policies that were remembered would undo what the follower has read since.
        return Reading(began, whole=read_as_reported(connection, policies=PolicyReader()))
    if scope is ReconciliationScope.HOSTS:
        return Reading(began, hosts=read_hosts(connection))
    if scope is ReconciliationScope.DETAILS:
        return Reading(began, details=read_details(connection, needs.details))
    if scope is ReconciliationScope.SEARCHES:
        return Reading(began, searches=read_searches(connection, needs.searches))
    return Reading(began, statistics=read_statistics(connection, needs.statistics))
