"""The [enforcer] section of the configuration: every key with its default, its unit and its reason."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]


class Mode(StrEnum):
    """Whether migrations are carried out or only planned."""

    DRY_RUN = "dry_run"
    ENFORCE = "enforce"


class EnforcerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    #: "dry_run" logs what would be done and migrates nothing; "enforce" does it.
    mode: Mode = Mode.DRY_RUN
    #: How often each cluster is looked at while its rules hold or nothing can be done.
    interval_seconds: Seconds = 60.0
    #: How often a migration under way is looked at.
    poll_seconds: Seconds = 3.0
    #: A migration that takes longer is left to itself; its cluster waits until it ends.
    migration_timeout_seconds: Seconds = 1800.0
    #: How long a VM is left alone after a migration of it failed or was refused; doubled with each
    #: failure in a row, up to sixteen times this.
    cooldown_seconds: Seconds = 600.0
    #: After a request without an answer, how long the engine may take to show that it accepted it.
    settle_seconds: Seconds = 10.0
    #: A net below a cluster's repair, should it ever go round in circles.
    cluster_migrations_per_hour: Count = 120
    #: The same for a single VM.
    vm_migrations_per_hour: Count = 6
    #: HOST:PORT where Prometheus reads the enforcer's metrics; empty: nowhere.
    metrics: str = ""
