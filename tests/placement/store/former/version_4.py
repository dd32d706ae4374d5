"""Version 4: every row belongs to an engine; every table is made again."""

STATEMENTS = """
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
