"""Any user may make the store: what root makes belongs to the directory's owner."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ovirt_placement.store.ownership import is_of_another
from tests.placement.cli.keys.changing import STATE
from tests.placement.cli.live_engine import LiveEngine, Starting

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
#: The services' user and group, as it were.
OWNER, GROUP = 12_345, 12_346


def set_a_key(live: LiveEngine) -> None:
    live.run(0, "keys", "set", "GEN", "1", "5", "--on", "cluster", "blue")


def test_a_store_that_root_makes_is_the_directorys_owners(serving: Starting, tmp_path: Path) -> None:
    os.chown(tmp_path, OWNER, GROUP)
    tmp_path.chmod(0o770)
    with serving(STATE) as live:
        set_a_key(live)
    files = list(tmp_path.glob("store.db*"))
    assert len(files) > 1
    for file in files:
        found = file.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (OWNER, GROUP, 0o660), file
    assert not is_of_another(tmp_path / "store.db")


def test_doctor_finds_a_store_that_services_cannot_write(serving: Starting, tmp_path: Path) -> None:
    with serving(STATE) as live:
        set_a_key(live)
        os.chown(tmp_path, OWNER, GROUP)
        found = {each["kind"]: each["remedy"] for each in live.data(1, "doctor")["findings"]}
    assert found["store_of_another"] == f"chown --reference={tmp_path} {tmp_path}/store.db*"
