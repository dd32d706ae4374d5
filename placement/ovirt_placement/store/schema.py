"""The store's tables.

Every row belongs to an engine, by its configured name. A change of a table here needs a migration that
makes the same of it. SQLite keeps tables by their key, without a rowid: an engine's rows are read in one go.
"""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Float, Index, Integer, MetaData, String, Table, Text

metadata = MetaData()

schema_version = Table("schema_version", metadata, Column("version", Integer, nullable=False))


placement_keys = Table(
    "placement_keys",
    metadata,
    Column("engine", String, primary_key=True),
    Column("level", String, primary_key=True),
    Column("resource", String, primary_key=True),
    Column("class", String, primary_key=True),
    Column("name", String, primary_key=True),
    # A list of one number or word, which must stay what it is: a bare number SQLite would take for its own,
    # and round.
    Column("value", JSON, nullable=False),
    Column("weight", Float(53)),
    Column("sticky", Boolean, nullable=False),
    Column("set_by", String, nullable=False),
    Column("set_at", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

frozen_keys = Table(
    "frozen_keys",
    metadata,
    Column("engine", String, primary_key=True),
    Column("vm", String, primary_key=True),
    Column("keys", JSON, nullable=False),
    Column("started", Float(53)),
    Column("recorded", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

sticky_copies = Table(
    "sticky_copies",
    metadata,
    Column("engine", String, primary_key=True),
    Column("vm", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("value", Float(53), nullable=False),
    Column("weight", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

#: The special keys that setup gave clusters, with their weights then, and the policy that it was about: what
#: stands here and is no placement key any more, a user has removed.
default_keys = Table(
    "default_keys",
    metadata,
    Column("engine", String, primary_key=True),
    Column("cluster", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("weight", Float(53), nullable=False),
    Column("policy", String, nullable=False),
    sqlite_with_rowid=False,
)

#: Placement rules, each as it was written down, with who changed it last.
placement_rules = Table(
    "placement_rules",
    metadata,
    Column("engine", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("document", JSON, nullable=False),
    Column("changed_by", String, nullable=False),
    Column("changed_at", Float(53), nullable=False),
    sqlite_with_rowid=False,
)

#: Another number after every writing of an engine's rows in one of the tables of keys, or of its rules.
key_revision = Table(
    "key_revision",
    metadata,
    Column("engine", String, primary_key=True),
    Column("revision", Integer, nullable=False),
)


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
#: Of an intent: it is no action on a host, nor one with a VM for the maintenance of its host.
IS_MIGRATION = intents.c.kind == "migrate_vm"

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

#: The plan of each cluster that is not carried out before a user approves of it.
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

#: The plan of each cluster that a user approved of last.
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

#: When a user last had migrations resumed in a cluster: failures before that count no more.
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


#: Rolling maintenance of hosts of a cluster, as it was requested, and how it stands.
maintenance_runs = Table(
    "maintenance_runs",
    metadata,
    Column("engine", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("cluster", String, nullable=False),
    Column("cluster_name", String, nullable=False),
    Column("state", String, nullable=False),
    Column("request", JSON, nullable=False),
    Column("requested_by", String, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("updated", Float(53), nullable=False),
    Column("message", Text, nullable=False),
    # The hard rules that were violated when it began.
    Column("violated", JSON, nullable=False),
    sqlite_with_rowid=False,
)

#: How far each host of a run is; a `draining` one takes no VMs. `vms` ran there before, and the `stopped` of
#: them are to be started again.
maintenance_hosts = Table(
    "maintenance_hosts",
    metadata,
    Column("engine", String, primary_key=True),
    Column("run", String, primary_key=True),
    Column("host", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("position", Integer, nullable=False),
    Column("phase", String, nullable=False),
    Column("since", Float(53), nullable=False),
    Column("message", Text, nullable=False),
    Column("draining", Boolean, nullable=False),
    Column("vms", JSON, nullable=False),
    Column("stopped", JSON, nullable=False),
    sqlite_with_rowid=False,
)


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
#: restarted; null where not observed. `hour` counts from the epoch. Plans and migrations are counted here
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
