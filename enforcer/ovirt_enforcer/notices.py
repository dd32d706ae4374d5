"""Notices: their kinds with the sentences, and the [enforcer.notifications] section: who gets which."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from string import Template
from typing import Annotated, Any, Final, Self

import msgspec
from msgspec import Meta

from ovirt_placement.config import Patience


class Severity(StrEnum):
    """The engine's words."""

    NORMAL = "normal"
    WARNING = "warning"
    ERROR = "error"
    ALERT = "alert"


_NORMAL, _WARNING, _ERROR, _ALERT = Severity


class NoticeKind(StrEnum):
    """What is always so of each kind of notices; names stand in a text."""

    severity: Severity
    #: The alert of a webhook that it begins, those that it ends, and the facts that distinguish alerts of one
    #: name.
    begins: str
    ends: str
    by: str
    #: Unless the configuration has another; it may speak of these, and of the engine by its configured name.
    sentence: str
    facts: frozenset[str]

    RULE_VIOLATED = (
        "rule_violated", _WARNING, "RuleViolated", "", "cluster rule",
        "$rule in cluster $cluster is violated",
    )  # fmt: skip
    RULE_REPAIRED = (
        "rule_repaired", _NORMAL, "", "RuleViolated", "cluster rule",
        "$rule in cluster $cluster is no longer violated",
    )  # fmt: skip
    PLAN_WAITS = (
        "plan_waits", _WARNING, "PlanWaits", "", "cluster",
        "plan $plan of cluster $cluster waits for approval: ovirt-enforcer approve $plan",
    )  # fmt: skip
    MIGRATION_FAILED = (
        "migration_failed", _WARNING, "MigrationFailed", "", "cluster vm",
        "migration of VM $vm to host $host failed: $reason", "cluster",
    )  # fmt: skip
    BREAKER_OPEN = (
        "breaker_open", _ERROR, "BreakerOpen", "", "cluster",
        "migrations in cluster $cluster wait: $reason",
    )  # fmt: skip
    HA_ALERT = (
        "ha_alert", _ALERT, "HaReservation", "HaReservationUnknown", "cluster",
        "cluster $cluster does not survive what its HA reservation is to survive: $losses",
        "vms_without_home", "missing_mb",
    )  # fmt: skip
    HA_ALL_CLEAR = (
        "ha_all_clear", _NORMAL, "", "HaReservation HaReservationUnknown", "cluster",
        "HA reservation of cluster $cluster: $state",
    )  # fmt: skip
    HA_UNKNOWN = (
        "ha_unknown", _WARNING, "HaReservationUnknown", "", "cluster",
        "not known whether all highly available VMs of cluster $cluster would be started again: $reason",
    )  # fmt: skip
    MAINTENANCE_ENDED = (
        "maintenance_ended", _NORMAL, "", "MaintenanceFailed", "cluster",
        "maintenance run $run of cluster $cluster has ended: $reason",
    )  # fmt: skip
    MAINTENANCE_FAILED = (
        "maintenance_failed", _ALERT, "MaintenanceFailed", "", "cluster",
        "maintenance run $run of cluster $cluster has ended before its time: $reason",
    )  # fmt: skip
    DRAIN_BLOCKED = (
        "drain_blocked", _WARNING, "DrainBlocked", "", "cluster host",
        "host $host of cluster $cluster does not arrive in maintenance: $reason",
    )  # fmt: skip
    LEADER_CHANGED = (
        "leader_changed", _NORMAL, "LeaderChanged", "", "",
        "enforcer $leader leads from now on, in epoch $epoch",
    )  # fmt: skip
    ENGINE_AWAY = "engine_away", _ERROR, "EngineAway", "", "", "engine $engine is away: $reason"
    ENGINE_BACK = "engine_back", _NORMAL, "", "EngineAway", "", "engine $engine answers again"
    UNITS_DISABLED = (
        "units_disabled", _ALERT, "UnitsDisabled", "", "cluster",
        ("cluster $cluster: the engine has disabled units of its scheduling policy, and places VMs without"
         " them: $units (ovirt-placement doctor)"),
    )  # fmt: skip
    UNITS_ENABLED = (
        "units_enabled", _NORMAL, "", "UnitsDisabled", "cluster",
        "cluster $cluster: all units of its scheduling policy are enabled again",
    )  # fmt: skip
    HELD_BACK = (
        "held_back", _WARNING, "NotificationsHeldBack", "", "",
        "$count notifications were held back, since there were too many: $kinds",
    )  # fmt: skip

    def __new__(cls, value: str, *about: Any) -> Self:
        """Behind its sentence stand the facts that it has not itself."""
        one = str.__new__(cls, value)
        one._value_ = value
        one.severity, one.begins, one.ends, one.by, one.sentence, *more = about
        one.facts = frozenset(Template(one.sentence).get_identifiers()).union(more)
        return one


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

