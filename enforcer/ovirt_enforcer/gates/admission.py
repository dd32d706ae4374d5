"""The one place that admits migrations and actions on hosts, by what the store remembers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Final

import msgspec

from ovirt_enforcer.gates import limits, people
from ovirt_enforcer.gates.gate import Facts, Gate, Held, HostAction
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.inventory.stored import with_intents
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.rules.elements.resources import promised_mb
from ovirt_placement.store.enforcer.intents import Intent

#: In the order in which they are asked: the first that is closed says why.
GATES: Final[tuple[Gate, ...]] = (
    people.MODE,
    people.PAUSE,
    people.EXCLUSION,
    people.CLUSTER_UPGRADE,
    people.HOST_MAINTENANCE,
    limits.HOST_EMPTY,
    people.WINDOWS,
    limits.BREAKER,
    people.HOLD,
    people.APPROVAL,
    limits.MOVEMENT,
    *limits.LIMITS,
    limits.COOLDOWN,
    limits.JUST_MOVED,
    limits.VM_LIMIT,
    limits.BACKUP,
    limits.LEGALITY,
)


#: Without this no `Admitted` can be made, and it does not leave this file.
_KEY: Final = object()


class Closed(Exception):
    """A step must not be taken now; the text says why, and `gate` is the name of the gate that is closed."""

    def __init__(self, gate: str, reason: str) -> None:
        super().__init__(reason)
        self.gate = gate


@dataclass(frozen=True, slots=True)
class Admitted:
    """A step, or an action on a host, that may be begun now: made by `Gates` alone, and needed for each."""

    cluster: str
    what: Step | HostAction
    key: InitVar[object]

    def __post_init__(self, key: object) -> None:
        if key is not _KEY:
            raise TypeError("what is done is admitted by Gates, and by nothing else")


@dataclass(eq=False)
class Gates:
    """All gates, with what the settings say, the store remembers and is under way, at one moment.

    Made again, by `Memory.gates`, whenever steps are to be admitted: that reads history,
    approvals and open intents again. Several steps may then be admitted in a row; each is judged with those
    admitted before it as if they were open intents already, so no limit is passed by asking twice, from two
    threads either. The caller must write the intents of all that was admitted into the store before other
    gates are made of it.
    """

    facts: Facts
    #: Reads again what a person said in between, or what was seen: it is called for each answer, and what it
    #: raises is raised. So a pause counts from the very next step on.
    renew: Callable[[Facts], Facts] = lambda facts: facts
    #: One admission at a time: it counts those before it.
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    @staticmethod
    def reach_seconds(settings: EnforcerSettings) -> float:
        return max(gate.reach(settings) for gate in GATES)

    def unrenewed(self) -> Gates:
        """The same gates as of now: for answers after the store that they were made of is closed."""
        return Gates(self.renew(self.facts))

    def held(self, snapshot: Snapshot, plan: Plan | None = None) -> dict[str, Held]:
        """VMs to leave alone for now, by id; those that the plan under way has parked may be moved on."""
        facts = self._facts(snapshot, plan)
        found: dict[str, Held] = {}
        for gate in GATES:
            for vm, one in gate.held_vms(facts).items():
                # Where two hold the same, the first one says why, and the longer one how long.
                before = found.get(vm, one)
                found[vm] = Held(before.reason, max(before.seconds, one.seconds))
        return found

    def frozen(self, snapshot: Snapshot, plan: Plan | None = None) -> dict[str, str]:
        return {vm: one.reason for vm, one in self.held(snapshot, plan).items()}

    def frozen_hosts(self, snapshot: Snapshot) -> dict[str, str]:
        """Hosts that nothing is to be moved to for now, with the reason, by host id."""
        return self._first(Gate.held_hosts, snapshot)

    def held_groups(self, snapshot: Snapshot) -> dict[str, str]:
        """Affinity groups and legacy labels that are not to be repaired for now, with the reason, by id.

        A plan that is to be carried out leaves them violated; otherwise steps would wait for others that no
        gate lets pass.
        """
        return self._first(Gate.held_groups, snapshot)

    def seconds_left(self, snapshot: Snapshot, cluster: str) -> float:
        facts = replace(self.facts, snapshot=snapshot)
        return min(gate.seconds_until_open(facts, cluster) for gate in GATES)

    def open_breakers(self, snapshot: Snapshot) -> dict[str, str]:
        facts = self._facts(snapshot, None)
        reasons = ((cluster.id, limits.why_open(facts, cluster.id)) for cluster in snapshot.clusters)
        return {cluster: reason for cluster, reason in reasons if reason is not None}

    def admit(
        self, snapshot: Snapshot, cluster: str, what: Step | HostAction, plan: Plan | None = None
    ) -> Admitted:
        """Let a step, or an action on a host, pass. Raises `Closed` with the reason if it may not be begun.

        `snapshot` must have been read for this decision, after these gates were made. `plan` is the whole
        plan that the step is of, with the steps that were taken already: an approval is of a plan, and what
        makes room counts by what it makes room for. Without one the step is a plan of its own. What it waits
        for (`Step.after`) is for the asker to know.
        """
        with self._lock:
            closed = self.blocked_reason(snapshot, cluster, what, plan)
            if closed is not None:
                raise closed
            if isinstance(what, Step):
                own = (
                    Intent(vm=vm, cluster=cluster, source=source, target=what.target, correlation_id="")
                    for vm, source in zip(what.vms, what.sources, strict=True)
                )
                self.facts = replace(self.facts, open_intents=(*self.facts.open_intents, *own))
        return Admitted(cluster, what, _KEY)

    def blocked_reason(
        self, snapshot: Snapshot, cluster: str, what: Step | HostAction, plan: Plan | None = None
    ) -> Closed | None:
        """The first gate that does not let it pass, with its reason; None if all do."""
        if isinstance(what, Step):
            plan = plan or Plan(cluster=cluster, strategy="", steps=(what,))
        facts = self._facts(snapshot, plan)
        reasons = ((gate.name, gate.why_not(facts, cluster, what)) for gate in GATES)
        return next((Closed(name, reason) for name, reason in reasons if reason is not None), None)

    def waits_for_approval(self, snapshot: Snapshot, plan: Plan) -> bool:
        """Whether a person's word is needed for any step of a plan, and not there."""
        if not plan.steps:
            return False
        facts, cluster = self._facts(snapshot, plan), plan.cluster
        return any(
            people.MODE.why_not(facts, cluster, step) is None
            and people.APPROVAL.why_not(facts, cluster, step) is not None
            for step in plan.steps
        )

    def _first(self, held: Callable[[Gate, Facts], dict[str, str]], snapshot: Snapshot) -> dict[str, str]:
        """What all gates answer; where two hold the same, the first one says why."""
        facts = self._facts(snapshot, None)
        reasons: dict[str, str] = {}
        for gate in GATES:
            reasons = {**held(gate, facts), **reasons}
        return reasons

    def _facts(self, snapshot: Snapshot, plan: Plan | None) -> Facts:
        ahead = _with_decided(snapshot, self.facts.open_intents)
        return replace(self.renew(self.facts), snapshot=ahead, plan=plan)


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What is known at one moment; the gates were made before the snapshot was read."""

    snapshot: Snapshot
    gates: Gates
    open_intents: Sequence[Intent]
    #: Of the lease, from before all of this was read.
    epoch: int
    #: Until when something is begun on it, by the process's clock.
    fresh_until: float


def _with_decided(snapshot: Snapshot, open_intents: Sequence[Intent]) -> Snapshot:
    """The snapshot with what is decided and not to be seen in it: on its way, and with its room taken.

    Of what is to be seen moving the engine has taken the room off already.
    """
    ahead = with_intents(snapshot, open_intents)
    taken: Counter[str] = Counter()
    for entry in ahead.pending[len(snapshot.pending) :]:
        if snapshot.vm_by_id[entry.vm].status != "migrating":
            taken[entry.host] += promised_mb(snapshot.vm_by_id[entry.vm], entry)
    if not taken:
        return ahead
    hosts = (msgspec.structs.replace(host, free_mb=host.free_mb - taken[host.id]) for host in ahead.hosts)
    return msgspec.structs.replace(ahead, hosts=tuple(hosts))
