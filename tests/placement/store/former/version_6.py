"""Version 6: pauses and their ends, plans that wait for an approval, approvals, and violated rules."""

STATEMENTS = """
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
