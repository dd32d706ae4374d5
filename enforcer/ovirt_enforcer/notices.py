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
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ovirt_placement.config import Patience


class NoticeKind(StrEnum):
    """The kinds of notices, with their severity and the sentence that each is sent in."""

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


_HOUR: Final = 3600.0
#: What lasts is reported again after a day.
_DAY_AND_MORE: Final = 25 * _HOUR


@dataclass(frozen=True, slots=True)
class About:
    """What is always so of a kind; names stand in a text."""

    severity: Severity
    #: Unless the configuration has another.
    sentence: str
    #: The alert of a webhook that it begins, and for how many seconds unless another kind ends it.
    begins: str | None = None
    lasts: float = _DAY_AND_MORE
    #: The alerts that it ends, the facts by which alerts of one name are distinguished, and those that its
    #: own sentence has not.
    ends: str = ""
    by: str = "cluster"
    more: str = ""

    @property
    def facts(self) -> frozenset[str]:
        """What a sentence may speak of, besides the engine by its configured name."""
        return frozenset(Template(self.sentence).get_identifiers()).union(self.more.split())


_NORMAL, _WARNING, _ERROR, _ALERT = Severity.NORMAL, Severity.WARNING, Severity.ERROR, Severity.ALERT

ABOUT: Final[Mapping[NoticeKind, About]] = {
    NoticeKind.RULE_VIOLATED: About(
        _WARNING, "$rule in cluster $cluster is violated", "RuleViolated", by="cluster rule"
    ),
    NoticeKind.RULE_REPAIRED: About(
        _NORMAL, "$rule in cluster $cluster is no longer violated", ends="RuleViolated", by="cluster rule"
    ),
    NoticeKind.PLAN_WAITS: About(
        _WARNING,
        "plan $plan of cluster $cluster waits for approval: ovirt-enforcer approve $plan",
        "PlanWaits",
    ),
    NoticeKind.MIGRATION_FAILED: About(
        _WARNING,
        "migration of VM $vm to host $host failed: $reason",
        "MigrationFailed",
        lasts=_HOUR,
        by="cluster vm",
        more="cluster",
    ),
    NoticeKind.BREAKER_OPEN: About(
        _ERROR, "migrations in cluster $cluster wait: $reason", "BreakerOpen", lasts=_HOUR
    ),
    NoticeKind.HA_ALERT: About(
        _ALERT,
        "cluster $cluster does not survive what its HA reservation is to survive: $losses",
        "HaReservation",
        ends="HaReservationUnknown",
        more="vms_without_home missing_mb",
    ),
    NoticeKind.HA_ALL_CLEAR: About(
        _NORMAL, "HA reservation of cluster $cluster: $state", ends="HaReservation HaReservationUnknown"
    ),
    NoticeKind.HA_UNKNOWN: About(
        _WARNING,
        "not known whether all highly available VMs of cluster $cluster would be started again: $reason",
        "HaReservationUnknown",
    ),
    NoticeKind.MAINTENANCE_ENDED: About(
        _NORMAL, "maintenance run $run of cluster $cluster has ended: $reason", ends="MaintenanceFailed"
    ),
    NoticeKind.MAINTENANCE_FAILED: About(
        _ALERT,
        "maintenance run $run of cluster $cluster has ended before its time: $reason",
        "MaintenanceFailed",
    ),
    NoticeKind.DRAIN_BLOCKED: About(
        _WARNING,
        "host $host of cluster $cluster does not arrive in maintenance: $reason",
        "DrainBlocked",
        lasts=_HOUR,
        by="cluster host",
    ),
    NoticeKind.LEADER_CHANGED: About(
        _NORMAL, "enforcer $leader leads from now on, in epoch $epoch", "LeaderChanged", lasts=_HOUR, by=""
    ),
    NoticeKind.ENGINE_AWAY: About(_ERROR, "engine $engine is away: $reason", "EngineAway", by=""),
    NoticeKind.ENGINE_BACK: About(_NORMAL, "engine $engine answers again", ends="EngineAway", by=""),
    NoticeKind.UNITS_DISABLED: About(
        _ALERT,
        "cluster $cluster: the engine has disabled units of its scheduling policy, and places VMs without"
        " them: $units (ovirt-placement doctor)",
        "UnitsDisabled",
    ),
    NoticeKind.UNITS_ENABLED: About(
        _NORMAL,
        "cluster $cluster: all units of its scheduling policy are enabled again",
        ends="UnitsDisabled",
    ),
    NoticeKind.HELD_BACK: About(
        _WARNING,
        "$count notifications were held back, since there were too many: $kinds",
        "NotificationsHeldBack",
        lasts=_HOUR,
        by="",
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
_SEVERITIES: Final = {about.begins: about.severity for about in ABOUT.values() if about.begins}


def alerts_of(notice: Notice, sentence: str) -> list[dict[str, Any]]:
    about = ABOUT[notice.kind]
    found = []
    for name in about.ends.split():
        text = _OVER[name].format(**notice.facts) if name in _OVER else sentence
        found.append(_alert(name, notice, text, notice.at))
    if about.begins is not None:
        found.append(_alert(about.begins, notice, sentence, notice.at + about.lasts))
    return found


def _alert(name: str, notice: Notice, sentence: str, ends: float) -> dict[str, Any]:
    return {
        "labels": {
            "alertname": name,
            "severity": _SEVERITIES[name].value,
            "engine": notice.facts["engine"],
            "service": "ovirt-enforcer",
            **{label: notice.facts[label] for label in ABOUT[notice.kind].by.split()},
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
            known = ABOUT[kind].facts | COMMON_FACTS
            for name in template.get_identifiers():
                if name not in known:
                    raise ValueError(f"sentence of {kind}: no ${name}: it has ${', $'.join(sorted(known))}")

    def sentence(self, kind: NoticeKind, facts: Mapping[str, str]) -> str:
        return Template(self.sentences.get(kind, ABOUT[kind].sentence)).substitute(facts)
