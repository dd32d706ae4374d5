"""The store's tables, their version, and that they were made, which is remembered apart from them.

Every row belongs to an engine, by its configured name. SQLite keeps tables by their key, without a rowid: an
engine's rows are read in one go.
"""

import os
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    URL,
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    insert,
    inspect,
    select,
    text,
)

from ovirt_placement.config import STATE_DIRECTORY
from ovirt_placement.store.sql.connections import marker_of
from ovirt_service import identity
from ovirt_service.files import digest_name, make_as_folder

metadata = MetaData()

#: Seconds, or a weight: as precise as a number of Python's.
_NUMBER = Float(53)


def _table(name: str, *columns: Any, rowid: bool = False) -> Table:
    return Table(name, metadata, _key("engine"), *columns, sqlite_with_rowid=rowid)


def _key(name: str, kind: Any = String) -> Column[Any]:
    return Column(name, kind, primary_key=True)


def _column(name: str, kind: Any = String, **options: Any) -> Column[Any]:
    return Column(name, kind, nullable=False, **options)


schema_version = Table("schema_version", metadata, _column("version", Integer))

placement_keys = _table(
    "placement_keys",
    _key("level"),
    _key("resource"),
    _key("class"),
    _key("name"),
    # A list of one number or word, which must stay what it is: a bare number SQLite would take for its own,
    # and round.
    _column("value", JSON),
    Column("weight", _NUMBER),
    _column("sticky", Boolean),
    _column("set_by"),
    _column("set_at", _NUMBER),
)

frozen_keys = _table(
    "frozen_keys", _key("vm"), _column("keys", JSON), Column("started", _NUMBER), _column("recorded", _NUMBER)
)

sticky_copies = _table(
    "sticky_copies", _key("vm"), _key("name"), _column("value", _NUMBER), _column("weight", _NUMBER)
)

#: The special keys that setup gave clusters, with their weights then, and the policy that it was about: what
#: stands here and is no placement key any more, a user has removed.
default_keys = _table(
    "default_keys", _key("cluster"), _key("name"), _column("weight", _NUMBER), _column("policy")
)

#: Placement rules, each as it was written down, with who changed it last.
placement_rules = _table(
    "placement_rules",
    _key("name"),
    _column("document", JSON),
    _column("changed_by"),
    _column("changed_at", _NUMBER),
)

#: Another number after every writing of an engine's rows in one of the tables of keys, or of its rules.
key_revision = _table("key_revision", _column("revision", Integer), rowid=True)

intents = Table(
    "intents",
    metadata,
    Column("id", Integer, primary_key=True),
    _column("engine"),
    _column("vm"),
    _column("cluster"),
    Column("source", String),
    _column("target"),
    Column("memory_mb", Integer),
    # Of all engines together: it is drawn at random.
    _column("correlation_id", unique=True),
    _column("state"),
    _column("created", _NUMBER),
    _column("updated", _NUMBER),
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
    _column("kind", server_default="migrate_vm"),
    Index("ix_intents_engine_vm", "engine", "vm"),
    Index("ix_intents_engine_state", "engine", "state"),
    Index("ix_intents_engine_plan", "engine", "plan"),
)
#: Of an intent: it is no action on a host, nor one with a VM for the maintenance of its host.
IS_MIGRATION = intents.c.kind == "migrate_vm"

#: Plans as they were made, by their digest: `created` when it was first made, `updated` when last.
plans = _table(
    "plans",
    _key("id"),
    _column("cluster"),
    Column("epoch", Integer),
    _column("document", JSON),
    _column("created", _NUMBER),
    _column("updated", _NUMBER),
    Index("ix_plans_engine_updated", "engine", "updated"),
    rowid=True,
)

#: Steps of plans that a gate held back, with its last reason, when it first and last did so, and how often.
held_steps = _table(
    "held_steps",
    _key("plan"),
    _key("step", Integer),
    _key("gate"),
    _column("reason", Text),
    _column("times", Integer),
    _column("created", _NUMBER),
    _column("updated", _NUMBER),
    rowid=True,
)

#: The plan of each cluster that is not carried out before a user approves of it.
waiting_plans = _table(
    "waiting_plans",
    _key("cluster"),
    _column("plan"),
    _column("moves", JSON),
    _column("text", Text),
    _column("since", _NUMBER),
)

#: The plan of each cluster that a user approved of last.
approvals = _table(
    "approvals",
    _key("cluster"),
    _column("plan"),
    _column("moves", JSON),
    _column("set_by"),
    _column("set_at", _NUMBER),
)

#: When nothing may be migrated in a cluster; the empty cluster is all of them. No `until` is for ever.
pauses = _table(
    "pauses",
    _key("cluster"),
    _column("cluster_name"),
    _column("reason", Text),
    _column("set_by"),
    _column("set_at", _NUMBER),
    Column("until", _NUMBER),
)

#: When a user last had migrations resumed in a cluster: failures before that count no more.
resumptions = _table("resumptions", _key("cluster"), _column("set_by"), _column("set_at", _NUMBER))

#: Who may act on an engine until when: each new holder gets the next epoch.
leases = _table(
    "leases",
    _column("owner"),
    _column("epoch", Integer),
    # For how long it was taken.
    _column("seconds", _NUMBER),
    _column("expires", _NUMBER),
)

#: Rolling maintenance of hosts of a cluster, as it was requested, and how it stands.
maintenance_runs = _table(
    "maintenance_runs",
    _key("id"),
    _column("cluster"),
    _column("cluster_name"),
    _column("state"),
    _column("request", JSON),
    _column("requested_by"),
    _column("created", _NUMBER),
    _column("updated", _NUMBER),
    _column("message", Text),
    # The hard rules that were violated when it began.
    _column("violated", JSON),
)

