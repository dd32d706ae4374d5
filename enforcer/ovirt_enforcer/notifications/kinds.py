"""The kinds of notices, with their severity and the sentence that each is sent in."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from string import Template
from typing import Final, NamedTuple


class NoticeKind(StrEnum):
    RULE_VIOLATED = "rule_violated"
    RULE_REPAIRED = "rule_repaired"
    PLAN_WAITS = "plan_waits"
    MIGRATION_FAILED = "migration_failed"
    BREAKER_OPEN = "breaker_open"
    HA_ALERT = "ha_alert"
    HA_ALL_CLEAR = "ha_all_clear"
    HA_UNKNOWN = "ha_unknown"
    MAINTENANCE_ENDED = "maintenance_ended"
    MAINTENANCE_FAILED = "maintenance_failed"
    DRAIN_BLOCKED = "drain_blocked"
    LEADER_CHANGED = "leader_changed"
    ENGINE_AWAY = "engine_away"
    ENGINE_BACK = "engine_back"
    UNITS_DISABLED = "units_disabled"
    UNITS_ENABLED = "units_enabled"
    HELD_BACK = "held_back"


class Severity(StrEnum):
    """The engine's words."""

    NORMAL = "normal"
    WARNING = "warning"
    ERROR = "error"
    ALERT = "alert"


class About(NamedTuple):
    """What is always so of a kind."""

    severity: Severity
    #: Its sentence, unless the configuration has another.
    sentence: str
    #: What a sentence may speak of, besides the engine by its configured name.
    facts: frozenset[str]


def _about(severity: Severity, sentence: str, *more: str) -> About:
    return About(severity, sentence, frozenset(Template(sentence).get_identifiers()).union(more))


ABOUT: Final[Mapping[NoticeKind, About]] = {
    NoticeKind.RULE_VIOLATED: _about(Severity.WARNING, "$rule in cluster $cluster is violated"),
    NoticeKind.RULE_REPAIRED: _about(Severity.NORMAL, "$rule in cluster $cluster is satisfied again"),
    NoticeKind.PLAN_WAITS: _about(
        Severity.WARNING, "plan $plan of cluster $cluster waits for approval: ovirt-enforcer approve $plan"
    ),
    NoticeKind.MIGRATION_FAILED: _about(
        Severity.WARNING, "migration of VM $vm to host $host failed: $reason", "cluster"
    ),
    NoticeKind.BREAKER_OPEN: _about(Severity.ERROR, "migrations in cluster $cluster wait: $reason"),
    NoticeKind.HA_ALERT: _about(
        Severity.ALERT,
        "cluster $cluster does not survive what its HA reservation is to survive: $losses",
        "vms_without_home",
        "missing_mb",
    ),
    NoticeKind.HA_ALL_CLEAR: _about(Severity.NORMAL, "HA reservation of cluster $cluster: $state"),
    NoticeKind.HA_UNKNOWN: _about(
        Severity.WARNING,
        "not known whether all highly available VMs of cluster $cluster would be started again: $reason",
    ),
    NoticeKind.MAINTENANCE_ENDED: _about(
        Severity.NORMAL, "maintenance run $run of cluster $cluster has ended: $reason"
    ),
    NoticeKind.MAINTENANCE_FAILED: _about(
        Severity.ALERT, "maintenance run $run of cluster $cluster has ended before its time: $reason"
    ),
    NoticeKind.DRAIN_BLOCKED: _about(
        Severity.WARNING, "host $host of cluster $cluster does not arrive in maintenance: $reason"
    ),
    NoticeKind.LEADER_CHANGED: _about(Severity.NORMAL, "enforcer $leader leads from now on, in epoch $epoch"),
    NoticeKind.ENGINE_AWAY: _about(Severity.ERROR, "engine $engine is away: $reason"),
    NoticeKind.ENGINE_BACK: _about(Severity.NORMAL, "engine $engine answers again"),
    NoticeKind.UNITS_DISABLED: _about(
        Severity.ALERT,
        "cluster $cluster: the engine has disabled units of its scheduling policy, and places VMs without"
        " them: $units (ovirt-placement doctor)",
    ),
    NoticeKind.UNITS_ENABLED: _about(
        Severity.NORMAL, "cluster $cluster: all units of its scheduling policy are enabled again"
    ),
    NoticeKind.HELD_BACK: _about(
        Severity.WARNING, "$count notifications were held back, since there were too many: $kinds"
    ),
}

#: What many of may be held back, and reported together later; never what is critical, or takes that back.
LIMITED: Final = frozenset(
    {
        NoticeKind.RULE_VIOLATED,
        NoticeKind.RULE_REPAIRED,
        NoticeKind.PLAN_WAITS,
        NoticeKind.MIGRATION_FAILED,
        NoticeKind.LEADER_CHANGED,
    }
)

#: Of all that is reported.
COMMON_FACTS: Final = frozenset({"engine"})
