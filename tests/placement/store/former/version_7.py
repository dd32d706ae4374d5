"""Version 7: leases, plans, held steps, and what each migration brought."""

STATEMENTS = """
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
        ('default', '0123456789ab', 'c1', 40,
         '{{"id": "0123456789ab", "steps": [{{"vms": [], "mends": [{{"id": "g1", "name": "mends"}}]}}]}}',
         1790000018.5, 1790000019.5);
    INSERT INTO held_steps VALUES
        ('default', '0123456789ab', 1, 'mode', 'mode "observe"', 3, 1790000020.5, 1790000021.5);
    UPDATE intents
        SET plan = '0123456789ab', step = 1, outcome = '{{"gain": 1, "rules": []}}', circumstances = 'abc'
        WHERE vm = 'v1';
    UPDATE schema_version SET version = 7;
"""
