"""Tables of the enforcer's work: plans, intents, approvals, pauses, leases."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Float, Index, Integer, String, Table, Text

from ovirt_placement.store.schema.metadata import metadata

intents = Table(
    "intents",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("engine", String, nullable=False),
    Column("vm", String, nullable=False),
    Column("cluster", String, nullable=False),
    Column("source", String),
    Column("target", String, nullable=False),
    Column("memory_mb", Integer),
    # Of all engines together: it is drawn at random.
    Column("correlation_id", String, nullable=False, unique=True),
    Column("state", String, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("updated", Float(53), nullable=False),
    Column("error", Text),
    # The plan that it is a step of, the number of the step in it, and what it brought.
    Column("plan", String),
    Column("step", Integer),
    Column("outcome", JSON(none_as_null=True)),
    # A digest of what it was decided under.
    Column("fingerprint", String),
    # Why it failed or is unknown, where something depends on it.
    Column("cause", String),
    # What is to be done: a migration, or an action on a host or with a VM for its maintenance.
    Column("kind", String, nullable=False, server_default="migrate_vm"),
    Index("ix_intents_engine_vm", "engine", "vm"),
    Index("ix_intents_engine_state", "engine", "state"),
    Index("ix_intents_engine_plan", "engine", "plan"),
)

#: Plans as they were made, by their digest: `created` when it was first made, `updated` when last.
plans = Table(
    "plans",
    metadata,
    Column("engine", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("cluster", String, nullable=False),
    Column("epoch", Integer),
    Column("document", JSON, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("updated", Float(53), nullable=False),
    Index("ix_plans_engine_updated", "engine", "updated"),
)

#: Steps of plans that a gate held back, with its last reason, when it first and last did so, and how often.
held_steps = Table(
    "held_steps",
    metadata,
    Column("engine", String, primary_key=True),
    Column("plan", String, primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("gate", String, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("times", Integer, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("updated", Float(53), nullable=False),
)

#: The plan of each cluster that is not carried out before somebody approves of it.
waiting_plans = Table(
    "waiting_plans",
    metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("plan", String, nullable=False),
    Column("moves", JSON, nullable=False),
    Column("text", Text, nullable=False),
    Column("since", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

#: The plan of each cluster that somebody approved of last.
approvals = Table(
    "approvals",
    metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("plan", String, nullable=False),
    Column("moves", JSON, nullable=False),
    Column("set_by", String, nullable=False),
    Column("set_at", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

#: When nothing may be migrated in a cluster; the empty cluster is all of them. No `until` is for ever.
pauses = Table(
    "pauses",
    metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("cluster_name", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("set_by", String, nullable=False),
    Column("set_at", Float(53), nullable=False),
    Column("until", Float(53)),
    sqlite_with_rowid=False,
)

#: When somebody last had migrations resumed in a cluster: failures before that count no more.
resumptions = Table(
    "resumptions",
    metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("set_by", String, nullable=False),
    Column("set_at", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

#: Who may act on an engine until when: each new holder gets the next epoch.
leases = Table(
    "leases",
    metadata,
    Column("engine", String, primary_key=True),
    Column("owner", String, nullable=False),
    Column("epoch", Integer, nullable=False),
    # For how long it was taken.
    Column("seconds", Float(53), nullable=False),
    Column("expires", Float(53), nullable=False),
    sqlite_with_rowid=False,
)
