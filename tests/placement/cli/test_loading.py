"""A command loads what it needs: on a small machine, all of the project takes longer than an answer."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = "import sys, {module}\n{then}\nprint(*sorted(sys.modules), file=sys.stderr)"


def loaded(module: str, then: str = "") -> set[str]:
    """The modules that a process has once it has loaded this one."""
    code = LOADED.format(module=module, then=then)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("command", ["status", "why", "violations", "conflicts"])
def test_a_command_loads_no_other_and_no_database(command: str) -> None:
    found = loaded("ovirt_placement.cli.main", f"ovirt_placement.cli.main._parser(['{command}'])")
    assert "ovirt_placement.cli.snapshot" not in found
    assert not {"ovirtsdk4", "sqlalchemy", "ortools"} & found


def test_a_plan_loads_no_daemon() -> None:
    assert "ovirt_enforcer.service.daemon" not in loaded("ovirt_enforcer.on_request.of_engine")
