"""`ovirt-placement doctor`: the system below us, as its files are. Units are enabled by systemctl itself."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ovirt_placement.answers import proxy
from ovirt_placement.answers.doctor import FoundProblem, machine
from ovirt_placement.answers.doctor.machine import (
    examine_fapolicyd,
    examine_fips,
    examine_socket,
)
from ovirt_placement.config import Config
from ovirt_service.errors import UserError
from tests.paths import CHECKOUT
from tests.placement.cli.doctor.examining import EMPTY
from tests.placement.cli.live_engine import Starting

PAGE = CHECKOUT / "docs" / "hardened-hosts.md"
#: The folder of the page's rule, and a folder next to it.
FOLDER, OTHER = "/usr/share/ovirt-scheduler-proxy/plugins", "/opt/plugins"

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file below what stands for the root."""

    def put(name: str, text: str) -> Path:
        file = tmp_path / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return put


def kinds(found: Iterable[FoundProblem]) -> list[str]:
    return [each.kind for each in found]


# -- the socket


def test_a_proxy_whose_socket_is_not_enabled(tmp_path: Path) -> None:
    units = tmp_path / "usr/lib/systemd/system"
    units.mkdir(parents=True)
    for unit in CHECKOUT.glob("packaging/ovirt-scheduler-proxy.s*"):
        shutil.copy(unit, units)

    def systemctl(*arguments: str) -> None:
        subprocess.run(["systemctl", f"--root={tmp_path}", *arguments], check=True, capture_output=True)

    assert kinds(examine_socket(tmp_path)) == []
    systemctl("enable", "ovirt-scheduler-proxy.service")
    assert kinds(examine_socket(tmp_path)) == []
    systemctl("disable", "ovirt-scheduler-proxy.socket")
    assert kinds(examine_socket(tmp_path)) == ["socket_not_enabled"]


# -- FIPS mode


@pytest.mark.parametrize(
    ("mode", "url", "wheels", "names"),
    [
        ("1\n", "sqlite:////a.db", ("pycurl", "psycopg_binary"), None),
        ("1\n", "postgresql://h/d", ("pycurl", "psycopg_binary"), "psycopg-binary has"),
        ("1\n", "postgresql://h/d", ("pycurl",), None),
        ("0\n", "postgresql://h/d", ("psycopg_binary",), None),
        (None, "postgresql://h/d", ("psycopg_binary",), None),
    ],
)
def test_wheels_that_do_not_know_of_fips_mode(
    write: Write, tmp_path: Path, mode: str | None, url: str, wheels: tuple[str, ...], names: str | None
) -> None:
    if mode is not None:
        write("proc/sys/crypto/fips_enabled", mode)
    for wheel in wheels:
        write(f"packages/{wheel}.libs/libcrypto-fa202293.so.3", "")
    places = (tmp_path / "elsewhere", tmp_path / "packages")
    found = list(examine_fips(Config({"store": {"url": url}}, ""), tmp_path, places))
    assert [names in each.sentence for each in found if names] == ([True] if names else [])
    assert bool(found) is (names is not None)


# -- fapolicyd


@pytest.fixture
def hardened(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system on which fapolicyd runs, with a plugin in a folder of the proxy's."""
    monkeypatch.setattr(proxy, "PROXY_DIRECTORY", tmp_path / "etc/ovirt-scheduler-proxy")
    ours = '[[plugins]]\ndirectory = "/usr/share/ovirt-placement/plugins"\n'
    write(
        "etc/ovirt-scheduler-proxy/ovirt-scheduler-proxy.toml", f'{ours}[[plugins]]\ndirectory = "{FOLDER}"\n'
    )
    write("proc/1/comm", "systemd\n")
    write("proc/4711/comm", "fapolicyd\n")
    write(f"{FOLDER}/mine.py", "")
    write("/usr/share/ovirt-placement/plugins/affinity.py", "")
    return tmp_path


def test_the_pages_rule_lets_plugins_load(hardened: Path, write: Write) -> None:
    (rule,) = (line.strip() for line in PAGE.read_text().splitlines() if line.strip().startswith("allow "))
    deny = "deny_audit perm=any all : ftype=%languages\n"
    assert kinds(examine_fapolicyd("default", hardened)) == ["fapolicyd_refuses"]
    write("etc/fapolicyd/rules.d/60-ovirt-placement.rules", f"{rule}\n")
    write("etc/fapolicyd/compiled.rules", f"%languages=text/x-python\n{deny}")
    assert kinds(examine_fapolicyd("default", hardened)) == ["fapolicyd_refuses"], "it is not loaded"
    write("etc/fapolicyd/compiled.rules", f"%languages=text/x-python\n{rule}\n{deny}")
    assert kinds(examine_fapolicyd("default", hardened)) == []
    write("etc/fapolicyd/compiled.rules", f"# {rule}\n{rule.replace(FOLDER, OTHER)}\n{deny}")
    assert kinds(examine_fapolicyd("default", hardened)) == ["fapolicyd_refuses"]


def test_nothing_to_refuse(hardened: Path, write: Write) -> None:
    (hardened / FOLDER.lstrip("/") / "mine.py").unlink()
    assert kinds(examine_fapolicyd("default", hardened)) == []
    write(f"{FOLDER}/mine.py", "")
    assert kinds(examine_fapolicyd("west", hardened)) == [], "there is no proxy of that engine"
    (hardened / "proc/4711/comm").unlink()
    assert kinds(examine_fapolicyd("default", hardened)) == []


def test_rules_that_cannot_be_read_are_reported(hardened: Path) -> None:
    (hardened / "etc/fapolicyd/compiled.rules").mkdir(parents=True)
    with pytest.raises(UserError, match=r"compiled\.rules: .*; run doctor as root"):
        list(examine_fapolicyd("default", hardened))


# -- the command


def test_doctor_reports_them(
    starting: Starting, hardened: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "ROOT", hardened)
    with starting(EMPTY) as live:
        found = live.data(1, "doctor")["findings"]
    assert "fapolicyd_refuses" in {each["kind"] for each in found}
