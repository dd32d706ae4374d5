"""`ovirt-placement doctor`: whether each service's user can read the configuration and the password."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import NamedTuple

import pytest

from ovirt_placement.answers.doctor import machine
from ovirt_placement.answers.doctor.machine import Found, User, examine_files
from tests.placement.cli.doctor.examining import EMPTY
from tests.placement.cli.live_engine import Starting

ROOT, OURS, PROXYS, OTHERS = 0, 900, 901, 1000
INVENTORY = User("ovirt-placement", 900, frozenset({OURS}))
PROXY = User("ovirt-scheduler-proxy", 901, frozenset({PROXYS, OURS}))
PASSWORD = Path("/etc/ovirt-placement/password")
SHARE = f"chown root:ovirt-placement {PASSWORD} && chmod 640 {PASSWORD}"


class Status(NamedTuple):
    mode: int
    uid: int = ROOT
    gid: int = ROOT

    def of_directory(self) -> os.stat_result:
        return os.stat_result((0o040000 | self.mode, 0, 0, 1, self.uid, self.gid, 0, 0, 0, 0))

    def of_file(self) -> os.stat_result:
        return os.stat_result((0o100000 | self.mode, 0, 0, 1, self.uid, self.gid, 0, 0, 0, 0))


OPEN = Status(0o755)


def found(file: Status, directory: Status = OPEN, *users: User, secret: bool = True) -> dict[str, str]:
    """What is said to whom of the password, and of the file alone."""
    password = Found(PASSWORD, file.of_file(), ((PASSWORD.parent, directory.of_directory()),), secret)
    return {
        each.sentence.partition(":")[0]: f"{each.sentence.partition(': ')[2]} -> {each.remedy}"
        for each in examine_files([password], users or (INVENTORY, PROXY), OURS)
    }


INVENTORYS, WORKERS = (
    "inventory and enforcer (user ovirt-placement)",
    "the proxy's workers (user ovirt-scheduler-proxy)",
)


@pytest.mark.parametrize("directory", [Status(0o755), Status(0o750, ROOT, OURS), Status(0o711)])
def test_a_password_of_root_and_the_services_group_is_read_by_all(directory: Status) -> None:
    assert found(Status(0o640, ROOT, OURS), directory) == {}


def test_a_password_of_the_inventorys_user_alone_is_none_of_the_proxys() -> None:
    assert found(Status(0o600, INVENTORY.uid, OURS)) == {WORKERS: f"cannot read {PASSWORD} -> {SHARE}"}


def test_a_password_of_root_alone_is_read_by_no_service() -> None:
    assert found(Status(0o600)).keys() == {INVENTORYS, WORKERS}
    assert found(Status(0o640)).keys() == {INVENTORYS, WORKERS}


def test_a_password_that_its_service_refuses() -> None:
    """The proxy may read it, and takes no password that another user may change."""
    refused = found(Status(0o640, INVENTORY.uid, OURS))
    assert refused.keys() == {INVENTORYS, WORKERS}
    assert all("refuses" in each and each.endswith(f"-> {SHARE}") for each in refused.values())
    assert found(Status(0o640, INVENTORY.uid, OURS), secret=False) == {}


def test_the_owner_and_the_group_are_asked_before_others() -> None:
    assert INVENTORYS in found(Status(0o044, INVENTORY.uid, OURS), secret=False)
    assert found(Status(0o604, ROOT, OURS), secret=False).keys() == {INVENTORYS, WORKERS}


def test_a_directory_that_the_user_may_not_enter() -> None:
    closed = found(Status(0o640, ROOT, OURS), Status(0o700))
    assert closed.keys() == {INVENTORYS, WORKERS}
    assert all(f"chmod a+x {PASSWORD.parent}" in each for each in closed.values())


def test_a_user_who_is_not_in_the_group() -> None:
    stranger = PROXY._replace(gids=frozenset({PROXYS}))
    closed = found(Status(0o640, ROOT, OURS), Status(0o755), INVENTORY, stranger)
    assert closed.keys() == {WORKERS}
    assert "usermod -aG ovirt-placement ovirt-scheduler-proxy" in closed[WORKERS]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what its services cannot")
def test_doctor_asks_for_the_users_of_this_machine(
    starting: Starting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a user that is on every machine; a configuration of somebody's own concerns no service."""
    try:
        pwd.getpwnam("nobody")
    except KeyError:
        pytest.skip("nobody is no user here")
    monkeypatch.setattr(machine, "SERVICES", {"nobody": "a service", "nobody-at-all": "none"})
    with starting(EMPTY) as live:
        assert "unreadable_by_service" not in kinds(live.data(1, "doctor"))
        live.config.chmod(0o600)
        monkeypatch.setattr(machine, "DEFAULT_PATH", tmp_path / "ovirt-placement.toml")
        assert "unreadable_by_service" in kinds(live.data(1, "doctor"))


def kinds(answer: dict[str, list[dict[str, str]]]) -> set[str]:
    return {each["kind"] for each in answer["findings"]}
