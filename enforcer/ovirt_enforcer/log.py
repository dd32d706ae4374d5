"""What the daemon says: all texts of its log and of its notices, what is said once, and the audit log.

Notifications say themselves what becomes of them. Sentences that are others', of an answer or an error, are
logged as they are.
"""

import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from string import Template
from typing import Any, Final, Self

from ovirt_service.daemon import BackOff
from ovirt_service.errors import UserError
from ovirt_service.log import AuditLog
from ovirt_service.repetition import Said

_log = logging.getLogger(__name__)

_INFO, _WARNING = logging.INFO, logging.WARNING


class LogText(Enum):
    """What the daemon logs, and at which level."""

    # The work for a cluster. `cluster` is "cluster NAME".
    NOT_NOW = _INFO, "{cluster}: not now: {why}"
    RESTS = _WARNING, "{cluster}: rests: {why}"
    ORDER_BEGINS = _INFO, "{cluster}: plan {plan}, applied by {who}, is carried out"
    ORDER_VOID = _WARNING, "{cluster}: plan {plan}, applied by {who}, is not carried out: {why}"
    PLAN_WAITS = _INFO, "{cluster}: plan {plan} waits for an approval"
    PLAN_DROPPED = _INFO, "{cluster}: {why}"
    STEPS_LEFT_OUT = _INFO, "{cluster}: left out, since the cluster has changed: {steps}"
    STEP_BEGINS = _INFO, "{cluster}: {step}"
    STEP_WAITS = _INFO, "{cluster}: not now: {step}: {why}"
    MOVED_BY_OTHERS = _WARNING, "{cluster}: {vm}: {reason}: {who}"
    RESTLESS = _WARNING, (
        "{cluster}: {vm}: {reason}, {often} within {seconds:.0f} s;"
        " its soft rules are not repaired meanwhile: {who}"
    )  # fmt: skip
    # Requests and migrations.
    UNANSWERED = _WARNING, "a request about one migration was not answered: {error}"
    TRANSITION = _INFO, "{intent}: {state}"
    OVERTAKEN = _WARNING, "{intent}: {why}"
    LATE = _WARNING, "{intent}: it takes long; what waits for it goes on when it ends"
    # Maintenance runs.
    HOST_WAITS = _INFO, "maintenance of host {host}: {phase}: {why}"
    HOST_ENTERS = _INFO, "maintenance of host {host}: {phase}"
    COMMAND_BEGINS = _INFO, "maintenance of host {host}: {kind} is run"
    COMMAND_ENDED = _INFO, "maintenance command of host {host}: {why}"
    RUN_WAITS = _INFO, "maintenance run {run}: {why}"
    RUN_ENDED = _INFO, "maintenance run {run} of cluster {cluster}: {state}: {why}"
    RUN_FAILED = _WARNING, "maintenance run {run} of cluster {cluster}: {state}: {why}"
    FLAG_FAILED = _WARNING, "maintenance run {run}: {what}: {error}"
    # Who leads.
    LEADS = _INFO, "the leader from now on: epoch {epoch} of the lease, as {name}"
    FOLLOWS = _INFO, "not the leader: {name} leads"
    LEADS_NO_MORE = _WARNING, "no longer the leader: epoch {epoch} is over"
    LEASE_LEFT = _WARNING, "the lease is left to expire: {error}"
    CLOCK_SET_BACK = (
        _WARNING, "the database's clock was set back: what is dated in the future counts as of now"
    )  # fmt: skip
    ENDED_AT_WORK = _INFO, "ended in the middle of its work, without the answer of engine or store"
    # What watchers see.
    DRAIN_BLOCKED = _WARNING, "host {host} does not arrive in maintenance: {reason}"
    UNITS_DISABLED = _WARNING, "cluster {cluster}: the engine has disabled {units} of its policy"
    UNITS_ENABLED = _INFO, "cluster {cluster}: all units of its policy are enabled again"
    NAME_UNMATCHED = _WARNING, "{sentence}: what it is to protect or to ask for is not heeded"
    NAME_MATCHES = _INFO, "{where}: {word} matches something again, or is not named any more"
    VMS_FORGOTTEN = _INFO, "forgot VMs that the engine has had no more for a week: {vms}"
    BAD_PROPERTY = _WARNING, "VM {vm}: custom property {name}{complaint}"
    HA_CHECK_FAILED = _WARNING, "HA watch: {error}"
    KEYS_LACK = (
        _INFO, "placement keys: disks, NICs or owners are still unknown: keys on them are not recorded"
    )  # fmt: skip

    def __init__(self, level: int, words: str) -> None:
        self.level = level
        self.words = words


def report(text: LogText, **facts: object) -> None:
    _log.log(text.level, "%s", text.words.format(**facts))


class Severity(StrEnum):
    """The engine's words."""

    NORMAL = "normal"
    WARNING = "warning"
    ERROR = "error"
    ALERT = "alert"


