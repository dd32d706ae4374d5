"""Makes stores as former releases left them, of any version that ever stood, and reads what is in them.

A version added to the one before, so a store of version 3 holds what was written while it was of version 1.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy

from ovirt_placement.store.keys import KeyStore
from tests.placement.databases import database
from tests.placement.store.former import (
    version_1,
    version_2,
    version_3,
    version_4,
    version_5,
    version_6,
    version_7,
)

#: What differs from one database to another.
_WORDS = {
    "sqlite": {"ID": "INTEGER", "REAL": "FLOAT", "BY_KEY": "WITHOUT ROWID", "IDS": "SELECT 1"},
    "postgresql": {
        "ID": "SERIAL",
        "REAL": "FLOAT(53)",
        "BY_KEY": "",
        "IDS": "SELECT setval(pg_get_serial_sequence('intents', 'id'), max(id)) FROM intents",
    },
}

#: What made each version of the one before, by their number.
FORMER = {
    1: version_1.STATEMENTS,
    2: version_2.STATEMENTS,
    3: version_3.STATEMENTS,
    4: version_4.STATEMENTS,
    5: version_5.STATEMENTS,
    6: version_6.STATEMENTS,
    7: version_7.STATEMENTS,
}

_TABLES = {
    1: ("intents",),
    2: ("placement_keys", "frozen_keys", "sticky_copies", "key_revision"),
    3: ("missing_vms",),
    4: (),
    5: ("memberships", "lost_memberships"),
    6: ("pauses", "resumptions", "waiting_plans", "approvals", "broken_rules"),
    7: ("leases", "plans", "held_steps"),
}


def make_former(url: str, version: int) -> None:
    """Make a store of this version."""
    with database(url) as connection:
        for number in range(1, version + 1):
            text = FORMER[number].format(**_WORDS[connection.dialect.name])
            for statement in text.split(";"):
                if statement.strip():
                    connection.exec_driver_sql(statement)


def rows(url: str, version: int) -> dict[str, list[dict[str, Any]]]:
    """All rows of the tables that this version had, whatever columns they have now."""
    tables = [table for number in range(1, version + 1) for table in _TABLES[number]]
    with database(url) as connection:
        found = {
            table: [dict(row) for row in connection.exec_driver_sql(f"SELECT * FROM {table}").mappings()]
            for table in tables
        }
    return {table: sorted(some, key=repr) for table, some in found.items()}


def upgrade(url: str) -> None:
    """Do what the first writer does."""
    writer = KeyStore(url, engine="default", patience_seconds=30)
    writer.all_keys()
    writer.close()


def version_of(url: str) -> list[int]:
    with database(url) as connection:
        return list(connection.exec_driver_sql("SELECT version FROM schema_version").scalars())


def without_engine(found: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Rows without the engine's name, which they have since version 4."""
    return {
        table: [{name: value for name, value in row.items() if name != "engine"} for row in some]
        for table, some in found.items()
    }


def as_far_as(
    after: dict[str, list[dict[str, Any]]], before: dict[str, list[dict[str, Any]]]
) -> dict[str, list[dict[str, Any]]]:
    """Rows with those columns alone that there were before: what is new in them says nothing yet."""
    for table, some in after.items():
        new = {name for row in some for name in row} - {name for row in before[table] for name in row}
        assert all(row[name] in (None, "migrate_vm") for row in some for name in new - {"engine"})
    return {
        table: [{name: row[name] for name in before[table][0] if name != "engine"} for row in some]
        for table, some in after.items()
    }


def with_todays_names(found: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Rows as they are since version 9, which renamed a column, and a field of the steps of plans."""
    for plan in found.get("plans", ()):
        text = plan["document"] if isinstance(plan["document"], str) else json.dumps(plan["document"])
        text = text.replace('"mends":', '"repairs":')
        plan["document"] = text if isinstance(plan["document"], str) else json.loads(text)
    return {
        table: [
            {("fingerprint" if name == "circumstances" else name): value for name, value in row.items()}
            for row in some
        ]
        for table, some in found.items()
    }


def shape(url: str) -> dict[str, Any]:
    """Tables, columns, keys and indexes, as the database shows them."""
    with database(url) as connection:
        found = sqlalchemy.inspect(connection)
        return {
            table: (
                [
                    {name: str(value) for name, value in column.items() if name != "comment"}
                    for column in found.get_columns(table)
                ],
                found.get_pk_constraint(table),
                found.get_unique_constraints(table),
                sorted(map(repr, found.get_indexes(table))),
                found.get_table_options(table),
            )
            for table in found.get_table_names()
        }
