"""The rules of commands that change a system: its packages, services, users, and what guards them."""

from __future__ import annotations

import configparser
import fnmatch
import re
from collections.abc import Callable
from pathlib import Path

from tests.paths import CHECKOUT

#: Raises `AssertionError` where the arguments are not as they must be; the folder stands for the root.
Rule = Callable[[list[str], Path], None]

_PACKAGING = CHECKOUT / "packaging"
_RECIPES = CHECKOUT / "docs" / "recipes"
_SETUP = configparser.ConfigParser()
_SETUP.read(CHECKOUT / "setup.cfg")
#: Units of others, whom ours work with.
_OTHERS_UNITS = {"ovirt-engine.service", "fapolicyd.service"}
_SYSTEMCTL = {
    "daemon-reload",
    "enable",
    "disable",
    "start",
    "stop",
    "restart",
    "try-restart",
    "edit",
    "status",
}
_OTHERS_PACKAGES = {"ovirt-scheduler-proxy"}
#: What hardened hosts take from PyPI, and the library of the system that it uses there.
_ON_HARDENED_HOSTS, _ITS_LIBRARY = "psycopg", "libpq"


def _systemctl(words: list[str], root: Path) -> None:
    verb, *rest = words
    assert verb in _SYSTEMCTL, verb
    for word in rest:
        assert word == "--now" or _is_unit(word), f"no unit {word}"


def _journalctl(words: list[str], root: Path) -> None:
    option, unit = words
    assert option == "-u"
    assert _is_unit(unit), f"no unit {unit}"


def _is_unit(word: str) -> bool:
    name = word if word.endswith((".service", ".socket")) else f"{word}.service"
    template = re.sub(r"@[^.]+\.", "@.", name)
    return name in _OTHERS_UNITS or any(any(folder.glob(template)) for folder in (_PACKAGING, _RECIPES))


def _systemd_sysusers(words: list[str], root: Path) -> None:
    assert not words
    assert groups()


def _systemd_analyze(words: list[str], root: Path) -> None:
    assert words[0] == "security"
    assert all(map(_is_unit, words[1:]))


def _python(words: list[str], root: Path) -> None:
    assert words[0] == "-m"
    assert _SETUP["options"]["python_requires"] == ">=3.11"
    if words[1:] == ["venv", ".venv"]:
        return
    assert words[1] == "pip", words
    _pip(words[2:], root)


def _pip(words: list[str], root: Path) -> None:
    """That the wheel made of this tree has all that pages name is what tests/test_packaging.py tries."""
    verb, *rest = words
    assert verb in {"install", "uninstall"}
    if "--prefix" in rest:
        at = rest.index("--prefix")
        assert rest[at + 1] == "/usr"  # where the units look for their commands
        del rest[at : at + 2]
    if rest == [_ON_HARDENED_HOSTS]:
        return
    (what,) = (word for word in rest if word != "--upgrade")
    found = re.fullmatch(r"([\w./-]+?)(?:\[(\w+)\])?", what)
    assert found, what
    name, extra = found.groups()
    assert name == _SETUP["metadata"]["name"] or (CHECKOUT / name / "setup.cfg").is_file(), name
    assert extra is None or extra in _SETUP["options.extras_require"], extra


def _dnf(words: list[str], root: Path) -> None:
    """What is missing is reported by a script of ours, with the packages to install."""
    verb, *packages = words
    if verb in {"upgrade", "downgrade"} or "--repofrompath" in packages:
        ours = _our_packages()
        for package in (one for one in packages if not re.match(r"-|placement,/", one)):
            assert fnmatch.filter(ours, package), package
        return
    reported = re.search(r"dnf install -y ([^&\"]*)", (_PACKAGING / "check-system.sh").read_text())
    assert reported
    if verb == "remove":
        assert {one for one in packages if one != "-y"} <= _OTHERS_PACKAGES
    else:
        # A Python of EL comes without pip.
        assert {one for one in packages if one != "-y"} <= {
            *reported[1].split(),
            "python3.12-pip",
            _ITS_LIBRARY,
        }


def _our_packages() -> set[str]:
    spec = (_PACKAGING / "rpm/ovirt-placement.spec.in").read_text()
    ours = {f"ovirt-placement-{name}" for name in re.findall(r"^%package (\w+)", spec, re.MULTILINE)}
    return {"ovirt-placement", *re.findall(r"^%package -n (\S+)", spec, re.MULTILINE), *ours}


def groups() -> set[str]:
    lines = (_PACKAGING / "sysusers.d/ovirt-placement.conf").read_text().splitlines()
    return {line.split()[1] for line in lines if line.startswith("u ")}


def _fapolicyd_cli(words: list[str], root: Path) -> None:
    """What is trusted is where pip installs, or our plugins."""
    if words != ["--update"]:
        assert words[:2] == ["--file", "add"]
        (folder,) = words[2:]
        plugins = f"/usr/{_plugins_folder()}/"
        assert folder == plugins or re.fullmatch(r"/usr/lib(64)?/python3\.12/site-packages/", folder)


def _plugins_folder() -> str:
    (folder,) = (one for one in _SETUP["options.data_files"] if one.endswith("/plugins"))
    return folder


def _fagenrules(words: list[str], root: Path) -> None:
    assert words == ["--load"]


def _firewall_cmd(words: list[str], root: Path) -> None:
    """What is opened is a service that comes with a package."""
    if words != ["--reload"]:
        option, rule = words
        assert option == "--permanent"
        (service,) = re.findall(r"service[= ](?:name=)?([a-z-]+)", rule)
        assert (_PACKAGING / "firewalld" / f"{service}.xml").is_file()


def _createrepo(words: list[str], root: Path) -> None:
    """The folder of which a page has dnf install."""
    assert words == ["/srv/ovirt-placement"]


#: By program.
SYSTEM_RULES: dict[str, Rule] = {
    "systemctl": _systemctl,
    "journalctl": _journalctl,
    "systemd-sysusers": _systemd_sysusers,
    "systemd-analyze": _systemd_analyze,
    "python3.12": _python,
    "pip": _pip,
    "dnf": _dnf,
    "fapolicyd-cli": _fapolicyd_cli,
    "fagenrules": _fagenrules,
    "firewall-cmd": _firewall_cmd,
    "createrepo_c": _createrepo,
}
