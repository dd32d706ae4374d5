"""What is installed: users, owners, units, commands; and services that run by their units' own commands."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence

import pytest
from lxml import etree

from ovirt_placement_web.settings import WebSettings
from ovirt_scheduler_proxy.settings import Server
from tests.packages.rpm.machine import CONFIGURATION, Machine
from tests.packages.rpm.services import ADDRESS, all_started, until
from tests.paths import CHECKOUT

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("rpm")]

UNITS = sorted(unit.name for unit in CHECKOUT.glob("packaging/*.service"))
COMMANDS = (
    "ovirt-placement",
    "ovirt-scheduler-proxy",
    "ovirt-enforcer",
    "ovirt-placement-web",
    "ovirt-simulator",
)

OWNED = {
    "/etc/ovirt-placement": "750 root ovirt-placement",
    "/etc/ovirt-placement/ovirt-placement.toml": "640 root ovirt-placement",
    "/etc/ovirt-scheduler-proxy/ovirt-scheduler-proxy.toml": "644 root root",
    "/var/lib/ovirt-placement": "2770 ovirt-placement ovirt-placement",
    "/var/log/ovirt-scheduler-proxy": "750 ovirt-scheduler-proxy ovirt-scheduler-proxy",
    "/usr/share/ovirt-scheduler-proxy/plugins": "755 root root",
    "/usr/bin/ovirt-enforcer": "755 root root",
}

#: What an administrator writes into the configuration that comes with the package.
SETTINGS = f"""
s|^#url = "https:.*|url = "http://{ADDRESS}/ovirt-engine/api"|
s|^#username = .*|username = "admin@internal"|
s|^#password_file =|password_file =|
s|^#mode = .*|mode = "approve"|
"""


def test_users_are_made(installed: Machine) -> None:
    for user in ("ovirt-placement", "ovirt-scheduler-proxy", "ovirt-placement-web"):
        assert "ovirt-placement" in installed.runs("id", "-Gn", user).split()


@pytest.mark.parametrize("file", OWNED)
def test_files_belong_to_those_who_need_them(installed: Machine, file: str) -> None:
    assert installed.shows(file) == OWNED[file]


def test_files_are_those_of_the_packages(installed: Machine) -> None:
    assert installed.runs("rpm", "-Va", "--nodeps") == ""


def test_bytecode_counts(installed: Machine) -> None:
    assert installed.stale_bytecode() == ""


def test_nothing_is_enabled_by_itself(installed: Machine) -> None:
    for unit in UNITS:
        state = installed.tries("systemctl", "is-enabled", unit.replace("@", "@east")).stdout
        assert state == "disabled\n", unit


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs_for_any_user(installed: Machine, command: str) -> None:
    assert installed.runs(command, "--help", user="ovirt-scheduler-proxy").startswith(f"usage: {command}")


@pytest.mark.parametrize("unit", UNITS)
def test_little_is_exposed_to_a_service(installed: Machine, unit: str) -> None:
    """At most 2.0 of systemd's points, of which 10 are the worst."""
    file = f"/usr/lib/systemd/system/{unit.replace('@', '@east')}"
    said = installed.tries("systemd-analyze", "security", "--offline=true", "--threshold=20", file)
    assert re.search(r"Overall exposure level .*: [01]\.\d|: 2\.0", said.stdout), (
        said.stdout[-300:] + said.stderr
    )
    assert said.returncode == 0


@pytest.fixture(scope="module")
def served(installed: Machine) -> Iterator[Machine]:
    """All services run, against a simulated engine that asks the proxy for its units."""
    installed.shell("install -m 640 -g ovirt-placement /dev/null /etc/ovirt-placement/password")
    installed.shell("echo password > /etc/ovirt-placement/password")
    installed.runs("sed", "-i", SETTINGS, CONFIGURATION)
    with all_started(installed):
        yield installed


def test_services_start_by_their_units_and_doctor_finds_nothing(served: Machine) -> None:
    assert json.loads(served.runs("ovirt-placement", "doctor", "--json"))["findings"] == []
    for user in ("root", "ovirt-placement-web"):
        status = json.loads(served.tries("ovirt-placement", "status", "--json", user=user).stdout)
        assert "HostAffinityFilter" in status["proxy"]["units"], status["proxy"]


def test_the_first_plan_is_shown(served: Machine) -> None:
    said = served.tries("ovirt-enforcer", "plan").stdout
    assert "1 migration, the fewest that repair all that can be repaired (optimal; proven)" in said