_LARGEST_NUMBER: Final = 0x7FFFFFFF


def draw_number() -> int:
    """Draw a number for an event: the engine takes each only once, for ever, so no counter would do.

    By it the engine knows an event that is sent again; that another one has it is hardly possible.
    """
    return 1 + secrets.randbelow(_LARGEST_NUMBER)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that happened, with the facts that sentences speak of."""

    kind: NoticeKind
    facts: Mapping[str, str]
    #: Ids, where the engine has what it is about.
    cluster: str | None = None
    vm: str | None = None
    #: What it reports together, each by itself; none if it reports one thing.
    carried: tuple[Notice, ...] = ()
    number: int = field(default_factory=draw_number)
    #: In seconds since the epoch.
    at: float = field(default_factory=time.time)


#: What is said of an alert that ends as another thing is reported, which has a sentence of its own.
_OVER: Final = {
    "HaReservationUnknown": "cluster {cluster}: it is known whether its HA reservation is satisfied"
}
#: The severity that an alert of each name has, whether it begins or ends: it is one of its labels.
_SEVERITIES: Final = {kind.begins: kind.severity for kind in NoticeKind if kind.begins}
#: What lasts is reported again after a day; and these end after an hour.
_LASTS_SECONDS: Final = 25 * 3600.0
_OF_AN_HOUR: Final = {
    "MigrationFailed",
    "BreakerOpen",
    "DrainBlocked",
    "LeaderChanged",
    "NotificationsHeldBack",
}


def alerts_of(notice: Notice, sentence: str) -> list[dict[str, Any]]:
    kind, found = notice.kind, []
    for name in kind.ends.split():
        text = _OVER[name].format(**notice.facts) if name in _OVER else sentence
        found.append(_alert(name, notice, text, notice.at))
    if kind.begins:
        lasts = 3600.0 if kind.begins in _OF_AN_HOUR else _LASTS_SECONDS
        found.append(_alert(kind.begins, notice, sentence, notice.at + lasts))
    return found


def _alert(name: str, notice: Notice, sentence: str, ends: float) -> dict[str, Any]:
    return {
        "labels": {
            "alertname": name,
            "severity": _SEVERITIES[name].value,
            "engine": notice.facts["engine"],
            "service": "ovirt-enforcer",
            **{label: notice.facts[label] for label in notice.kind.by.split()},
        },
        "annotations": {"summary": sentence, "kind": notice.kind.value, **notice.facts},
        "startsAt": _moment(notice.at),
        "endsAt": _moment(ends),
    }


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


_HA: Final = (NoticeKind.HA_ALERT, NoticeKind.HA_ALL_CLEAR, NoticeKind.HA_UNKNOWN)


class EngineEventSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The [enforcer.notifications] section: who is notified of what, and in which words."""

    #: What becomes an event of the engine.
    kinds: tuple[NoticeKind, ...] = (
        *_HA,
        NoticeKind.BREAKER_OPEN,
        NoticeKind.PLAN_WAITS,
        NoticeKind.MAINTENANCE_FAILED,
        NoticeKind.DRAIN_BLOCKED,
        NoticeKind.UNITS_DISABLED,
        NoticeKind.UNITS_ENABLED,
    )
    #: How many of the less urgent kinds are sent an hour; more are reported together.
    most_per_hour: Annotated[int, Meta(ge=1)] = 60


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    #: As http://HOST:9093/api/v2/alerts of Alertmanager; empty: none.
    url: Annotated[str, Meta(pattern=r"^(https?://\S+)?\Z")] = ""
    #: What is sent there.
    kinds: tuple[NoticeKind, ...] = tuple(NoticeKind)
    #: How many of the less urgent kinds are sent an hour; more are reported together.
    most_per_hour: Annotated[int, Meta(ge=1)] = 60
    #: How long one request may take.
    timeout_seconds: Patience = 10.0
    #: The CA of the receiver's certificate; else those of the system.
    ca_file: Path | None = None
    #: A file with a bearer token.
    token_file: Path | None = None


class NotificationSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    engine: EngineEventSettings = EngineEventSettings()
    webhook: WebhookSettings = WebhookSettings()
    #: Sentences in place of our own, with $names for facts.
    sentences: Mapping[NoticeKind, str] = {}

    def __post_init__(self) -> None:
        """Find out now what could not be reported later."""
        for kind, sentence in self.sentences.items():
            template = Template(sentence)
            if not template.is_valid():
                raise ValueError(f"sentence of {kind}: write $$ for a dollar sign")
            known = kind.facts | COMMON_FACTS
            for name in template.get_identifiers():
                if name not in known:
                    raise ValueError(f"sentence of {kind}: no ${name}: it has ${', $'.join(sorted(known))}")

    def sentence(self, kind: NoticeKind, facts: Mapping[str, str]) -> str:
        return Template(self.sentences.get(kind, kind.sentence)).substitute(facts)
