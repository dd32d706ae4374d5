"""Stores as former releases left them: each version that ever stood, word for word, with something in it.

A version added to the one before, so a store of version 3 holds what was written while it was of version 1.
"""

from __future__ import annotations

from typing import Any

from tests.placement.databases import database

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

_VERSION_1 = """
    CREATE TABLE schema_version (version INTEGER NOT NULL);
    INSERT INTO schema_version VALUES (1);
    CREATE TABLE intents (
        id {ID} NOT NULL,
        vm VARCHAR NOT NULL,
        cluster VARCHAR NOT NULL,
        source VARCHAR,
        target VARCHAR NOT NULL,
        memory_mb INTEGER,
        correlation_id VARCHAR NOT NULL,
        state VARCHAR NOT NULL,
        created {REAL} NOT NULL,
        updated {REAL} NOT NULL,
        error TEXT,
        PRIMARY KEY (id),
        UNIQUE (correlation_id)
    );
    CREATE INDEX ix_intents_state ON intents (state);
    CREATE INDEX ix_intents_vm ON intents (vm);
    INSERT INTO intents
        (vm, cluster, source, target, memory_mb, correlation_id, state, created, updated, error)
    VALUES
        ('v1', 'c1', 'h1', 'h2', 512, 'one', 'done', 1790000000.123456, 1790000010.5, NULL),
        ('v2', 'c1', NULL, 'h2', NULL, 'two', 'failed', 1790000001.25, 1790000011.75, 'no host: "é" -- \\'),
        ('v3', 'c2', 'h2', 'h1', 1024, 'three', 'accepted', 1790000002.0, 1790000012.0, NULL);
"""

_VERSION_2 = """
    CREATE TABLE placement_keys (
        level VARCHAR NOT NULL,
        resource VARCHAR NOT NULL,
        class VARCHAR NOT NULL,
        name VARCHAR NOT NULL,
        value JSON NOT NULL,
        weight {REAL},
        sticky BOOLEAN NOT NULL,
        set_by VARCHAR NOT NULL,
        set_at {REAL} NOT NULL,
        PRIMARY KEY (level, resource, class, name)
    );
    CREATE TABLE frozen_keys (
        vm VARCHAR NOT NULL,
        keys JSON NOT NULL,
        started {REAL},
        recorded {REAL} NOT NULL,
        PRIMARY KEY (vm)
    );
    CREATE TABLE sticky_copies (
        vm VARCHAR NOT NULL,
        name VARCHAR NOT NULL,
        value {REAL} NOT NULL,
        weight {REAL} NOT NULL,
        PRIMARY KEY (vm, name)
    );
    CREATE TABLE key_revision (revision INTEGER NOT NULL);
    INSERT INTO key_revision VALUES (4711);
    INSERT INTO placement_keys VALUES
        ('cluster', 'c1', 'system', 'BARE', '0.30000000000000004', 50.5, true, 'ann', 1790000003.5),
        ('cluster', 'c1', 'system', 'WORD', '"1"', NULL, false, 'bob', 1790000004.5);
    INSERT INTO frozen_keys VALUES
        ('v1', '[["A", 0.1], ["B", 2.0]]', 1790000005.5, 1790000006.5),
        ('v2', '[]', NULL, 1790000007.5);
    INSERT INTO sticky_copies VALUES ('v1', 'RACK', 2.0, 60.0), ('v1', 'SAN', 0.1, 60.0);
    UPDATE schema_version SET version = 2;
"""

_VERSION_3 = """
    CREATE TABLE missing_vms (
        vm VARCHAR NOT NULL,
        since {REAL} NOT NULL,
        PRIMARY KEY (vm)
    );
    INSERT INTO missing_vms VALUES ('v2', 1790000008.5);
    INSERT INTO placement_keys VALUES
        ('server', 'v1', 'be', 'LISTED', '[2.8824671182353285e-303]', 5.0, false, 'eve', 1790000009.5);
    UPDATE schema_version SET version = 3;
"""

