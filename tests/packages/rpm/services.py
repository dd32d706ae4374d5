"""Services on a machine without systemd: what their units run, run by hand."""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.packages.rpm.machine import Machine
from tests.paths import CHECKOUT

#: Where the simulated engine listens.
ADDRESS = "127.0.0.1:8080"


@contextmanager
def simulated_engine(machine: Machine, *words: str) -> Iterator[None]:
    """An engine that has just started, with README's first look, in the rack that docs/ansible.md names."""
    state = (CHECKOUT / "docs/first-look.json").read_text()
    machine.write("/root/state.json", state.replace('"cores"', '"tags": ["rack-1"], "cores"'))
    command = ["ovirt-simulator", "run", "--state", "/root/state.json", "--listen", ADDRESS, *words]
    with running(machine.command(*command)) as simulator:
        assert any("listening" in line for line in simulator.stdout), "no simulated engine"
        yield


@contextmanager
def started(machine: Machine, unit: str) -> Iterator[None]:
    """Run what a unit runs, as its user, with what systemd passes on to it."""
    text = machine.read(f"/usr/lib/systemd/system/{unit}")
    (command,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    (user,) = re.findall(r"^User=(.*)$", text, re.MULTILINE)
    logs = [
        f"LOGS_DIRECTORY=/var/log/{name}" for name in re.findall(r"^LogsDirectory=(.*)$", text, re.MULTILINE)
    ]
    with running(machine.command("env", *logs, *shlex.split(command), user=user)):
        yield


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, start_new_session=True, **output)
    try:
        yield process
    finally:
        # What it has entered does not end with it.
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@contextmanager
def all_started(machine: Machine) -> Iterator[None]:
    """Proxy, an engine that asks it for its units, inventory, enforcer: each once those before are ready."""
    machine.shell("install -d -m 750 -o ovirt-placement -g ovirt-placement /run/ovirt-placement")
    with ExitStack() as stack:
        stack.enter_context(started(machine, "ovirt-scheduler-proxy.service"))
        until(machine, "ovirt-scheduler-proxy", "call", "discover")
        stack.enter_context(simulated_engine(machine, "--proxy", "http://127.0.0.1:18781/"))
        stack.enter_context(started(machine, "ovirt-placement-inventory.service"))
        stack.enter_context(started(machine, "ovirt-enforcer.service"))
        until(machine, "sh", "-c", "ls /run/ovirt-placement/*")
        yield


def until(machine: Machine, *words: str) -> None:
    """Ask until it is so."""
    ends = time.monotonic() + 120
    while machine.tries(*words).returncode != 0:
        assert time.monotonic() < ends, words