def test_the_service_makes_plans(served: Machine) -> None:
    """By processes of its own, which load its command as a module."""
    until(served, "sh", "-c", "ovirt-enforcer approve --list | grep '^Plan '")


def test_the_proxy_offers_our_units(served: Machine) -> None:
    said = served.runs("ovirt-scheduler-proxy", "call", "discover")
    assert "HostAffinityFilter" in said
    assert "HaReservationBalance" in said


# -- What engine-backup and sos do with the files that packages add to them.
#: Where a backup lies, as engine-backup unpacks it.
BACKUP = "/root/backup"

#: As engine-backup sources what packages add: within a function whose variables they see, in this order.
_ENGINE_BACKUP = """
output() { printf '%%s\\n' "$1"; }
source_d() {
    local file
    for file in $(find "/etc/ovirt-engine-backup/engine-backup-$1.d" -name '*.sh' | sort); do . "$file"; done
}
dobackup() {
    local tardir="$TEMP_FOLDER"
    mkdir -p "$tardir"
    echo "$BACKUP_PATHS" | while read -r path; do [ -e "$path" ] && echo "$path"; done \
        | tar -C / --files-from - -cPf "$tardir/files"
    source_d dobackup
}
SCOPE_FILES=%(files)s
TEMP_FOLDER=%(folder)s
BACKUP_PATHS=/etc/hostname
source_d defaults
"""


def backup(machine: Machine, *, files: bool = True) -> str:
    """Save what engine-backup saves, of files or only of databases; return what it says."""
    return _run_engine_backup(machine, files, "dobackup")


def restore(machine: Machine) -> str:
    """Restore it; return what engine-backup says."""
    return _run_engine_backup(machine, True, "source_d dorestore")


def collected_by_sos(machine: Machine) -> Sequence[str]:
    """The commands that a report runs."""
    lines = machine.read("/etc/sos/extras.d/ovirt-placement").splitlines()
    return [line for line in lines if line.strip() and not line.startswith(("#", ":"))]


def _run_engine_backup(machine: Machine, files: bool, stage: str) -> str:
    values = {"files": "1" if files else "", "folder": BACKUP}
    return machine.runs("bash", "-c", _ENGINE_BACKUP % values + stage)


def test_engine_backup_saves_files_and_store_and_says_how_the_store_comes_back(served: Machine) -> None:
    served.write("/etc/ovirt-placement/west.toml", '[store]\nurl = "sqlite:////nowhere/store.db"\n')
    saved = backup(served).splitlines()
    assert saved[0] == f"- Store of ovirt-placement by {CONFIGURATION}"
    assert saved[1].startswith("- Store of ovirt-placement by /etc/ovirt-placement/west.toml NOT SAVED: ")
    names = served.runs("tar", "-tPf", f"{BACKUP}/files").split()
    assert {CONFIGURATION, "/etc/ovirt-scheduler-proxy/ovirt-scheduler-proxy.toml"} < set(names)
    *_, command = restore(served).splitlines()
    assert served.shows("/var/lib/ovirt-placement-restored").startswith("700 ")
    # Its services run still, so that it is only looked at.
    assert served.runs(*shlex.split(command), "--replace", "--dry-run")
    served.runs("rm", "/etc/ovirt-placement/west.toml")


def test_engine_backup_of_databases_alone_saves_no_store(served: Machine) -> None:
    assert backup(served, files=False) == ""


def test_sos_collects_what_can_be_run(served: Machine) -> None:
    """But for systemd's commands: it does not run here. An exit status says what doctor and status find."""
    commands = [shlex.split(one) for one in collected_by_sos(served)]
    ours = [words for words in commands if words[0].startswith("ovirt-")]
    assert len(ours) == len(commands) - 2
    for words in ours:
        done = served.tries(*words)
        assert (done.stderr, done.stdout == "") == ("", False), words


@pytest.mark.parametrize(
    ("service", "listen"),
    [("ovirt-scheduler-proxy", Server().listen), ("ovirt-placement-web", WebSettings().listen)],
)
def test_firewalld_knows_where_a_service_listens(installed: Machine, service: str, listen: str) -> None:
    (port,) = etree.fromstring(installed.read(f"/usr/lib/firewalld/services/{service}.xml").encode()).iter(
        "port"
    )
    assert (port.get("protocol"), port.get("port")) == ("tcp", listen.rpartition(":")[2])
