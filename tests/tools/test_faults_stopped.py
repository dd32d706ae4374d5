"""An enforcer that leads still when it wakes: what it had decided before is too old nevertheless."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.proxy.running import eventually
from tools.faults.clusters import drawn
from tools.faults.faults import stopped_before_a_log_in
from tools.faults.stage import stage

#: Neither the lease ends nor the patience with the engine, but what was read grows older than it may.
_PATIENCE, _LEASE, _TOO_OLD = 30.0, 60.0, 3.5


def _hold() -> None:
    until = time.monotonic() + _TOO_OLD
    eventually(lambda: time.monotonic() > until)


@pytest.mark.system
def test_nothing_is_migrated_on_what_was_read_before_a_log_in_that_took_long(tmp_path: Path) -> None:
    with stage(tmp_path, drawn(0), patience=_PATIENCE, lease=_LEASE) as made:
        stopped_before_a_log_in(made, _hold)
        made.until_over()
        assert "too old" in made.enforcer.said
        assert made.recorder.begun == []
        assert made.faults() == []
