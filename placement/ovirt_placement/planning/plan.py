"""What is meant to be done in one cluster, as data: steps, what each waits for, and what is not repaired."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from functools import cached_property

import msgspec

from ovirt_placement.planning.obstacles import Obstacle
from ovirt_placement.rules.verdict import Reason


class Struct(msgspec.Struct, frozen=True, kw_only=True):
    """An immutable record that can be written as JSON."""


class StepPurpose(StrEnum):
    """What a step is for where no group says it; a rule without a group is known by its family."""

    #: It makes room for steps after it.
    ROOM = "room"
    #: It brings a VM back to where the plan began, or, in a plan that undoes another, where that one began.
    BACK = "back"
    #: It brings a VM that stepped aside on to where it may stay.
    ON = "on"
    #: It takes a VM to a host that its placement keys accept.
    KEYS = "placement_keys"
    #: It takes a VM off a host that is to be empty.
    MAINTENANCE = "maintenance"


class Step(Struct, frozen=True):
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


class Remaining(Struct, frozen=True):
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


class RefusedStep(Struct, frozen=True):
    """A step that a search took for legal and a rule refuses: the two disagree, and the rule is right."""

    step: Step
    #: By the rule of which name, and why.
    vetoes: tuple[tuple[str, Reason], ...]


class LostReservation(Struct, frozen=True):
    """Hosts that must not fail together, and VMs that find no home then."""

    hosts: tuple[str, ...]
    #: The failure domains that fail, where domains do.
    domains: tuple[str, ...]
    vms: tuple[str, ...]


class Reservation(Struct, frozen=True):
    """What becomes of an HA reservation that a plan was to restore."""

    #: What is not survived at the end of the plan.
    lost: tuple[LostReservation, ...]
    #: Whether all failures were judged.
    known: bool
    #: No legal migrations leave fewer VMs without a home, and none that leave as few are fewer.
    proven: bool
    #: What it waits for; empty where nothing.
    waits: str = ""


class Plan(Struct, frozen=True, dict=True):
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
