"""The [enforcer] section of the configuration: every key with its default, its unit and its reason."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ovirt_enforcer.notifications.settings import NotificationSettings
from ovirt_enforcer.windows import Window
from ovirt_placement.config import NAMES, ClusterName, GroupName, HostName, VmName

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

    #: For so long a reservation must have been satisfied again before that is reported, and for so long
    #: nothing must be known of it; doubled with each time that it was reported within a day, up to an hour.
    hold_seconds: NoOrMoreSeconds = 60.0
    #: Whether migrations are planned that restore a violated reservation.
    repair: bool = False


class MaintenanceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How hosts are taken through rolling maintenance."""

    #: A command that is run once for each host in maintenance, where the run asks for it in place of the
    #: engine's upgrade. MAINTENANCE_HOST and MAINTENANCE_HOST_ID are in its environment.
    command: str = ""
    #: A command that holds the next host back as long as its exit status is not 0: alerts, say.
    blocked_by: str = ""
    #: Either is ended after so long, with all that it has started.
    command_seconds: Seconds = 3600.0
    #: Whether VMs that are excluded leave a host that is emptied all the same; else the host waits for them.
    moves_excluded_vms: bool = False
    #: A host that is not empty after so long has failed.
    drain_seconds: Seconds = 3600.0
    #: A host that does not come back within so long ends the run.
    return_seconds: Seconds = 1800.0


class EnforcerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    #: "observe" logs what would be done and migrates nothing; "approve" waits for a person's word; "enforce"
    #: does it.
    mode: Mode = Mode.OBSERVE
    #: The mode of single clusters, by name, id or pattern; "*" is for those that are not named. Of this, that
    #: of the engine and that of the group the strictest counts.
    clusters: dict[ClusterName, Mode] = {}
    #: The mode in which single affinity groups and placement rules are repaired, likewise.
    groups: dict[GroupName, Mode] = {}
    #: VMs that are not migrated, by name, id or pattern: "pbs-*".
    exclude_vms: tuple[VmName, ...] = ()
    #: Hosts from and to which nothing is migrated, likewise.
    exclude_hosts: tuple[HostName, ...] = ()
    #: Affinity groups and placement rules that are not repaired, likewise.
    exclude_groups: tuple[GroupName, ...] = ()
    #: VMs and hosts that bear this tag of the engine are excluded as well; empty: none.
    exclude_tag: Tag = "ovirt-enforcer-exclude"
    #: Which rules are repaired: "hard", "soft" or both; with "partly", hard groups that keep VMs apart and
    #: cannot be satisfied are spread as far as they can be, too.
    repair: tuple[Literal["hard", "soft", "partly"], ...] = ("hard",)
    #: Whether a VM is moved whose placement keys refuse the host that it runs on, as for a hard rule.
    repair_placement_keys: bool = False
    #: How plans are made; absent: optimal where OR-Tools is installed, else greedy.
    strategy: Literal["optimal", "greedy", "random"] | None = None
    #: How long one may take; absent: 30 s, and 5 s unless it is an optimal one.
    planning_seconds: Seconds | None = None
    #: What a plan leaves free on a target, but where a hard rule cannot be repaired otherwise.
    memory_headroom_percent: Percent = 10.0
    cpu_headroom_percent: Percent = 10.0
    #: Whether VMs go to the hosts of the plan, or the engine chooses one for each of them.
    target: Literal["planned", "engine"] = "planned"
    #: For so long at first a VM is not sent to a host again that the engine refused for it; doubled with each
    #: refusal in a row, up to a day. It is over as soon as the VM, the host or their rules change.
    refusal_seconds: Seconds = 600.0
    #: For so long at first a VM is left alone that somebody else moved away from where a plan had moved it,
    #: and is not sent back to where a plan took it from; doubled each time, up to a day. Over as above.
    circle_seconds: Seconds = 900.0
    #: How often the engine is asked for events that call for a look at a cluster, where no inventory service
    #: runs.
    events_seconds: Seconds = 2.0
    #: For so long an approval counts.
    approval_hours: Hours = 24.0
    #: How often each cluster is looked at while its rules are satisfied or nothing can be done.
    interval_seconds: Seconds = 60.0
    #: How often a migration under way is looked at.
    poll_seconds: Seconds = 3.0
    #: A migration that takes longer is left to itself; its cluster waits until it ends.
    migration_timeout_seconds: Seconds = 1800.0
    #: How long a VM is left alone after a migration of it failed; doubled with each failure in a row, up to
    #: sixteen times this.
    cooldown_seconds: Seconds = 600.0
    #: How long a VM is left alone after it was migrated, but by the plan that moved it.
    cooldown_after_success_seconds: NoOrMoreSeconds = 120.0
    #: After a request without an answer, how long the engine may take to show that it accepted it.
    settle_seconds: Seconds = 10.0
    #: Migrations under way at once, others' as well as far as they are to be seen: in the engine, in a
    #: cluster, from a host and to a host. A host itself makes no more than 2 at once.
    migrations_at_once: Count = 32
    cluster_migrations_at_once: Count = 16
    host_migrations_out: Count = 2
    host_migrations_in: Count = 2
    #: Migrations that begin in a cluster within a cycle, which lasts `interval_seconds`.
    cluster_migrations_per_cycle: Count = 60
    #: A net below a cluster's repair, should it ever go round in circles.
    cluster_migrations_per_hour: Count = 120
    #: The same for a single VM.
    vm_migrations_per_hour: Count = 6
    #: A rule is repaired once it was seen violated in this many cycles in a row.
    hold_cycles: Count = 1
    #: Where there are any for a cluster, its migrations begin within one of them.
    windows: tuple[Window, ...] = ()
    #: Migrations begin in none of these.
    blackouts: tuple[Window, ...] = ()
    #: This many failed migrations of a cluster, within this many seconds, stop it for a while: so long at
    #: first, doubled each time that the first migration afterwards fails, up to sixteen times this.
    breaker_failures: Count = 5
    breaker_seconds: Seconds = 1800.0
    breaker_pause_seconds: Seconds = 900.0
    #: Of several enforcers of an engine that share a store, the leading one is followed by another this many
    #: seconds after it was last heard of.
    lease_seconds: Seconds = 15.0
    #: The file to which each decision and migration is appended as a line of JSON; empty: none.
    audit_log: str = ""
    #: HOST:PORT where Prometheus reads the enforcer's metrics; empty: nowhere.
    metrics: str = ""
    #: How HA reservations are watched.
    ha: HaWatchSettings = HaWatchSettings()
    #: Who is notified of what.
    notifications: NotificationSettings = NotificationSettings()
    #: How hosts are taken through rolling maintenance.
    maintenance: MaintenanceSettings = MaintenanceSettings()
