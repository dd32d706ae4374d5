"""Version 1: intents, and the number that says which version this is."""

STATEMENTS = """
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
