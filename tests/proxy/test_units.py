"""How systemd runs the proxy: shut off from the machine, restarted for ever, with a socket that stays."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ovirt_scheduler_proxy.settings import Server

PACKAGING = Path(__file__).parents[2] / "packaging"
SERVICES = ("ovirt-scheduler-proxy.service", "ovirt-scheduler-proxy@.service")

#: In tenths, as systemd-analyze takes it.
MOST_EXPOSURE = 20


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
@pytest.mark.parametrize("service", SERVICES)
def test_plugins_are_shut_off_from_the_machine(service: str, tmp_path: Path) -> None:
    unit = tmp_path / service.replace("@", "")  # of a template only an instance is judged
    shutil.copy(PACKAGING / service, unit)
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSURE}", unit],
        capture_output=True,
        text=True,
    )
    assert judged.returncode == 0, judged.stdout.splitlines()[-1]


@pytest.mark.parametrize("service", SERVICES)
def test_plugins_run_as_a_user_of_their_own_and_cannot_be_changed(service: str) -> None:
    settings = dict(re.findall(r"^(\w+)=(.*)$", (PACKAGING / service).read_text(), re.MULTILINE))
    assert settings["User"] == "ovirt-scheduler-proxy"
    assert settings["ProtectSystem"] == "strict"
    assert settings["StartLimitIntervalSec"] == "0"


def test_the_socket_is_where_the_proxy_listens_unless_set_otherwise() -> None:
    socket = (PACKAGING / "ovirt-scheduler-proxy.socket").read_text()
    assert re.findall(r"^ListenStream=(.*)$", socket, re.MULTILINE) == [Server().listen]
    service = (PACKAGING / "ovirt-scheduler-proxy.service").read_text()
    assert "\nSockets=ovirt-scheduler-proxy.socket\n" in service
