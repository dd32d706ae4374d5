"""Tables of what administrators state: placement keys and their records, placement rules."""

from __future__ import annotations

from sqlalchemy import JSON, Boolean, Column, Float, Integer, String, Table

from ovirt_placement.store.schema.metadata import metadata

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
#: stands here and is no placement key any more, somebody has removed.
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