_NORMAL, _WARNS, _ERROR, _ALERT = Severity.NORMAL, Severity.WARNING, Severity.ERROR, Severity.ALERT


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
        "rule_violated", _WARNS, "RuleViolated", "", "cluster rule",
        "$rule in cluster $cluster is violated",
    )  # fmt: skip
    RULE_REPAIRED = (
        "rule_repaired", _NORMAL, "", "RuleViolated", "cluster rule",
        "$rule in cluster $cluster is no longer violated",
    )  # fmt: skip
    PLAN_WAITS = (
        "plan_waits", _WARNS, "PlanWaits", "", "cluster",
        "plan $plan of cluster $cluster waits for approval: ovirt-enforcer approve $plan",
    )  # fmt: skip
    MIGRATION_FAILED = (
        "migration_failed", _WARNS, "MigrationFailed", "", "cluster vm",
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
        "ha_unknown", _WARNS, "HaReservationUnknown", "", "cluster",
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
        "drain_blocked", _WARNS, "DrainBlocked", "", "cluster host",
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
        "held_back", _WARNS, "NotificationsHeldBack", "", "",
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
    map(NoticeKind, ("rule_violated", "rule_repaired", "plan_waits", "migration_failed", "leader_changed"))
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
    carried: tuple["Notice", ...] = ()
    number: int = field(default_factory=draw_number)
    #: In seconds since the epoch.
    at: float = field(default_factory=time.time)


#: After a failure: this, doubled with each further one up to the interval.
_FIRST_PAUSE_SECONDS = 1.0
#: A failure that lasts is reported again after this, doubled each time up to the longest.
_FIRST_QUIET_SECONDS = 60.0
_LONGEST_QUIET_SECONDS = 3600.0
_NUMBER = re.compile(r"\d+")


@dataclass(slots=True)
class RetryState:
    """All of this may be lost at any moment: after a restart it is found out again."""

    name: str
    due: float = 0.0
    #: What it fails of, with its name; empty where it does not, or that is reported elsewhere.
    failure: str = ""
    _failures: int = 0
    #: When a failure that lasts is reported again, and for how long it is not reported after that.
    _again: float = 0.0
    _quiet: float = 0.0
    _said: Said = field(default_factory=Said)

    @property
    def failing(self) -> bool:
        return self._failures > 0

    def announce(self, plan: Sequence[str], gist: str | None = None) -> None:
        """Log a plan line by line, unless it was logged last, or has the same gist as that which was."""
        if self._said.is_news("plan", gist or "\n".join(plan)):
            for line in plan:
                _log.info("%s", line)

    def say(self, text: LogText, **facts: object) -> None:
        words = text.words.format(**facts)
        if self._said.is_news("state", words):
            _log.log(text.level, "%s", words)

    def warn_once(self, text: str) -> None:
        """Log what should not be; the same never again."""
        if self._said.is_news(text):
            _log.warning("%s: %s", self.name, text)

    def fail(self, error: Exception, now: float, longest_pause: float) -> None:
        """Log a failure, in full if no person can repair it, and put off the next look."""
        complaint = f"{type(error).__name__}: {error}"
        self.failure = f"{self.name}: {str(error) or type(error).__name__}"
        # How old something is by now makes no other failure of it.
        news = self._said.is_news("failure", _NUMBER.sub("", complaint))
        if news:
            self._quiet = _FIRST_QUIET_SECONDS
        if news or now >= self._again:
            self._again, self._quiet = now + self._quiet, min(2 * self._quiet, _LONGEST_QUIET_SECONDS)
            if isinstance(error, UserError):
                _log.warning("%s: %s", self.name, error)
            else:
                _log.error("%s: %s", self.name, complaint, exc_info=error)
        self.put_off(now, longest_pause)

    def attempt(self, work: Callable[[], object], clock: Callable[[], float], longest_pause: float) -> bool:
        """Do something unless it is put off; whether it was done. What fails is logged and put off."""
        if self.due > clock():
            return False
        try:
            work()
        except Exception as error:  # the enforcer has other work, too
            self.fail(error, clock(), longest_pause)
            return False
        self.recover()
        return True

    def put_off(self, now: float, longest_pause: float) -> None:
        """Put off the next look, each time longer, for a failure that is reported elsewhere."""
        self._failures += 1
        self.due = now + BackOff(_FIRST_PAUSE_SECONDS, longest_pause).pause_after(self._failures)

    def recover(self) -> None:
        """The last look did not fail; log it if the one before did."""
        if self._said.is_over("failure"):
            _log.info("%s: works again", self.name)
        self._failures, self.failure = 0, ""

    def forget_failure(self) -> None:
        """Whether it would still fail is not known here any more, and is another's to say."""
        self._said.is_over("failure")
        self._failures, self.failure = 0, ""


#: Its lines go to the file that the configuration names, and never into the log of the service.
AUDIT_LOG: Final = AuditLog("ovirt_enforcer.audit", "[enforcer] audit_log", in_log=False)


def audit(kind: str, sentence: str, **facts: Any) -> None:
    """Write a line: the kind of event, its facts (ids and names), and a sentence for people."""
    AUDIT_LOG.write({"kind": kind, **facts, "sentence": sentence})
