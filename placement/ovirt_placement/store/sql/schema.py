"""The store's tables, their version, and that they were made, which is remembered apart from them.

Every row belongs to an engine, by its configured name. SQLite keeps tables by their key, without a rowid: an
engine's rows are read in one go.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from ovirt_placement.config import STATE_DIRECTORY
from ovirt_placement.store.sql.connections import marker_of
from ovirt_service import identity
from ovirt_service.files import digest_name, make_as_folder

metadata = sa.MetaData()

#: What a column holds: a word or an id where nothing is said. A `number` is seconds, or a weight, as precise
#: as one of Python's; a `moment` is the one of writing that ages count from, by the database's clock. Behind
#: a slash stands another one of the same row that keeps its distance from that.
_TYPES: Mapping[str, Any] = {
    "": sa.String, "text": sa.Text, "int": sa.Integer, "number": sa.Float(53), "moment": sa.Float(53),
    "bool": sa.Boolean, "json": sa.JSON,
}  # fmt: skip


def _table(name: str, columns: str, *more: Any, rowid: bool = False, numbered: bool = False) -> sa.Table:
    """A table by its columns, `name:type`, with `*` where one is of the key, and `?` where it may be null.

    Rows are known by the engine and the key, or have a number each.
    """
    key, kind = ("id", sa.Integer) if numbered else ("engine", sa.String)
    words = ["engine", *columns.split()] if numbered else columns.split()
    sqlite: dict[str, Any] = {} if numbered else {"sqlite_with_rowid": rowid}
    own = sa.Column(key, kind, primary_key=True)
    return sa.Table(name, metadata, own, *map(_column, words), *more, **sqlite)


def _column(word: str) -> sa.Column[Any]:
    name, _, kind = word.strip("*?").partition(":")
    kind, _, along = kind.partition("/")
    optional = word.endswith("?")
    found = sa.JSON(none_as_null=True) if optional and kind == "json" else _TYPES[kind]
    info = {"along": along} if kind == "moment" else None
    return sa.Column(name, found, primary_key=word.startswith("*"), nullable=optional, info=info)


def _reported() -> sa.Column[bool]:
    return sa.Column("told", sa.Boolean, key="reported", nullable=False)


schema_version = sa.Table("schema_version", metadata, _column("version:int"))

#: A value is a list of one number or word, which must stay what it is: a bare number SQLite would take for
#: its own, and round.
placement_keys = _table(
    "placement_keys",
    "*level *resource *class *name value:json weight:number? sticky:bool set_by set_at:number",
)

frozen_keys = _table("frozen_keys", "*vm keys:json started:number? recorded:number")

sticky_copies = _table("sticky_copies", "*vm *name value:number weight:number")

#: The special keys that setup gave clusters, with their weights then, and the policy that it was about: what
#: stands here and is no placement key any more, a user has removed.
default_keys = _table("default_keys", "*cluster *name weight:number policy")

#: Placement rules, each as it was written down, with who changed it last.
placement_rules = _table("placement_rules", "*name document:json changed_by changed_at:number")

#: Another number after every writing of an engine's rows in one of the tables of keys, or of its rules.
key_revision = _table("key_revision", "revision:int", rowid=True)

#: What is to be done, by its `kind`: a migration, or an action on a host or with a VM for its maintenance.
#: With the plan that it is a `step` of, what that brought (`outcome`), a digest of what it was decided under
#: (`fingerprint`), and why it failed or is unknown, where something depends on it (`cause`). The correlation
#: id is of all engines together: it is drawn at random.
intents = _table(
    "intents",
    "vm cluster source? target memory_mb:int? correlation_id state created:moment updated:moment/created"
    " error:text? plan? step:int? outcome:json? fingerprint? cause?",
    sa.Column("kind", sa.String, nullable=False, server_default="migrate_vm"),
    sa.UniqueConstraint("correlation_id"),
    sa.Index("ix_intents_engine_vm", "engine", "vm"),
    sa.Index("ix_intents_engine_state", "engine", "state"),
    sa.Index("ix_intents_engine_plan", "engine", "plan"),
    numbered=True,
)
#: Of an intent: it is no action on a host, nor one with a VM for the maintenance of its host.
IS_MIGRATION = intents.c.kind == "migrate_vm"

#: Plans as they were made, by their digest: `created` when it was first made, `updated` when last.
plans = _table(
    "plans",
    "*id cluster epoch:int? document:json created:number updated:moment/created",
    sa.Index("ix_plans_engine_updated", "engine", "updated"),
    rowid=True,
)

#: Steps of plans that a gate held back, with its last reason, when it first and last did so, and how often.
held_steps = _table(
    "held_steps",
    "*plan *step:int *gate reason:text times:int created:number updated:moment/created",
    rowid=True,
)

#: The plan of each cluster that is not carried out before a user approves of it.
waiting_plans = _table("waiting_plans", "*cluster plan moves:json text:text since:moment")

#: The plan of each cluster that a user approved of last.
approvals = _table("approvals", "*cluster plan moves:json set_by set_at:moment")

#: When nothing may be migrated in a cluster; the empty cluster is all of them. No `until` is for ever.
pauses = _table("pauses", "*cluster cluster_name reason:text set_by set_at:moment/until until:number?")

#: When a user last had migrations resumed in a cluster: failures before that count no more.
resumptions = _table("resumptions", "*cluster set_by set_at:moment")

#: Who may act on an engine until when, and for how many seconds that was taken: each new holder gets the next
#: epoch.
leases = _table("leases", "owner epoch:int seconds:number expires:number")

#: Rolling maintenance of hosts of a cluster, as it was requested, how it stands, and the hard rules that were
#: `violated` when it began.
maintenance_runs = _table(
    "maintenance_runs",
    "*id cluster cluster_name state request:json requested_by created:moment updated:number message:text"
    " violated:json",
)

#: How far each host of a run is; a `draining` one takes no VMs. `vms` ran there before, and the `stopped` of
#: them are to be started again.
maintenance_hosts = _table(
    "maintenance_hosts",
    "*run *host name position:int phase since:moment message:text draining:bool vms:json stopped:json",
)

#: In how many cycles each rule was seen violated, without one in which it held; `counted` is the last of
#: them.
violated_rules = _table("broken_rules", "*cluster *rule cycles:int counted:moment")

#: VMs that are remembered and that the engine does not have, since when.
missing_vms = _table("missing_vms", "*vm since:moment")

#: Of VMs that are in a group or bear a label, which these are, each as [kind, id, name], and the cluster in
#: which the VM was last seen with them.
memberships = _table("memberships", "*vm cluster cluster_name member_of:json")

#: What VMs were taken out of when they changed their cluster; `reported` once the engine's log says so.
lost_memberships = _table(
    "lost_memberships", "*vm *kind *name id vm_name cluster cluster_name since:number", _reported()
)

#: What was said of a cluster's HA reservation, and with which number of the engine's event; `reported` once
#: all channels have it. Of those of a cluster the last ones say how things stand.
ha_announcements = _table(
    "ha_announcements", "*number:int cluster kind facts:json created:moment", _reported()
)

#: What people did: `begun` before an engine is asked, then `done` or `failed`; what the store alone holds is
#: `done` at once. `logged` is the state that the enforcer's log has.
user_actions = _table(
    "user_actions",
    "kind login machine engine_user? cluster cluster_name plan? subject:text details:json state error:text?"
    " created:moment updated:moment/created logged",
    sa.Index("ix_user_actions_engine_updated", "engine", "updated"),
    numbered=True,
)

#: What an hour was like in a cluster: the most rules that were violated at once, and of its HA reservation
#: how many hosts may fail, how many of them it survived at worst, and how many VMs would not have been
#: restarted; null where not observed. `hour` counts from the epoch. Plans and migrations are counted here
#: once they are forgotten as such.
samples = _table(
    "samples",
    "*cluster *hour:int cluster_name? plans:int done:int failed:int hard:int? soft:int? ha_failures:int?"
    " ha_survived:int? ha_not_restarted:int?",
)

#: The last cycle of an engine's enforcer: when it ended, why it failed, and what it leaves alone for now.
cycles = _table("cycles", "epoch:int ended:moment error:text? breakers:json refusals:json")

#: The settings of the enforcer that leads, or led last, but for what may hold a password.
enforcer_settings = _table("enforcer_settings", "epoch:int settings:json")

#: All moments of writing. Those that another one goes along with come first; a run of maintenance comes
#: before what it did since.
MOMENTS: Final = sorted(
    (column for table in metadata.tables.values() for column in table.c if "along" in column.info),
    key=lambda column: not column.info["along"],
)

#: Bytes of the digest in the name of a PostgreSQL store's marker.
_NAME_SIZE = 8
#: What this release reads and writes. A store of another one is left alone.
VERSION = 1


class Marker:
    """The marker of one store; one that cannot be written is none."""

    def __init__(self, url: sa.URL) -> None:
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


def _place(url: sa.URL) -> Path:
    if url.get_backend_name() == "sqlite":
        return marker_of(Path(url.database or ""))
    state = Path(os.environ.get("STATE_DIRECTORY", "").partition(":")[0] or STATE_DIRECTORY)
    named = f"{url.host} {url.port} {url.database} {sorted(url.query.items())}"
    return state / f"store-{digest_name(named, _NAME_SIZE)}.made"


def version(connection: sa.Connection) -> int | None:
    """Return the version of the tables; None if there are none."""
    # SQLite's `table_info`, which `inspect` asks, answers from what a connection remembers: 3.26 misses a
    # table that another process has made since. Reading from a table makes SQLite compare first.
    named = sa.text("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'")
    sqlite = connection.dialect.name == "sqlite"
    if not (connection.scalar(named) if sqlite else sa.inspect(connection).has_table(schema_version.name)):
        return None
    return int(connection.execute(sa.select(schema_version.c.version)).scalar_one())


def make_tables(connection: sa.Connection) -> None:
    """Make those that are not there, in a transaction that keeps others out."""
    if version(connection) is None:
        metadata.create_all(connection, checkfirst=False)
        connection.execute(sa.insert(schema_version).values(version=VERSION))
