"""What stands in the way of a repair, a migration or a plan, as data; `answers.plans.obstacles` says it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ovirt_placement.rules.verdict import Reason


class ObstacleKind(StrEnum):
    """What it is. The comments name the fields that count; `vms`, `hosts` and `groups` are ids."""

    #: Another rule of `groups` that `vms` must satisfy as well, with what it `asks`.
    RULE = "rule"
    #: `vms` are not migrated, wherever to: for `reasons`, in the `words` of who holds them, or since no
    #: host lets them in.
    STAYS = "stays"
    #: Filters leave `vms` no other hosts than `hosts`.
    TARGETS = "targets"
    #: `hosts` have no more than `available` MiB free.
    MEMORY = "memory"
    #: No host that is up would do.
    NO_HOST = "no_host"
    #: The host itself does not answer: `reasons`.
    HOST_AWAY = "host_away"
    #: No host of the cluster is up.
    NO_HOST_UP = "no_host_up"
    #: The VMs `needed` a host each, and only `available` can have one.
    HOST_EACH = "host_each"
    #: This many VMs (`count`) need `needed` places, and there are only `available`.
    PLACES = "places"
    #: Migrations of `vms` were left out: with them, `unplaced` would not restart if `hosts` failed, and
    #: `needed` VMs in sum over all failures, of which it is `available` now.
    RESERVATION = "reservation"
    #: While a host is out, `unplaced` would not restart if `hosts` failed; `needed` VMs in sum over all
    #: failures, of which it is `available` now.
    OUT = "out"
    #: With all that were to be brought back, highly available VMs would survive fewer failures.
    NO_WAY_BACK = "no_way_back"
    #: No way to take a host out was found, and not all could be tried.
    NO_ROUND = "no_round"
    #: No sequence of legal migrations does it; or none was found, and not all could be tried.
    NO_SEQUENCE = "no_sequence"
    NOT_FOUND = "not_found"
    #: What counts on its hosts is `needed` above the limit `available`, and was `before` the plan; of `count`
    #: such limits that were exceeded then this many (`repaired`) are not any more.
    ABOVE = "above"
    #: For a rule `needed` VMs must still move, and `before` before the plan; of `count` hosts, or failure
    #: domains, that were above its limit then this many (`repaired`) are not any more.
    NEARER = "nearer"
    #: `hosts` refuse `vms`, each by itself, for `reasons`; or all of them together.
    REFUSED = "refused"
    REFUSED_TOGETHER = "refused_together"
    #: `hosts` lack memory for `vms`: `needed` MiB, of which `available` are free.
    NO_MEMORY = "no_memory"
    NO_MEMORY_TOGETHER = "no_memory_together"
    #: Another than the planner holds the repair, or `vms`, back; in their `words`.
    HELD = "held"
    #: The cluster of a plan, a VM or a host is gone.
    CLUSTER_GONE = "cluster_gone"
    VM_GONE = "vm_gone"
    HOST_GONE = "host_gone"
    #: `vms` do not run where they did (the first of `hosts`), but on the second, or on none.
    ELSEWHERE = "elsewhere"
    #: `vms` are gone, down or in another cluster.
    NOT_HERE = "not_here"
    #: Their former host is not up.
    HOME_DOWN = "home_down"
    #: It would violate the rules of `groups`.
    VIOLATES = "violates"
    #: The rules of `groups` have changed since a plan was made: it leads elsewhere for them.
    RULES_CHANGED = "rules_changed"


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
