"""`ovirt-placement doctor`: the system below us, as its files are, and which users can read them."""

import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from ovirt_placement.answers import proxy
from ovirt_placement.answers.doctor import FoundProblem, machine
from ovirt_placement.answers.doctor.machine import (
    Found,
    User,
    examine_fapolicyd,
    examine_files,
    examine_fips,
    examine_socket,
)
from ovirt_placement.config import Config
from ovirt_service.errors import UserError
from tests.paths import CHECKOUT
from tests.placement.cli.doctor.examining import EMPTY
from tests.placement.cli.live_engine import LiveEngine, Starting

# -- `ovirt-placement doctor`: the system below us, as its files are. Units are enabled by systemctl itself.
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
    ("mode", "url", "wheels", "named"),
    [
        ("1\n", "sqlite:////a.db", ("pycurl", "psycopg_binary"), []),
        ("1\n", "postgresql://h/d", ("pycurl", "psycopg_binary"), ["psycopg-binary has"]),
        ("1\n", "postgresql://h/d", ("pycurl",), []),
        ("0\n", "postgresql://h/d", ("psycopg_binary",), []),
        (None, "postgresql://h/d", ("psycopg_binary",), []),
    ],
)
def test_wheels_that_do_not_know_of_fips_mode(
    write: Write, tmp_path: Path, mode: str | None, url: str, wheels: tuple[str, ...], named: list[str]
) -> None:
    if mode is not None:
        write("proc/sys/crypto/fips_enabled", mode)
    for wheel in wheels:
        write(f"packages/{wheel}.libs/libcrypto-fa202293.so.3", "")
    places = (tmp_path / "elsewhere", tmp_path / "packages")
    found = [*examine_fips(Config({"store": {"url": url}}, ""), tmp_path, places)]
    assert [name in one.sentence for name, one in zip(named, found, strict=True)] == [True] * len(named)


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

    def refused(engine: str = "default", compiled: str | None = None) -> bool:
        if compiled is not None:
            write("etc/fapolicyd/compiled.rules", compiled)
        found = kinds(examine_fapolicyd(engine, hardened))
        assert found in ([], ["fapolicyd_refuses"])
        return bool(found)

    assert refused()
    write("etc/fapolicyd/rules.d/60-ovirt-placement.rules", f"{rule}\n")
    assert refused(compiled=f"%languages=text/x-python\n{deny}"), "it is not loaded"
    assert not refused(compiled=f"%languages=text/x-python\n{rule}\n{deny}")
    assert refused(compiled=f"# {rule}\n{rule.replace(FOLDER, OTHER)}\n{deny}")
    assert not refused("west"), "there is no proxy of that engine"
    (hardened / FOLDER.lstrip("/") / "mine.py").unlink()
    assert not refused()
    write(f"{FOLDER}/mine.py", "")
    assert refused()
    (hardened / "proc/4711/comm").unlink()
    assert not refused()


def test_rules_that_cannot_be_read_are_reported(hardened: Path) -> None:
    (hardened / "etc/fapolicyd/compiled.rules").mkdir(parents=True)
    with pytest.raises(UserError, match=r"compiled\.rules: .*; run doctor as root"):
        list(examine_fapolicyd("default", hardened))


# -- the command
def found_by(live: LiveEngine) -> set[str]:
    return {each["kind"] for each in live.data(1, "doctor")["findings"]}


def test_doctor_reports_them(starting: Starting, hardened: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "ROOT", hardened)
    with starting(EMPTY) as live:
        assert "fapolicyd_refuses" in found_by(live)


# -- `ovirt-placement doctor`: whether each service's user can read the configuration and the password.
ROOT, OURS, PROXYS, OTHERS = 0, 900, 901, 1000
INVENTORY = User("ovirt-placement", 900, frozenset({OURS}))
PROXY = User("ovirt-scheduler-proxy", 901, frozenset({PROXYS, OURS}))
PASSWORD = Path("/etc/ovirt-placement/password")
SHARE = f"chown root:ovirt-placement {PASSWORD} && chmod 640 {PASSWORD}"


class Status(NamedTuple):
    mode: int
    uid: int = ROOT
    gid: int = ROOT

    def of(self, kind: int) -> os.stat_result:
        return os.stat_result((kind | self.mode, 0, 0, 1, self.uid, self.gid, 0, 0, 0, 0))


OPEN = Status(0o755)


def found(file: Status, directory: Status = OPEN, *users: User, secret: bool = True) -> dict[str, str]:
    """What is said to whom of the password, and of the file alone."""
    folder = (PASSWORD.parent, directory.of(stat.S_IFDIR))
    password = Found(PASSWORD, file.of(stat.S_IFREG), (folder,), secret)
    return {
        each.sentence.partition(":")[0]: f"{each.sentence.partition(': ')[2]} -> {each.remedy}"
        for each in examine_files([password], users or (INVENTORY, PROXY), OURS)
    }


INVENTORYS, WORKERS = (
    "inventory and enforcer (user ovirt-placement)",
    "the proxy's workers (user ovirt-scheduler-proxy)",
)


BOTH = {INVENTORYS, WORKERS}
ENTER = f"chmod a+x {PASSWORD.parent}"


NEVER: set[str] = set()
FILES = [
    (Status(0o640, ROOT, OURS), Status(0o755), True, NEVER, ""),
    (Status(0o640, ROOT, OURS), Status(0o750, ROOT, OURS), True, NEVER, ""),
    (Status(0o640, ROOT, OURS), Status(0o711), True, NEVER, ""),
    (Status(0o640, ROOT, OURS), Status(0o700), True, BOTH, ENTER),
    # Of root alone, and of the inventory's user alone.
    (Status(0o600), OPEN, True, BOTH, ""),
    (Status(0o640), OPEN, True, BOTH, ""),
    (Status(0o600, INVENTORY.uid, OURS), OPEN, True, {WORKERS}, f"cannot read {PASSWORD} -> {SHARE}"),
    # The services may read it, and take no password that another user may change.
    (Status(0o640, INVENTORY.uid, OURS), OPEN, True, BOTH, "refuses"),
    (Status(0o640, INVENTORY.uid, OURS), OPEN, True, BOTH, f"-> {SHARE}"),
    (Status(0o640, INVENTORY.uid, OURS), OPEN, False, NEVER, ""),
    # Owner and group are asked before others.
    (Status(0o044, INVENTORY.uid, OURS), OPEN, False, {INVENTORYS}, ""),
    (Status(0o604, ROOT, OURS), OPEN, False, BOTH, ""),
]


@pytest.mark.parametrize(("file", "directory", "secret", "whom", "said"), FILES)
def test_who_cannot_read_a_file(
    file: Status, directory: Status, secret: bool, whom: set[str], said: str
) -> None:
    reported = found(file, directory, secret=secret)
    assert reported.keys() == whom
    assert all(said in each for each in reported.values())


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
        assert "unreadable_by_service" not in found_by(live)
        live.config.chmod(0o600)
        monkeypatch.setattr(machine, "DEFAULT_PATH", tmp_path / "ovirt-placement.toml")
        assert "unreadable_by_service" in found_by(live)
