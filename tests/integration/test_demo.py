"""The demonstration, judged from outside: what the engine's API says after it, and what it leaves behind.

Reads the API with the standard library alone, so that it shares nothing with the enforcer.
"""

import base64
import os
import re
import signal
import subprocess
import sys
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.paths import CHECKOUT

#: A few report whether it works at all; the others that chance does not matter.
SEEDS = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 9)]
MIGRATION_DONE = "63"


@dataclass(frozen=True)
class Api:
    url: str
    user: str
    password: str

    def get(self, path: str) -> ET.Element:
        credentials = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        request = urllib.request.Request(
            f"{self.url}/{path}",
            headers={"Authorization": f"Basic {credentials}", "Accept": "application/xml"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return ET.fromstring(response.read())

    def host_of_vm(self) -> dict[str, str | None]:
        """Host id by VM name; None for a VM that is down."""
        vms = {}
        for vm in self.get("vms"):
            host = vm.find("host")
            vms[vm.findtext("name")] = None if host is None else host.get("id")
        return vms

    def migrated_vms(self) -> list[str]:
        done = [event for event in self.get("events") if event.findtext("code") == MIGRATION_DONE]
        return sorted(event.findtext("vm/name") for event in done)


@contextmanager
def kept_demo(seed: int, folder: Path) -> Iterator[tuple[Api, psutil.Process, str]]:
    """The demonstration at the end of its story, still running."""
    demo = subprocess.Popen(
        [sys.executable, "-m", "demo", "--seed", str(seed), "--keep"],
        cwd=CHECKOUT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        lines = []
        for line in demo.stdout:
            lines.append(line)
            found = re.search(r"API: +(\S+) \(user (\S+), password (\S+)\)", line)
            if found:
                yield Api(*found.groups()), psutil.Process(demo.pid), "".join(lines)
                break
        else:
            pytest.fail("the demonstration did not reach its end:\n" + "".join(lines))
    finally:
        demo.send_signal(signal.SIGINT)
        demo.stdout.read()
        demo.wait(30)


@pytest.mark.parametrize("seed", SEEDS)
def test_ends_with_every_rule_kept_and_no_needless_migration(seed: int, tmp_path: Path) -> None:
    with kept_demo(seed, tmp_path) as (api, demo, _):
        host_of_vm = api.host_of_vm()
        name_of_vm = {vm.get("id"): vm.findtext("name") for vm in api.get("vms")}
        for group in api.get("clusters/production/affinitygroups"):
            members = [name_of_vm[vm.get("id")] for vm in group.find("vms")]
            hosts = [host_of_vm[vm] for vm in members if host_of_vm[vm]]
            together = group.findtext("vms_rule/positive") == "true"
            assert len(set(hosts)) == (min(1, len(hosts)) if together else len(hosts)), group.findtext("name")

        assert host_of_vm["shop-cache"] == host_of_vm["shop-db"]
        assert host_of_vm["shop-web"] is None
        assert host_of_vm["ledger-new"] is not None
        assert host_of_vm["audit-probe"] is None

        migrated = api.migrated_vms()
        assert len(migrated) == 2
        assert migrated[0].startswith("app-")
        assert migrated[1] in {"db-1", "db-2"}

        processes = demo.children(recursive=True)
        assert len(processes) >= 4

    _, alive = psutil.wait_procs([demo, *processes], timeout=30)
    assert not alive
    assert list(tmp_path.iterdir()) == []


def test_ends_by_itself_and_shows_the_story(tmp_path: Path) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "demo", "--seed", "3"],
        cwd=CHECKOUT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    assert completed.stderr == ""
    before, after = completed.stdout.split("=== The enforcer")
    assert before.count("VIOLATED") == 2
    assert "VIOLATED" not in after
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_it_offers_to_try_works(tmp_path: Path) -> None:
    with kept_demo(1, tmp_path) as (_, _, reported):
        _, farewell = reported.split("=== It keeps running")
        (config,) = re.findall(r"export (OVIRT_PLACEMENT_CONFIG)=(\S+)", farewell)
        commands = re.findall(r"^  \.venv/bin/(.*)$", farewell, re.MULTILINE)
        assert len(commands) == 5
        answers = [
            subprocess.run(
                [Path(sys.executable).parent / command.split()[0], *command.split()[1:]],
                env={**os.environ, config[0]: config[1]},
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            for command in commands
        ]
    assert [answer.stderr for answer in answers if "Traceback" in answer.stderr] == []
    assert [answer.returncode for answer in answers] == [1, 3, 0, 0, 0], answers
    assert "app-stray" in answers[0].stdout


def test_it_installs_what_runs_and_says_so() -> None:
    """Neither Ansible nor mypy, and not in silence."""
    planned = subprocess.run(
        ["make", "--dry-run", "--always-make", "demo"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (install,) = (line for line in planned.splitlines() if " pip install " in line)
    assert "[" not in install
    assert "--quiet" not in install
    assert "Installing what it needs" in planned
