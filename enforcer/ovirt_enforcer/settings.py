"""The [enforcer] section of the configuration, and what of it is recorded for commands to go by."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError
from msgspec import Meta

from ovirt_enforcer.log import COMMON_FACTS, NoticeKind
from ovirt_placement.config import NAMES, ClusterName, GroupName, HostName, Patience, VmName

#: Clocks are set back by no more: an earlier start may seem to come after a later one by so much.
_MOST_SET_BACK: Final = timedelta(hours=3)
_CRON_FIELDS: Final = 5


class Window(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Begins whenever the clocks of a zone show what `start` says, and lasts this many hours of real time."""

    #: Minute, hour, day of the month, month, day of the week.
    start: str
    #: Real hours, also when clocks are changed.
    hours: Annotated[float, Meta(gt=0, le=744)]
    #: A name of the tz database.
    time_zone: str = "UTC"
    #: Only these clusters, by name, id or pattern; none: all.
    clusters: tuple[ClusterName, ...] = ()

    def __post_init__(self) -> None:
        """Raise `ValueError` for what is no expression, begins never, or is no zone."""
        try:
            if len(self.start.split()) != _CRON_FIELDS:
                raise CronSimError(f"it needs {_CRON_FIELDS} fields")
            next(CronSim(self.start, datetime(2024, 1, 1, tzinfo=self.zone)))
        except (CronSimError, StopIteration) as error:
            why = f"{error}".lower() or "it never comes"
            raise ValueError(f'start: "{self.start}" is no time such as "0 22 * * 1-5" ({why})') from None

    @cached_property
    def zone(self) -> ZoneInfo:
        try:
            return ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f'time_zone: "{self.time_zone}" is none that this machine knows') from None

    def seconds_left(self, now: datetime) -> float:
        """How long it stays open from a moment on, which has a time zone, be it another one; 0 if closed."""
        length, left = timedelta(hours=self.hours), 0.0
        for start in self._starts(now - length):
            # Times of the same zone would be compared, and added to, by what the clocks show.
            elapsed = now.timestamp() - start.timestamp()
            if elapsed < 0:
                break
            left = max(left, length.total_seconds() - elapsed)
        return left

    def next_start(self, now: datetime) -> datetime:
        return next(at for at in self._starts(now) if at.timestamp() > now.timestamp())

    def _starts(self, around: datetime) -> CronSim:
        return CronSim(self.start, (around - _MOST_SET_BACK).astimezone(self.zone))


Seconds = Annotated[float, Meta(gt=0)]
NoOrMoreSeconds = Annotated[float, Meta(ge=0)]
Hours = Annotated[float, Meta(gt=0)]
#: As the engine lets tags be named, or a pattern; what else it took for a search of its own.
Tag = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_*-]*\Z", extra={NAMES: "tag"})]
Count = Annotated[int, Meta(ge=1)]
Percent = Annotated[float, Meta(ge=0, le=100)]


class Mode(StrEnum):
    """What becomes of a step that a plan asks for."""

    OBSERVE = "observe"  # it is logged
    APPROVE = "approve"  # it is taken once a person approved of the plan
    ENFORCE = "enforce"  # it is taken


class HaWatchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How HA reservations are watched."""

    #: How long a reservation must be satisfied, or not known, before that is reported; doubled each time
    #: within a day, up to an hour.
    hold_seconds: NoOrMoreSeconds = 60.0
    #: Restore violated reservations by migrations.
    repair: bool = False


class MaintenanceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How hosts are taken through rolling maintenance."""

    #: The command of runs with `--work command`; MAINTENANCE_HOST and MAINTENANCE_HOST_ID are in its
    #: environment.
    command: str = ""
    #: The next host waits while this command fails.
    blocked_by: str = ""
    #: How long either may run.
    command_seconds: Seconds = 3600.0
    #: Whether excluded VMs leave a host that is emptied; else the host waits for them.
    moves_excluded_vms: bool = False
    #: How long a host may take to become empty.
    drain_seconds: Seconds = 3600.0
    #: How long a host may take to come back.
    return_seconds: Seconds = 1800.0


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


class EnforcerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    #: "observe" migrates nothing, "approve" waits for approvals, "enforce" migrates.
    mode: Mode = Mode.OBSERVE
    #: The mode of single clusters, by name, id or pattern; "*": all others. The strictest mode counts.
    clusters: dict[ClusterName, Mode] = {}
    #: The mode for single affinity groups and placement rules, likewise.
    groups: dict[GroupName, Mode] = {}
    #: VMs that are not migrated, by name, id or pattern: "pbs-*".
    exclude_vms: tuple[VmName, ...] = ()
    #: Hosts from and to which nothing is migrated, likewise.
    exclude_hosts: tuple[HostName, ...] = ()
    #: Affinity groups and placement rules that are not repaired, likewise.
    exclude_groups: tuple[GroupName, ...] = ()
    #: VMs and hosts with this tag of the engine are excluded, too; empty: none.
    exclude_tag: Tag = "ovirt-enforcer-exclude"
    #: Which rules are repaired; "partly": also spread hard negative groups that cannot be satisfied.
    repair: tuple[Literal["hard", "soft", "partly"], ...] = ("hard",)
    #: Whether VMs are moved whose placement keys refuse their host.
    repair_placement_keys: bool = False
    #: Absent: optimal where OR-Tools is installed, else greedy.
    strategy: Literal["optimal", "greedy", "random"] | None = None
    #: How long planning may take; absent: 30 for optimal, else 5.
    planning_seconds: Seconds | None = None
    #: What a plan leaves free on a target, unless a hard rule cannot be repaired otherwise.
    memory_headroom_percent: Percent = 10.0
    cpu_headroom_percent: Percent = 10.0
    #: "engine": the engine chooses the host of each VM.
    target: Literal["planned", "engine"] = "planned"
    #: How long a host is not tried again that the engine refused for a VM; doubled each time, up to a day.
    refusal_seconds: Seconds = 600.0
    #: How long a VM is left alone that others moved away from its planned host; doubled each time, up to a
    #: day.
    circle_seconds: Seconds = 900.0
    #: How often events are read where no inventory service runs.
    events_seconds: Patience = 2.0
    #: How long an approval counts.
    approval_hours: Hours = 24.0
    #: How often each cluster is checked.
    interval_seconds: Seconds = 60.0
    #: How often a migration under way is read.
    poll_seconds: Seconds = 3.0
    #: How long a migration is followed; its cluster waits until it ends.
    migration_timeout_seconds: Seconds = 1800.0
    #: How long a VM is left alone after a failed migration; doubled each time, up to 16 times.
    cooldown_seconds: Seconds = 600.0
    #: How long a VM is left alone after a migration, except by the plan that moved it.
    cooldown_after_success_seconds: NoOrMoreSeconds = 120.0
    #: How long the engine may take to show a request without an answer.
    settle_seconds: Seconds = 10.0
    #: Migrations under way at once, of others too: in the engine, in a cluster, from a host, to a host.
    migrations_at_once: Count = 32
    cluster_migrations_at_once: Count = 16
    host_migrations_out: Count = 2
    host_migrations_in: Count = 2
    #: Migrations that begin in a cluster within `interval_seconds`.
    cluster_migrations_per_cycle: Count = 60
    #: Migrations of a cluster in an hour.
    cluster_migrations_per_hour: Count = 120
    #: Migrations of a VM in an hour.
    vm_migrations_per_hour: Count = 6
    #: In how many cycles in a row a rule must be violated before it is repaired.
    hold_cycles: Count = 1
    #: Where there are any for a cluster, its migrations begin within one of them.
    windows: tuple[Window, ...] = ()
    #: Migrations begin in none of these.
    blackouts: tuple[Window, ...] = ()
    #: This many failed migrations of a cluster within this time pause it for so long; doubled while the next
    #: one fails, up to 16 times.
    breaker_failures: Count = 5
    breaker_seconds: Seconds = 1800.0
    breaker_pause_seconds: Seconds = 900.0
    #: How long after the last sign of the leading enforcer another one takes over.
    lease_seconds: Patience = 15.0
    #: A file that gets each decision and migration as a line of JSON; empty: none.
    audit_log: str = ""
    #: HOST:PORT for Prometheus; empty: none.
    metrics: str = ""
    #: How HA reservations are watched.
    ha: HaWatchSettings = HaWatchSettings()
    #: Who is notified of what.
    notifications: NotificationSettings = NotificationSettings()
    #: How hosts are taken through rolling maintenance.
    maintenance: MaintenanceSettings = MaintenanceSettings()


#: What may hold a password: addresses of notifications, and commands.
_UNRECORDED: Final = frozenset({"notifications", "maintenance"})


def recorded_settings(settings: EnforcerSettings) -> dict[str, Any]:
    """The same in plain values, as they come back from a database."""
    plain: Mapping[str, Any] = msgspec.json.decode(msgspec.json.encode(settings))
    return dict(_flat({name: plain[name] for name in plain if name not in _UNRECORDED}))


def _flat(settings: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{within}{name}.")
        else:
            yield f"{within}{name}", value
