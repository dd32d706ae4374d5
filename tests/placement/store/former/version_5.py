"""Version 5: memberships, and those that VMs have lost."""

STATEMENTS = """
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
