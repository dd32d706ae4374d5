"""What a gate is and judges by: it answers None, or a sentence that says why a thing must not be done now."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from math import inf
from typing import Any, Final, NamedTuple, TypeVar

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import NO_STATE, Host, Snapshot, Vm
from ovirt_placement.model.names import group_ids
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.store.enforcer.intents import REFUSALS, Cause, Intent, IntentKind, IntentState
from ovirt_placement.store.orders import Approval, Pause

HOUR_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class HostAction:
    """One action; of kind `MIGRATE_VM`, which asks the engine for nothing, it is to empty the host."""

    kind: IntentKind
    host: str
    vm: str = ""


def asked(intents: Iterable[Intent]) -> tuple[Intent, ...]:
    """Those that the engine was asked for, perhaps without a trace: all others count for no gate."""
    return tuple(intent for intent in intents if intent.cause is not Cause.NEVER_ASKED)


def refused(intent: Intent) -> bool:
    """Whether the engine refused it: no migration took place, and another target may do."""
    return intent.state is IntentState.FAILED and intent.cause in REFUSALS


def failed(intent: Intent) -> bool:
    return intent.state is IntentState.FAILED and not refused(intent)


def by_vm(intents: Iterable[Intent]) -> Mapping[str, Sequence[Intent]]:
    found = defaultdict(list)
    for intent in intents:
        found[intent.vm].append(intent)
    return found


def begun_within(intents: Iterable[Intent], seconds: float) -> int:
    """How many migrations began so lately; what was refused began none."""
    return sum(begun_ago(intent) < seconds for intent in intents if not refused(intent))


def seconds_until_fewer(intents: Iterable[Intent], seconds: float, limit: int) -> float:
    """How long until fewer began so lately, where they are as many as a limit allows; else infinite."""
    ages = [begun_ago(intent) for intent in intents if not refused(intent) and begun_ago(intent) < seconds]
    return seconds - max(ages) if len(ages) >= limit else inf


def fits(count: int, more: int, limit: int) -> bool:
    """Whether this many more may join those that count already.

    A group that the engine moves at once cannot be halved: where it alone is more than the limit, it passes
    while nothing else counts.
    """
    return count == 0 or count + more <= limit


def begun_ago(intent: Intent) -> float:
    return max(0.0, intent.age_seconds + intent.updated - intent.created)


class Held(NamedTuple):
    """Why a VM, or a target of one, is left alone, and for how many seconds more: infinite without an end."""

    reason: str
    seconds: float = inf


@dataclass(frozen=True, slots=True)
class Movement:
    """A VM on its way to a host."""

    vm: str
    cluster: str
    #: None for a start.
    source: str | None
    #: None where it is not known: of others' migrations the REST API does not show it.
    targets: tuple[str, ...]
    ours: bool
    #: Whether it is only expected, after a decision that the engine has not shown yet.
    expected: bool = False

    @property
    def ends(self) -> tuple[str | None, ...]:
        return self.source, *self.targets

    @property
    def migrates(self) -> bool:
        return self.source is not None


def movements(snapshot: Snapshot, open_intents: Sequence[Intent]) -> Iterator[Movement]:
    """All that moves now: every VM once, as ours where it is."""
    own = {intent.vm: intent for intent in open_intents}
    for intent in own.values():
        yield Movement(intent.vm, intent.cluster, intent.source, (intent.target,), ours=True)
    for vm in snapshot.vms:
        pending = snapshot.pending_hosts.get(vm.id, ())
        if vm.id not in own and (vm.status == "migrating" or vm.id in snapshot.pending_hosts):
            targets = tuple(host for host in pending if host != vm.host)
            expected = vm.status != "migrating" and vm.id in snapshot.unconfirmed
            yield Movement(vm.id, vm.cluster, vm.host, targets, ours=False, expected=expected)


@dataclass(frozen=True)
class Facts:
    """All that gates judge by: a gate reads no clock, no store and no engine of its own."""

    settings: EnforcerSettings
    #: The time of day, with its zone: windows are judged by it. All else has ages, as of the reading.
    now: datetime
    #: Migrations whose end is not known yet; those just admitted stand last.
    open_intents: Sequence[Intent] = ()
    snapshot: Snapshot = NO_STATE
    #: The whole plan that the step is of, or that is under way; None where there is none.
    plan: Plan | None = None
    #: Migrations whose end is known, the oldest first, as far back as `Gates.reach_seconds` says.
    history: tuple[Intent, ...] = ()
    pauses: tuple[Pause, ...] = ()
    #: The approval of each cluster that has one.
    approvals: tuple[Approval, ...] = ()
    #: Plans that a user has refused, by id, with who and why.
    refused: Mapping[str, str] = field(default_factory=dict)
    #: In how many cycles each rule was seen violated, the last among them, by its key
    #: (`gates.people.rule_key`).
    violated_cycles: Mapping[str, int] = field(default_factory=dict)
    #: How many seconds ago migrations were resumed, by cluster; the empty name is for all.
    resumed: Mapping[str, float] = field(default_factory=dict)
    #: Ids of VMs and hosts that bear the tag `exclude_tag`: snapshots may have no tags.
    tagged: frozenset[str] = frozenset()
    #: Correlation ids of the upgrades that are maintenance runs of ours.
    own_upgrades: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.now.tzinfo is None:
            raise ValueError("the time of day needs its time zone")

    @cached_property
    def ended(self) -> tuple[Intent, ...]:
        """What the engine was asked for and has ended, the oldest first, as far back as the gates wish."""
        return asked(self.history)

    @cached_property
    def begun(self) -> tuple[Intent, ...]:
        """All that the engine was asked for: what has ended, then what is under way."""
        return (*self.ended, *self.open_intents)

    def begun_in(self, cluster: str) -> Iterator[Intent]:
        return (intent for intent in self.begun if intent.cluster == cluster)

    @cached_property
    def movements(self) -> tuple[Movement, ...]:
        return tuple(movements(self.snapshot, self.open_intents))


#: Why nothing is to be done for a group; None if something may.
WhyNot = Callable[[str], str | None]


def why_for_nothing(step: Step, plan: Plan | None, why_not: WhyNot) -> str | None:
    """Why a step is not to be taken, if some groups are not to be repaired.

    It is not taken if it repairs such a group itself. A step that only makes room is not taken if all that it
    makes room for is such.
    """

    def first_reason(one: Step) -> str | None:
        return next((why for group in one.repairs or one.groups if (why := why_not(group)) is not None), None)

    if step.repairs or step.groups:
        return first_reason(step)
    answers = [first_reason(later) for later in _served(step, plan)]
    return next(iter(answers), None) if all(answer is not None for answer in answers) else None


def _served(step: Step, plan: Plan | None) -> Iterator[Step]:
    """The steps that repair something and wait for this one, or for one that does."""
    if plan is None or step not in plan.steps:
        return
    reached = {plan.steps.index(step)}
    for place, later in enumerate(plan.steps):
        if not reached.isdisjoint(later.after):
            reached.add(place)
            if later.repairs or later.groups:
                yield later


def _holds_nothing(*_: Any) -> None:
    """What a gate has for all that it does not hold."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """One reason to hold back, as a row: functions of `Facts` that answer why something is held, or None.

    A step is held with its cluster, a VM, a host that it leaves or leads to, what it repairs, or by itself.
    """

    #: A short word for it, the same for all its sentences.
    name: str
    #: A whole cluster, but for actions on hosts of these kinds.
    cluster: Callable[[Facts, str], str | None] = _holds_nothing
    at_any_time: Collection[IntentKind] = ()
    #: What no plan shall move for now, move anything to, or repair: a group or legacy label, by id.
    vm: Callable[[Facts, Vm], str | None] = _holds_nothing
    host: Callable[[Facts, Host], str | None] = _holds_nothing
    group: Callable[[Facts, str], str | None] = _holds_nothing
    #: All VMs that it holds, by id; and the groups of which the planner is to know, where `step` judges them.
    vms: Callable[[Facts], Mapping[str, Held]] = lambda facts: {}
    groups: Callable[[Facts], Mapping[str, str]] = lambda facts: {}
    #: A step by itself, and an action on a host.
    step: Callable[[Facts, str, Step], str | None] = _holds_nothing
    action: Callable[[Facts, str, HostAction], str | None] = _holds_nothing
    #: How long until time alone opens it for something in a cluster, besides VMs that it holds.
    seconds_left: Callable[[Facts, str], float] = lambda facts, cluster: inf
    #: How far back the history must go for it.
    reach: Callable[[EnforcerSettings], float] = lambda settings: 0.0

    def why_not(self, facts: Facts, cluster: str, what: Step | HostAction) -> str | None:
        """Why a step must not be taken in a cluster now, or an action on a host begun there."""
        if isinstance(what, Step):
            return next(filter(None, self._reasons(facts, cluster, what)), None)
        freely = what.kind in self.at_any_time
        return (None if freely else self.cluster(facts, cluster)) or self.action(facts, cluster, what)

    def _reasons(self, facts: Facts, cluster: str, step: Step) -> Iterator[str | None]:
        vms, hosts, held = facts.snapshot.vm_by_id, facts.snapshot.host_by_id, self.vms(facts)
        yield self.cluster(facts, cluster)
        yield from (held[vm].reason for vm in step.vms if vm in held)
        yield from (self.vm(facts, vms[vm]) for vm in step.vms if vm in vms)
        yield from (self.host(facts, hosts[host]) for host in (*step.sources, step.target) if host in hosts)
        if self.group is not _holds_nothing:
            yield why_for_nothing(step, facts.plan, lambda group: self.group(facts, group))
        yield self.step(facts, cluster, step)

    def held_vms(self, facts: Facts) -> dict[str, Held]:
        """Those on hosts that are held are held as well."""
        there = facts.snapshot.vms_of_host
        why = {vm.id: why for host, why in self.held_hosts(facts).items() for vm in there.get(host, ())}
        why |= _reasons(facts.snapshot.vm_by_id, self.vm, facts)
        return {**{vm: Held(reason) for vm, reason in why.items()}, **self.vms(facts)}

    def held_hosts(self, facts: Facts) -> dict[str, str]:
        return _reasons(facts.snapshot.host_by_id, self.host, facts)

    def held_groups(self, facts: Facts) -> dict[str, str]:
        known = {group: group for group in group_ids(facts.snapshot)}
        return {**_reasons(known, self.group, facts), **self.groups(facts)}

    def seconds_until_open(self, facts: Facts, cluster: str) -> float:
        """For something in a cluster; infinite if time does not open it."""
        known = facts.snapshot.vm_by_id
        here = (held for vm, held in self.vms(facts).items() if vm in known and known[vm].cluster == cluster)
        return min((self.seconds_left(facts, cluster), *(held.seconds for held in here)))


_Item = TypeVar("_Item")


def _reasons(
    items: Mapping[str, _Item], why_not: Callable[[Facts, _Item], str | None], facts: Facts
) -> dict[str, str]:
    known = {} if why_not is _holds_nothing else items
    return {one: why for one, item in known.items() if (why := why_not(facts, item)) is not None}
