"""Makes stores as former releases left them, of any version that ever stood, and reads what is in them.

A version added to the one before, so a store of version 3 holds what was written while it was of version 1.
"""

from __future__ import annotations

from typing import Any

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