#: It made every table anew.
_VERSION_4 = """
    CREATE TABLE former_rows AS SELECT * FROM intents;
    DROP TABLE intents;
    CREATE TABLE intents (
        id {ID} NOT NULL,
        engine VARCHAR NOT NULL,
        vm VARCHAR NOT NULL,
        cluster VARCHAR NOT NULL,
        source VARCHAR,
        target VARCHAR NOT NULL,
        memory_mb INTEGER,
        correlation_id VARCHAR NOT NULL,
        state VARCHAR NOT NULL,
        created {REAL} NOT NULL,
        updated {REAL} NOT NULL,
        error TEXT,
        PRIMARY KEY (id),
        UNIQUE (correlation_id)
    );
    INSERT INTO intents SELECT
        id, 'default', vm, cluster, source, target, memory_mb, correlation_id, state, created, updated, error
        FROM former_rows;
    DROP TABLE former_rows;
    CREATE TABLE former_rows AS SELECT * FROM placement_keys;
    DROP TABLE placement_keys;
    CREATE TABLE placement_keys (
        engine VARCHAR NOT NULL,
        level VARCHAR NOT NULL,
        resource VARCHAR NOT NULL,
        class VARCHAR NOT NULL,
        name VARCHAR NOT NULL,
        value JSON NOT NULL,
        weight {REAL},
        sticky BOOLEAN NOT NULL,
        set_by VARCHAR NOT NULL,
        set_at {REAL} NOT NULL,
        PRIMARY KEY (engine, level, resource, class, name)
    ) {BY_KEY};
    INSERT INTO placement_keys SELECT 'default', former_rows.* FROM former_rows;
    DROP TABLE former_rows;
    CREATE TABLE former_rows AS SELECT * FROM frozen_keys;
    DROP TABLE frozen_keys;
    CREATE TABLE frozen_keys (
        engine VARCHAR NOT NULL,
        vm VARCHAR NOT NULL,
        keys JSON NOT NULL,
        started {REAL},
        recorded {REAL} NOT NULL,
        PRIMARY KEY (engine, vm)
    ) {BY_KEY};
    INSERT INTO frozen_keys SELECT 'default', former_rows.* FROM former_rows;
    DROP TABLE former_rows;
    CREATE TABLE former_rows AS SELECT * FROM sticky_copies;
    DROP TABLE sticky_copies;
    CREATE TABLE sticky_copies (
        engine VARCHAR NOT NULL,
        vm VARCHAR NOT NULL,
        name VARCHAR NOT NULL,
        value {REAL} NOT NULL,
        weight {REAL} NOT NULL,
        PRIMARY KEY (engine, vm, name)
    ) {BY_KEY};
    INSERT INTO sticky_copies SELECT 'default', former_rows.* FROM former_rows;
    DROP TABLE former_rows;
    CREATE TABLE former_rows AS SELECT * FROM key_revision;
    DROP TABLE key_revision;
    CREATE TABLE key_revision (
        engine VARCHAR NOT NULL,
        revision INTEGER NOT NULL,
        PRIMARY KEY (engine)
    );
    INSERT INTO key_revision SELECT 'default', former_rows.* FROM former_rows;
    DROP TABLE former_rows;
    CREATE TABLE former_rows AS SELECT * FROM missing_vms;
    DROP TABLE missing_vms;
    CREATE TABLE missing_vms (
        engine VARCHAR NOT NULL,
        vm VARCHAR NOT NULL,
        since {REAL} NOT NULL,
        PRIMARY KEY (engine, vm)
    ) {BY_KEY};
    INSERT INTO missing_vms SELECT 'default', former_rows.* FROM former_rows;
    DROP TABLE former_rows;
    CREATE INDEX ix_intents_engine_vm ON intents (engine, vm);
    CREATE INDEX ix_intents_engine_state ON intents (engine, state);
    {IDS};
    UPDATE schema_version SET version = 4;
"""

_VERSION_5 = """
    CREATE TABLE memberships (
        engine VARCHAR NOT NULL,
        vm VARCHAR NOT NULL,
        cluster VARCHAR NOT NULL,
        cluster_name VARCHAR NOT NULL,
        member_of JSON NOT NULL,
        PRIMARY KEY (engine, vm)
    ) {BY_KEY};
    CREATE TABLE lost_memberships (
        engine VARCHAR NOT NULL,
        vm VARCHAR NOT NULL,
        kind VARCHAR NOT NULL,
        name VARCHAR NOT NULL,
        id VARCHAR NOT NULL,
        vm_name VARCHAR NOT NULL,
        cluster VARCHAR NOT NULL,
        cluster_name VARCHAR NOT NULL,
        since {REAL} NOT NULL,
        told BOOLEAN NOT NULL,
        PRIMARY KEY (engine, vm, kind, name)
    ) {BY_KEY};
    INSERT INTO memberships VALUES ('default', 'v1', 'c1', 'blue', '[["group", "g1", "near"]]');
    INSERT INTO lost_memberships VALUES
        ('default', 'v2', 'label', 'backend', 'l1', 'web', 'c2', 'red', 1790000010.5, false);
    UPDATE schema_version SET version = 5;
"""

