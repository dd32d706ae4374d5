"""In FIPS mode every daemon does its work, though Python refuses some digests, whatever they are for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

pytestmark = pytest.mark.system

DAEMONS = (
    "ovirt-simulator run",
    "ovirt-placement inventory run",
    "ovirt-scheduler-proxy run",
    "ovirt-enforcer run",
)


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "tests" / "fips"), **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize(
    "digest",
    ["blake2b()", "blake2b(digest_size=8)", "blake2s(b'')", "md5(b'')", "new('blake2b')", "new('MD5', b'')"],
)
def test_what_fips_mode_refuses_is_refused_here(digest: str) -> None:
    refused = run("-c", f"import hashlib; hashlib.{digest}")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith(("ValueError", "TypeError"))


def test_the_story_of_all_daemons_comes_out_as_ever(tmp_path: Path, short_path: Path) -> None:
    """The simulator, the inventory, the proxy with our plugins, the enforcer and commands, by their names."""
    processes = tmp_path / "processes"
    processes.mkdir()
    reported = run("-m", "demo", "--seed", "3", TMPDIR=str(short_path), FIPS_PROCESSES=str(processes))
    assert (reported.returncode, reported.stderr) == (0, "")
    before, after = reported.stdout.split("=== The enforcer")
    assert before.count("VIOLATED") == 2
    assert "VIOLATED" not in after
    ran = "\n".join(file.read_text() for file in processes.iterdir())
    for daemon in DAEMONS:
        assert daemon in ran
