"""A plan of one cluster as data, what stands in its way, and how long planning may go on."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import msgspec

from ovirt_placement.model.record import Worded
from ovirt_placement.rules.elements.verdict import Reason


class ObstacleKind(Worded):
    """What it is, in words with the fields that count; `vms`, `hosts` and `groups` are ids there."""

    RULE = "rule", "{vms} must also run {asks}{of_groups}"
    #: For `reasons`, in the `words` of who holds them, or since no host lets them in.
    STAYS = "stays", "{vms} stays where it is: {why}"
    #: Filters leave no others.
    TARGETS = "targets", "{vms} may only go to {hosts}"
    MEMORY = "memory", "{hosts} has {available} MiB free"
    NO_HOST = "no_host", "no host that is up would do for it"
    #: It does not answer, or a VM is on its way there.
    HOST_AWAY = "host_away", "{why}"
    NO_HOST_UP = "no_host_up", "no host is up"
    HOST_EACH = "host_each", "its {count} running VMs need a host each, and only {available} can have one"
    PLACES = "places", "its {count} running VMs need {needed} places, and there are only {available}"
    #: Of these two `needed` VMs in sum over all failures, of which it is `available` now.
    RESERVATION = (
        "reservation",
        (
            "migrations of {vms} were left out: if {hosts} failed after them, {unplaced} would not restart"
            " (over all failures {lost}, now {available}; see ovirt-placement ha-check)"
        ),
    )
    OUT = (
        "out",
        (
            "while it is out, {unplaced} would not restart if {hosts} failed"
            " (over all failures {lost}, now {available}; see ovirt-placement ha-check)"
        ),
    )
    NO_WAY_BACK = "no_way_back", "highly available VMs would survive fewer failures than now"
    NO_ROUND = "no_round", "no way to take it out was found; not all could be tried"
    NO_SEQUENCE = "no_sequence", "no sequence of legal migrations repairs it"
    NOT_FOUND = (
        "not_found",
        "no sequence of legal migrations that repairs it was found; not all could be tried",
    )
    #: Of a soft rule.
    OUTWEIGHED = (
        "outweighed",
        "repairing it takes headroom, or violates what counts no less, if it can be repaired",
    )
    #: Of `count` limits, hosts or failure domains that were exceeded, `repaired` are not any more.
    ABOVE = "above", "it remains above its limit of {available} by {needed}{before}{of_sums}"
    NEARER = "nearer", "{still} must still move for it{before}{of_places}"
    #: Each by itself; or all of them together.
    REFUSED = "refused", "{vms} to {hosts}: {why}"
    REFUSED_TOGETHER = "refused_together", "all together to {hosts}: {why}"
    NO_MEMORY = "no_memory", "{vms} to {hosts}: {needed} MiB needed, {available} MiB free"
    NO_MEMORY_TOGETHER = (
        "no_memory_together",
        "all together to {hosts}: {needed} MiB needed, {available} MiB free",
    )
    #: Another than the planner holds the repair, or VMs, back.
    HELD = "held", "{words}"
    CLUSTER_GONE = "cluster_gone", "its cluster is gone"
    VM_GONE = "vm_gone", "VM {vms} is gone"
    HOST_GONE = "host_gone", "host {hosts} is gone"
    #: The first of `hosts` is where they ran; on the second they are now, or on none.
    ELSEWHERE = "elsewhere", "{vms} is {there}, not on {home}"
    NOT_HERE = "not_here", "it is gone, down, or in another cluster"
    HOME_DOWN = "home_down", "its former host {hosts} is not up"
    VIOLATES = "violates", "it would violate {groups}"
    RULES_CHANGED = (
        "rules_changed",
        "the rules have changed since it was made: it leads elsewhere for {groups}",
    )


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One thing that stands in the way."""

    kind: ObstacleKind
    vms: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    #: Ids of VMs, too.
    unplaced: tuple[str, ...] = ()
    asks: str = ""
    #: Numbers of hosts, places or MiB.
    needed: int = 0
    available: int = 0
    count: int = 0
    repaired: int = 0
    before: int = 0
    reasons: tuple[Reason, ...] = ()
    words: str = ""


class StepPurpose(Worded):
    """What a step is for where no group says it; a rule without a group is known by its family."""

    ROOM = "room", "makes room for the next steps"
    #: To where the plan began; or where another one began, which is undone.
    BACK = "back", "goes back to where it was"
    HOME = "home", "goes back to where it was"
    ON = "on", "moves on from its temporary host"
    KEYS = "placement_keys", "to a host that its placement keys accept"
    MAINTENANCE = "maintenance", "off a host that is to be empty"


class Step(msgspec.Struct, frozen=True):
    """One migration request: of a VM, or of a whole positive group at once. Everything is given as ids."""

    #: All VMs that it moves, with the host that each leaves, in the same order.
    vms: tuple[str, ...]
    sources: tuple[str, ...]
    target: str
    #: Violated groups (or legacy labels) that the VMs belong to; none, if the step is for something else.
    groups: tuple[str, ...]
    #: Those of `groups` that are satisfied afterwards.
    repairs: tuple[str, ...]
    #: Places in the plan, from 0, of the steps that must have ended before this one begins.
    after: tuple[int, ...] = ()
    #: How long the migration is estimated to take.
    seconds: float = 0.0
    purpose: StepPurpose = StepPurpose.ROOM
    #: Whether it is taken for the HA reservation.
    reserves: bool = False

    @property
    def closure(self) -> bool:
        """Whether the engine is asked to move all VMs of the positive group with the first one."""
        return len(self.vms) > 1


