"""Tests that share something costly run in one worker: the groups of pytest-xdist hold with this pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_TESTS = """
import os
from pathlib import Path

import pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(8))
def test_worker(number):
    Path(os.environ["PYTEST_XDIST_WORKER"]).touch()
"""


@pytest.mark.system
def test_a_group_is_run_by_one_worker(tmp_path: Path) -> None:
    (tmp_path / "test_workers.py").write_text(_TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist",
        "loadgroup",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "8 passed" in done.stdout, done.stdout + done.stderr
    assert len([*tmp_path.glob("gw*")]) == 1
