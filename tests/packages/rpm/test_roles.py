"""The roles of our collection, from an empty machine to a cluster that places by our units."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.packages.rpm.building import interpreter
from tests.packages.rpm.machine import Machine, machine
from tests.packages.rpm.services import ADDRESS, all_started, simulated_engine
from tests.paths import CHECKOUT

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("rpm")]

_PAGE = CHECKOUT / "docs" / "ansible.md"
_VARIABLES = {
    "server_repository": "file:///packages",
    "server_url": f"http://{ADDRESS}/ovirt-engine/api",
    "server_username": "admin@internal",
    "server_password": "password",
    "server_ca_file": "",
    # systemd does not run on such a machine: what is enabled there is started by hand.
    "server_started": False,
    "engine_restart": False,
    "engine_clusters": ["production"],
    "ansible_python_interpreter": "/usr/bin/python3",
    "ansible_become": False,
    "machine_dnf": "dnf4",
    "machine_release": "9",
}
#: What Ansible and dnf find out by themselves on EL.
_UNLIKE_EL = {"ansible.builtin.dnf": {"use_backend": "dnf4", "releasever": "9"}}
#: An engine's settings, as its own command reads and writes them.
_ENGINE_CONFIG = """#!/bin/sh -eu
settings=/root/engine-settings
touch "$settings"
case $1 in
    -g) value="$(sed -n "s|^$2=||p" "$settings")"; echo "$2: $value version: general" ;;
    -s) sed -i "\\\\|^${2%%=*}=|d" "$settings"; echo "$2" >> "$settings" ;;
esac
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Ansible finds our collection, and nothing of the user's."""
    place = tmp_path_factory.mktemp("ansible")
    shutil.copytree(
        CHECKOUT / "packaging" / "ansible", place / "ansible_collections" / "ovirt_placement" / "core"
    )
    return place


@pytest.fixture(scope="module")
def empty(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with machine(tmp_path_factory.mktemp("empty"), released, interpreter()) as made:
        made.dnf("install", "ovirt-placement-simulator")  # the engine
        # What EL has, and Debian's dnf does not come with.
        made.runs("mkdir", "-p", "/etc/yum.repos.d")
        made.write("/usr/bin/engine-config", _ENGINE_CONFIG)
        made.runs("chmod", "755", "/usr/bin/engine-config")
        yield made


def test_from_an_empty_machine_to_clusters_that_place_by_our_units(empty: Machine, home: Path) -> None:
    with simulated_engine(empty):
        first = play(empty, home, engine_clusters=[])
    # Repository, packages, password, configuration, enabled units, and settings of the engine.
    assert first["changed"] == 6
    assert empty.shows("/etc/ovirt-placement/password") == "640 root ovirt-placement"
    assert 'domain_tags = ["rack-"]' in empty.read("/etc/ovirt-placement/ovirt-placement.toml")
    for unit in (
        "ovirt-placement-inventory.service",
        "ovirt-scheduler-proxy.socket",
        "ovirt-enforcer.service",
    ):
        assert empty.tries("systemctl", "is-enabled", unit).stdout == "enabled\n", unit
    assert empty.read("/root/engine-settings").splitlines() == [
        "ExternalSchedulerEnabled=true",
        "ExternalSchedulerServiceURL=http://localhost:18781/",
    ]
    with all_started(empty):
        said = molecule(empty, home, server_must_be_well=True)
    # The clusters use our units; the second time nothing changes, which molecule makes sure of.
    first, second, verified = re.findall(r"^machine +: ok=\d+ +changed=(\d+) .*failed=0 ", said, re.MULTILINE)
    assert (first, second, verified) == ("1", "0", "0"), said


def play(there: Machine, home: Path, **variables: object) -> dict[str, Any]:
    """Run the page's playbook, and return how many tasks did what."""
    playbook = home / "page.yml"
    playbook.write_text(yaml.safe_dump([_of_page() | {"module_defaults": _UNLIKE_EL}]))
    given = f"--extra-vars={json.dumps(_variables(there, home, variables))}"
    said = _ran(home, home, "ansible-playbook", "--inventory=machine,", given, str(playbook))
    found: dict[str, Any] = json.loads(said)["stats"]["machine"]
    return found


def _ran(home: Path, folder: Path, command: str, *words: str, **environment: str) -> str:
    """What a command says, with nothing of the user's."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name(command)), *words],
        cwd=folder,
        env=_environment(home) | environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


def _of_page() -> dict[str, Any]:
    """The play that the page shows."""
    _, _, page = _PAGE.read_text().partition("## The roles")
    (written,) = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    found: dict[str, Any] = written
    return found


def molecule(there: Machine, home: Path, **variables: object) -> str:
    """Run the collection's default scenario, and return what it says."""
    file = home / "machine.json"
    of_page = {name: value for role in _of_page()["roles"] for name, value in role.get("vars", {}).items()}
    file.write_text(json.dumps(of_page | _variables(there, home, variables)))
    return _ran(
        home,
        home / "ansible_collections" / "ovirt_placement" / "core",
        *("molecule", "test", "--destroy=never"),
        ANSIBLE_STDOUT_CALLBACK="ansible.builtin.default",
        ANSIBLE_NOCOLOR="1",
        NO_COLOR="1",
        PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        PLACEMENT_MACHINE=str(file),
    )


def _variables(there: Machine, home: Path, variables: Mapping[str, object]) -> dict[str, object]:
    """Those of the roles, how the machine is reached, and how it is unlike EL."""
    entered = home / "enter"
    entered.write_text(f'#!/bin/sh\nshift\nexec {shlex.join(there.command())} SYSTEMD_OFFLINE=1 "$@"\n')
    entered.chmod(0o755)
    reached = {
        "ansible_host": "/",
        "ansible_connection": "community.general.chroot",
        "ansible_chroot_exe": str(entered),
    }
    return {**_VARIABLES, **reached, **variables}


def _environment(home: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    return inherited | {
        "HOME": str(home),
        "ANSIBLE_HOME": str(home / "home"),
        "ANSIBLE_COLLECTIONS_PATH": str(home),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "LC_ALL": "C.UTF-8",
    }
