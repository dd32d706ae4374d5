"""Version 3: VMs that are missing, since when."""

STATEMENTS = """
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
