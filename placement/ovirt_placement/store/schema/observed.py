"""Tables of what the enforcer has seen and reported, and of who did what."""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Float, Index, Integer, String, Table, Text

from ovirt_placement.store.schema.metadata import metadata

#: In how many cycles each rule was seen violated, without one in which it held; `counted` is the last of
#: them.
violated_rules = Table(
    "broken_rules",
    metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("rule", String, primary_key=True),
    Column("cycles", Integer, nullable=False),
    Column("counted", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

#: VMs that are remembered and that the engine does not have, since when.
missing_vms = Table(
    "missing_vms",
    metadata,
    Column("engine", String, primary_key=True),
    Column("vm", String, primary_key=True),
    Column("since", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

#: Of VMs that are in a group or bear a label, which these are, each as [kind, id, name], and the cluster in
#: which the VM was last seen with them.
memberships = Table(
    "memberships",
    metadata,
    Column("engine", String, primary_key=True),
    Column("vm", String, primary_key=True),
    Column("cluster", String, nullable=False),
    Column("cluster_name", String, nullable=False),
    Column("member_of", JSON, nullable=False),
    sqlite_with_rowid=False,
)

#: What VMs were taken out of when they changed their cluster; `reported` once the engine's log says so.
lost_memberships = Table(
    "lost_memberships",
    metadata,
    Column("engine", String, primary_key=True),
    Column("vm", String, primary_key=True),
    Column("kind", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("id", String, nullable=False),
    Column("vm_name", String, nullable=False),
    Column("cluster", String, nullable=False),
    Column("cluster_name", String, nullable=False),
    Column("since", Float(53), nullable=False),
    Column("told", Boolean, nullable=False, key="reported"),
    sqlite_with_rowid=False,
)

#: What was said of a cluster's HA reservation, and with which number of the engine's event; `reported` once
#: all channels have it. Of those of a cluster the last ones say how things stand.
ha_announcements = Table(
    "ha_announcements",
    metadata,
    Column("engine", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("cluster", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("facts", JSON, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("told", Boolean, nullable=False, key="reported"),
    sqlite_with_rowid=False,
)

#: What people did: `begun` before an engine is asked, then `done` or `failed`; what the store alone holds is
#: `done` at once. `logged` is the state that the enforcer's log has.
user_actions = Table(
    "user_actions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("engine", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("login", String, nullable=False),
    Column("machine", String, nullable=False),
    Column("engine_user", String),
    Column("cluster", String, nullable=False),
    Column("cluster_name", String, nullable=False),
    Column("plan", String),
    Column("subject", Text, nullable=False),
    Column("details", JSON, nullable=False),
    Column("state", String, nullable=False),
    Column("error", Text),
    Column("created", Float(53), nullable=False),
    Column("updated", Float(53), nullable=False),
    Column("logged", String, nullable=False),
    Index("ix_user_actions_engine_updated", "engine", "updated"),
)

#: What an hour was like in a cluster: the most rules that were violated at once, and of its HA reservation
#: how many hosts may fail, how many of them it survived at worst, and how many VMs would not have been
#: restarted; null where nobody looked. `hour` counts from the epoch. Plans and migrations are counted here
#: once they are forgotten as such.
samples = Table(
    "samples",
    metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("hour", Integer, primary_key=True),
    Column("cluster_name", String),
    Column("plans", Integer, nullable=False),
    Column("done", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("hard", Integer),
    Column("soft", Integer),
    Column("ha_failures", Integer),
    Column("ha_survived", Integer),
    Column("ha_not_restarted", Integer),
    sqlite_with_rowid=False,
)

#: The last cycle of an engine's enforcer: when it ended, why it failed, and what it leaves alone for now.
cycles = Table(
    "cycles",
    metadata,
    Column("engine", String, primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("ended", Float(53), nullable=False),
    Column("error", Text),
    Column("breakers", JSON, nullable=False),
    Column("refusals", JSON, nullable=False),
    sqlite_with_rowid=False,
)

#: The settings of the enforcer that leads, or led last, but for what may hold a password.
enforcer_settings = Table(
    "enforcer_settings",
    metadata,
    Column("engine", String, primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("settings", JSON, nullable=False),
    sqlite_with_rowid=False,
)