_VERSION_6 = """
    CREATE TABLE pauses (
        engine VARCHAR NOT NULL,
        cluster VARCHAR NOT NULL,
        cluster_name VARCHAR NOT NULL,
        reason TEXT NOT NULL,
        set_by VARCHAR NOT NULL,
        set_at {REAL} NOT NULL,
        until {REAL},
        PRIMARY KEY (engine, cluster)
    ) {BY_KEY};
    CREATE TABLE resumptions (
        engine VARCHAR NOT NULL,
        cluster VARCHAR NOT NULL,
        set_by VARCHAR NOT NULL,
        set_at {REAL} NOT NULL,
        PRIMARY KEY (engine, cluster)
    ) {BY_KEY};
    CREATE TABLE waiting_plans (
        engine VARCHAR NOT NULL,
        cluster VARCHAR NOT NULL,
        plan VARCHAR NOT NULL,
        moves JSON NOT NULL,
        text TEXT NOT NULL,
        since {REAL} NOT NULL,
        PRIMARY KEY (engine, cluster)
    ) {BY_KEY};
    CREATE TABLE approvals (
        engine VARCHAR NOT NULL,
        cluster VARCHAR NOT NULL,
        plan VARCHAR NOT NULL,
        moves JSON NOT NULL,
        set_by VARCHAR NOT NULL,
        set_at {REAL} NOT NULL,
        PRIMARY KEY (engine, cluster)
    ) {BY_KEY};
    CREATE TABLE broken_rules (
        engine VARCHAR NOT NULL,
        cluster VARCHAR NOT NULL,
        rule VARCHAR NOT NULL,
        cycles INTEGER NOT NULL,
        counted {REAL} NOT NULL,
        PRIMARY KEY (engine, cluster, rule)
    ) {BY_KEY};
    INSERT INTO pauses VALUES
        ('default', 'c1', 'blue', 'backup runs: "é"', 'ann', 1790000011.5, NULL),
        ('default', 'c2', 'red', '', 'bob', 1790000012.5, 1790003612.5);
    INSERT INTO resumptions VALUES ('default', 'c3', 'ann', 1790000013.5);
    INSERT INTO waiting_plans VALUES
        ('default', 'c1', '0123456789ab', '[[["v1"], ["h1"], "h2"]]', 'Cluster blue', 1790000014.5);
    INSERT INTO approvals VALUES
        ('default', 'c2', 'ba9876543210', '[[["v2", "v3"], ["h2", "h2"], "h1"]]', 'bob', 1790000015.5);
    INSERT INTO broken_rules VALUES ('default', 'c1', 'vm_affinity hard g1 g2', 7, 1790000016.5);
    UPDATE schema_version SET version = 6;
"""

_VERSION_7 = """
    CREATE TABLE leases (
        engine VARCHAR NOT NULL,
        owner VARCHAR NOT NULL,
        epoch INTEGER NOT NULL,
        seconds {REAL} NOT NULL,
        expires {REAL} NOT NULL,
        PRIMARY KEY (engine)
    ) {BY_KEY};
    CREATE TABLE plans (
        engine VARCHAR NOT NULL,
        id VARCHAR NOT NULL,
        cluster VARCHAR NOT NULL,
        epoch INTEGER,
        document JSON NOT NULL,
        created {REAL} NOT NULL,
        updated {REAL} NOT NULL,
        PRIMARY KEY (engine, id)
    );
    CREATE INDEX ix_plans_engine_updated ON plans (engine, updated);
    CREATE TABLE held_steps (
        engine VARCHAR NOT NULL,
        plan VARCHAR NOT NULL,
        step INTEGER NOT NULL,
        gate VARCHAR NOT NULL,
        reason TEXT NOT NULL,
        times INTEGER NOT NULL,
        created {REAL} NOT NULL,
        updated {REAL} NOT NULL,
        PRIMARY KEY (engine, plan, step, gate)
    );
    ALTER TABLE intents ADD COLUMN plan VARCHAR;
    ALTER TABLE intents ADD COLUMN step INTEGER;
    ALTER TABLE intents ADD COLUMN outcome JSON;
    ALTER TABLE intents ADD COLUMN circumstances VARCHAR;
    CREATE INDEX ix_intents_engine_plan ON intents (engine, plan);
    INSERT INTO leases VALUES ('default', 'one-123-abc', 41, 15.0, 1790000017.5);
    INSERT INTO plans VALUES
        ('default', '0123456789ab', 'c1', 40, '{{"id": "0123456789ab"}}', 1790000018.5, 1790000019.5);
    INSERT INTO held_steps VALUES
        ('default', '0123456789ab', 1, 'mode', 'mode "observe"', 3, 1790000020.5, 1790000021.5);
    UPDATE intents
        SET plan = '0123456789ab', step = 1, outcome = '{{"gain": 1, "rules": []}}', circumstances = 'abc'
        WHERE vm = 'v1';
    UPDATE schema_version SET version = 7;
"""

#: By their number.
FORMER = dict(
    enumerate((_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4, _VERSION_5, _VERSION_6, _VERSION_7), 1)
)

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
