"""Version 2: placement keys, frozen keys, sticky copies, and their revision."""

STATEMENTS = """
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