#: How far each host of a run is; a `draining` one takes no VMs. `vms` ran there before, and the `stopped` of
#: them are to be started again.
maintenance_hosts = _table(
    "maintenance_hosts",
    _key("run"),
    _key("host"),
    _column("name"),
    _column("position", Integer),
    _column("phase"),
    _column("since", _NUMBER),
    _column("message", Text),
    _column("draining", Boolean),
    _column("vms", JSON),
    _column("stopped", JSON),
)

#: In how many cycles each rule was seen violated, without one in which it held; `counted` is the last of
#: them.
violated_rules = _table(
    "broken_rules", _key("cluster"), _key("rule"), _column("cycles", Integer), _column("counted", _NUMBER)
)

#: VMs that are remembered and that the engine does not have, since when.
missing_vms = _table("missing_vms", _key("vm"), _column("since", _NUMBER))

#: Of VMs that are in a group or bear a label, which these are, each as [kind, id, name], and the cluster in
#: which the VM was last seen with them.
memberships = _table(
    "memberships", _key("vm"), _column("cluster"), _column("cluster_name"), _column("member_of", JSON)
)

#: What VMs were taken out of when they changed their cluster; `reported` once the engine's log says so.
lost_memberships = _table(
    "lost_memberships",
    _key("vm"),
    _key("kind"),
    _key("name"),
    _column("id"),
    _column("vm_name"),
    _column("cluster"),
    _column("cluster_name"),
    _column("since", _NUMBER),
    _column("told", Boolean, key="reported"),
)

#: What was said of a cluster's HA reservation, and with which number of the engine's event; `reported` once
#: all channels have it. Of those of a cluster the last ones say how things stand.
ha_announcements = _table(
    "ha_announcements",
    _key("number", Integer),
    _column("cluster"),
    _column("kind"),
    _column("facts", JSON),
    _column("created", _NUMBER),
    _column("told", Boolean, key="reported"),
)

#: What people did: `begun` before an engine is asked, then `done` or `failed`; what the store alone holds is
#: `done` at once. `logged` is the state that the enforcer's log has.
user_actions = Table(
    "user_actions",
    metadata,
    Column("id", Integer, primary_key=True),
    _column("engine"),
    _column("kind"),
    _column("login"),
    _column("machine"),
    Column("engine_user", String),
    _column("cluster"),
    _column("cluster_name"),
    Column("plan", String),
    _column("subject", Text),
    _column("details", JSON),
    _column("state"),
    Column("error", Text),
    _column("created", _NUMBER),
    _column("updated", _NUMBER),
    _column("logged"),
    Index("ix_user_actions_engine_updated", "engine", "updated"),
)

#: What an hour was like in a cluster: the most rules that were violated at once, and of its HA reservation
#: how many hosts may fail, how many of them it survived at worst, and how many VMs would not have been
#: restarted; null where not observed. `hour` counts from the epoch. Plans and migrations are counted here
#: once they are forgotten as such.
samples = _table(
    "samples",
    _key("cluster"),
    _key("hour", Integer),
    Column("cluster_name", String),
    _column("plans", Integer),
    _column("done", Integer),
    _column("failed", Integer),
    Column("hard", Integer),
    Column("soft", Integer),
    Column("ha_failures", Integer),
    Column("ha_survived", Integer),
    Column("ha_not_restarted", Integer),
)

#: The last cycle of an engine's enforcer: when it ended, why it failed, and what it leaves alone for now.
cycles = _table(
    "cycles",
    _column("epoch", Integer),
    _column("ended", _NUMBER),
    Column("error", Text),
    _column("breakers", JSON),
    _column("refusals", JSON),
)

#: The settings of the enforcer that leads, or led last, but for what may hold a password.
enforcer_settings = _table("enforcer_settings", _column("epoch", Integer), _column("settings", JSON))


#: Bytes of the digest in the name of a PostgreSQL store's marker.
_NAME_SIZE = 8
#: What this release reads and writes. A store of another one is left alone.
VERSION = 1


class Marker:
    """The marker of one store; one that cannot be written is none."""

    def __init__(self, url: URL) -> None:
        self._file = _place(url)
        #: What this process has seen itself.
        self._seen = False

    @property
    def is_set(self) -> bool:
        """Whether the store was there before."""
        return self._seen or os.path.lexists(self._file)

    def set(self, *, writes: bool) -> None:
        """Remember that the store is there; a reader remembers it for itself alone."""
        self._seen = True
        try:
            if writes and not identity.is_others(self._file.parent):
                make_as_folder(self._file)
        except OSError:
            pass  # who may not write there has at least seen it


def _place(url: URL) -> Path:
    if url.get_backend_name() == "sqlite":
        return marker_of(Path(url.database or ""))
    state = Path(os.environ.get("STATE_DIRECTORY", "").partition(":")[0] or STATE_DIRECTORY)
    named = f"{url.host} {url.port} {url.database} {sorted(url.query.items())}"
    return state / f"store-{digest_name(named, _NAME_SIZE)}.made"


def version(connection: Connection) -> int | None:
    """Return the version of the tables; None if there are none."""
    # SQLite's `table_info`, which `inspect` asks, answers from what a connection remembers: 3.26 misses a
    # table that another process has made since. Reading from a table makes SQLite compare first.
    named = text("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'")
    sqlite = connection.dialect.name == "sqlite"
    if not (connection.scalar(named) if sqlite else inspect(connection).has_table(schema_version.name)):
        return None
    return int(connection.execute(select(schema_version.c.version)).scalar_one())


def make_tables(connection: Connection) -> None:
    """Make those that are not there, in a transaction that keeps others out."""
    if version(connection) is None:
        metadata.create_all(connection, checkfirst=False)
        connection.execute(insert(schema_version).values(version=VERSION))
