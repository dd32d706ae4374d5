"""Runs a playbook of tests/data/ansible with the unmodified `ovirt.ovirt` modules on a simulated engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.paths import DATA

_PLAYBOOKS = DATA / "ansible"

#: What a module returned, by the task's name.
Results = dict[str, dict[str, Any]]


def play(
    playbook: str, engine: str, home: Path, *, more: Mapping[str, str] | None = None, **variables: str
) -> Results:
    """Run a playbook to its end; tasks may fail where they ignore it. `more` is put into the environment."""
    given = {"engine": engine, **variables}
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        "--inventory=localhost,",
        "--connection=local",
        f"--extra-vars={json.dumps(given)}",
        str(_PLAYBOOKS / playbook),
    ]
    environment = _environment(home) | dict(more or {})
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    tasks = [task for part in json.loads(done.stdout)["plays"] for task in part["tasks"]]
    results = {task["task"]["name"]: task["hosts"]["localhost"] for task in tasks}
    assert len(results) == len(tasks), "each task has a name of its own"
    return results


def _environment(home: Path) -> dict[str, str]:
    """Nothing of the user's own settings, and an engine known to the playbook only."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "OVIRT_"))
    }
    return inherited | {
        "HOME": str(home),
        "ANSIBLE_HOME": str(home / "ansible"),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "LC_ALL": "C.UTF-8",
    }
