"""What must be true of a command that a page shows and that is not ours: a rule for each program."""

from __future__ import annotations

import configparser
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from ovirt_placement.config_file import PATH_VARIABLE
from ovirt_placement.rules.placement_keys.hierarchy import NAME, PATTERN
from tests.docs.system_rules import SYSTEM_RULES, Rule, groups
from tests.paths import CHECKOUT

_PACKAGING = CHECKOUT / "packaging"
_SETUP = configparser.ConfigParser()
_SETUP.read(CHECKOUT / "setup.cfg")
#: Files of which the installation says that an administrator makes them.
_FOLDERS = {"/etc/ovirt-placement", "/etc/ovirt-scheduler-proxy"}
_VARIABLES = {
    "OVIRT_URL",
    "OVIRT_USERNAME",
    "OVIRT_PASSWORD",
    "OVIRT_CAFILE",
    "OVIRT_INSECURE",
    PATH_VARIABLE,
}
_CONFIGURATIONS = {"ovirt-placement.toml", "ovirt-scheduler-proxy.toml"}


def _make(words: list[str], root: Path) -> None:
    targets = re.findall(r"^([a-z-]+):.*## ", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    variables = re.findall(
        r"\$\(if \$\((\w+)\)|^(\w+) \?=", (CHECKOUT / "Makefile").read_text(), re.MULTILINE
    )
    known = {*targets, "help"}
    for word in words:
        name, equals, _ = word.partition("=")
        assert name in ({a or b for a, b in variables} if equals else known), word


def _install(words: list[str], root: Path) -> None:
    """It is done, in a folder that stands for the root; the group must be one that we make."""
    done = []
    rest = iter(words)
    for word in rest:
        if word in {"-g", "-o"}:
            owner = next(rest)
            assert owner == "root" or owner in groups(), owner
        else:
            done.append(word)
    *how, source, target = done
    folder = root if target.startswith("/") else _present(root)
    here = _present(root) if (_present(root) / source).is_file() else CHECKOUT
    place = folder / target.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["install", *how, source, place], cwd=here, stdin=subprocess.DEVNULL, check=True)


def _git(words: list[str], root: Path) -> None:
    """A public repository is cloned, and what comes next is done in it; the version is tagged."""
    if words == ["status"]:
        return
    verb, url = words
    if verb == "tag":
        assert url == f"v{_SETUP['metadata']['version']}"
        return
    assert verb == "clone"
    assert urlsplit(url).scheme == "https"
    (root / Path(url).stem).mkdir()


def _ln(words: list[str], root: Path) -> None:
    """What is linked into the engine's folder of plug-ins is installed."""
    how, source, folder = words
    assert (how, folder) == ("-s", "/usr/share/ovirt-engine/ui-plugins/")
    installed = source.removeprefix("/usr/").removesuffix("/*")
    assert f"\n{installed} = " in (CHECKOUT / "setup.cfg").read_text()


def _cd(words: list[str], root: Path) -> None:
    (folder,) = words
    if (root / folder).is_dir() and not folder.startswith("/"):
        return
    assert folder in _FOLDERS
    # A reader who stands there has installed the sample before.
    place = root / folder.lstrip("/")
    place.mkdir(parents=True, exist_ok=True)
    for name in _CONFIGURATIONS & {f"{place.name}.toml"}:
        (place / name).write_bytes((_PACKAGING / name).read_bytes())
    (root / ".present").write_text(str(place))


def _present(root: Path) -> Path:
    noted = root / ".present"
    return Path(noted.read_text()) if noted.is_file() else CHECKOUT


def _editor(words: list[str], root: Path) -> None:
    (file,) = words
    place = root / file.lstrip("/") if file.startswith("/") else _present(root) / file
    assert place.is_file(), f"{file} was not made before"


def _echo(words: list[str], root: Path) -> None:
    """What goes into the proxy's configuration names the folder that our plugins are installed into."""
    (text,) = words
    (folder,) = re.findall(r'directory = "/usr/([^"]*)"', text)
    assert folder in _SETUP["options.data_files"]


def _curl(words: list[str], root: Path) -> None:
    option, file, url = words
    assert option == "-o"
    assert str(Path(file).parent) in {*_FOLDERS, "."}
    assert urlsplit(url).path == "/ovirt-engine/services/pki-resource"


#: What `engine-config` knows of scheduling, in the engine's 0000_config.sql.
_ENGINE_OPTIONS = (
    "AffinityRulesEnforcementManagerEnabled AffinityRulesEnforcementManagerRegularInterval"
    " EnableVdsLoadBalancing ExternalSchedulerConnectionTimeout ExternalSchedulerEnabled"
    " ExternalSchedulerResponseTimeout ExternalSchedulerServiceURL MaxSchedulerWeight"
    " OverUtilizationForHaReservation UserDefinedVMProperties VdsHaReservationIntervalInMinutes"
    " VdsLoadBalancingIntervalInMinutes"
)


def _engine_config(words: list[str], root: Path) -> None:
    """The options are the engine's own."""
    for word in words:
        name, _, value = word.partition("=")
        if name not in {"-s", "-g", "--cver"}:
            assert name in _ENGINE_OPTIONS.split(), word
        if name == "UserDefinedVMProperties" and value:
            assert value == f"{NAME}={PATTERN}"


def _export(words: list[str], root: Path) -> None:
    assert {word.partition("=")[0] for word in words} <= _VARIABLES


def _read(words: list[str], root: Path) -> None:
    option, name = words
    assert option == "-rs"
    assert name in _VARIABLES


RULES: dict[str, Rule] = {
    **SYSTEM_RULES,
    "make": _make,
    "git": _git,
    "ln": _ln,
    "install": _install,
    "cd": _cd,
    "editor": _editor,
    "echo": _echo,
    "curl": _curl,
    "engine-config": _engine_config,
    "export": _export,
    "read": _read,
}