class Remaining(msgspec.Struct, frozen=True):
    """A violated rule (or several groups that shared VMs tie together) that the steps do not repair."""

    #: Affinity groups, or a legacy label.
    groups: tuple[str, ...]
    #: `vm_affinity`, `host_affinity` or `placement_keys`.
    family: str
    #: What the rule asks: "together", "apart", "on its hosts" ...
    asks: str
    hard: bool
    #: VMs that violate a rule or share the rule.
    vms: tuple[str, ...]
    #: What stands in the way; nothing where its repair was not asked for.
    obstacles: tuple[Obstacle, ...]


class RefusedStep(msgspec.Struct, frozen=True):
    """A step that a search took for legal and a rule refuses: the two disagree, and the rule is right."""

    step: Step
    #: By the rule of which name, and why.
    vetoes: tuple[tuple[str, Reason], ...]


class LostReservation(msgspec.Struct, frozen=True):
    """Hosts that must not fail together, and VMs that find no home then."""

    hosts: tuple[str, ...]
    #: The failure domains that fail, where domains do.
    domains: tuple[str, ...]
    vms: tuple[str, ...]


class Reservation(msgspec.Struct, frozen=True):
    """What becomes of an HA reservation that a plan was to restore."""

    #: What is not survived at the end of the plan.
    lost: tuple[LostReservation, ...]
    #: Whether all failures were judged.
    known: bool
    #: No legal migrations leave fewer VMs without a home, and none that leave as few are fewer.
    proven: bool
    #: What it waits for; empty where nothing.
    waits: str = ""


class Plan(msgspec.Struct, frozen=True, dict=True):
    """The steps for one cluster. Every state on the way is legal in capacity and in hard rules."""

    cluster: str
    #: Which strategy made it.
    strategy: str
    #: What its dice were cast with: the same strategy with this seed makes the same plan of the same cluster.
    seed: int | None = None
    steps: tuple[Step, ...] = ()
    #: Every violation that stays, of every family; what the plan was not asked to repair as well.
    remaining: tuple[Remaining, ...] = ()
    #: Steps that were dropped.
    refused: tuple[RefusedStep, ...] = ()
    #: Targets whose headroom is given up, for a hard rule.
    crowded: tuple[str, ...] = ()
    #: What fails less well afterwards, at its worst, since the rules that are repaired leave no other way.
    costs: tuple[LostReservation, ...] = ()
    #: No plan violates fewer hard rules, none of these fewer soft ones by priority, and none of these has
    #: fewer migrations.
    proven: bool = True
    #: Migrations that any plan has that leaves no more violated than this one: hard rules first, then what is
    #: taken of headroom, then soft rules by priority. Never too many; equal to `migrations` if `proven`.
    at_least: int = 0
    #: How long it is estimated to take, in seconds, with two migrations from and to each host at once.
    seconds: float = 0.0
    #: The HA reservation of the cluster; None where it was not asked for, or there is none.
    reservation: Reservation | None = None
    #: What would go round in circles with rules, balance and enforcer against each other, in lines; empty
    #: where nothing would, and where it was not looked for.
    loop: str = ""

    @property
    def migrations(self) -> int:
        """How many VMs are migrated; a VM that is migrated twice counts twice."""
        return sum(len(step.vms) for step in self.steps)

    @cached_property
    def id(self) -> str:
        """A digest of the cluster and its steps: equal plans have equal ids, on every machine."""
        moves = [(step.vms, step.sources, step.target, step.after) for step in self.steps]
        return hashlib.sha256(msgspec.json.encode((self.cluster, moves))).hexdigest()[:12]


#: Of the time by the clock that is left after a stage, the part that it may use up on a busy machine.
_LENT = 0.5


@dataclass(frozen=True, slots=True)
class Deadline:
    """`seconds_left` says how much time there still is: 0 or less once it is over or planning is to stop.

    That is the limit, by the clock. Shares of it are counted by `work_left`, where it is given: the same in
    seconds in which the process had a CPU, so that a stage does as much on a busy machine as on an idle one,
    as far as the limit allows it.
    """

    seconds_left: Callable[[], float]
    work_left: Callable[[], float] | None = None

    @classmethod
    def after(
        cls,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.process_time,
    ) -> Self:
        """A number of seconds from now by the clock; work is what of it the process has a CPU for.

        Threads that work side by side count as one.
        """
        began, worked = clock(), cpu()
        return cls(
            lambda: seconds - (clock() - began), lambda: seconds - min(clock() - began, cpu() - worked)
        )

    @property
    def over(self) -> bool:
        return self.seconds_left() <= 0.0 or (self.work_left is not None and self.work_left() <= 0.0)

    def within(self, share: float, lent: float = _LENT) -> Deadline:
        """A deadline that ends once this share, 0 to 1, of the time that is left now is used.

        Where work is counted it is the share of that, and `lent` is how much of the rest by the clock it may
        use up, too; 0 where what comes after it must be done.
        """
        left = self.seconds_left()
        if left == math.inf:
            return self  # a share of no limit is none
        rest = left * (1.0 - share)
        if self.work_left is None:
            return Deadline(lambda: self.seconds_left() - rest)
        work_left, unworked = self.work_left, self.work_left() * (1.0 - share)
        return Deadline(lambda: self.seconds_left() - rest * (1.0 - lent), lambda: work_left() - unworked)

    def later(self, seconds: float) -> Deadline:
        """One that ends so much later by the clock, and in which no work is counted."""
        return Deadline(lambda: self.seconds_left() + seconds)


NEVER = Deadline(lambda: math.inf)
NO_TIME = Deadline(lambda: 0.0)
#: Moves that are checked by all rules however late it is, so that no short plan is lost.
ALWAYS_CHECKED = 32
