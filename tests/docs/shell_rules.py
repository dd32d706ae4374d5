"""What must be true of a command that a page shows and that is not ours: a rule for each program."""

from __future__ import annotations

import configparser
import fnmatch
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from ovirt_placement import config
from ovirt_placement.rules.placement_keys.property import NAME, PATTERN
from ovirt_simulator.http.resources import options
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
#: What hardened hosts build against the system's libraries: packages of PyPI, and what that takes.
_BUILT = {"pycurl", "psycopg"}
_BUILT_WITH = {"libcurl-devel", "openssl-devel", "libpq"}
#: Files of which the installation says that an administrator makes them.
_FOLDERS = {"/etc/ovirt-placement", "/etc/ovirt-scheduler-proxy"}
_VARIABLES = {
    "OVIRT_URL",
    "OVIRT_USERNAME",
    "OVIRT_PASSWORD",
    "OVIRT_CAFILE",
    "OVIRT_INSECURE",
    config.PATH_VARIABLE,
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
    assert _groups()


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
    if rest and rest[-1] in _BUILT:
        assert rest[:-1] in ([], ["--no-binary", rest[-1], "--force-reinstall"])
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
            *_BUILT_WITH,
        }


def _our_packages() -> set[str]:
    spec = (_PACKAGING / "rpm/ovirt-placement.spec.in").read_text()
    ours = {f"ovirt-placement-{name}" for name in re.findall(r"^%package (\w+)", spec, re.MULTILINE)}
    return {"ovirt-placement", *re.findall(r"^%package -n (\S+)", spec, re.MULTILINE), *ours}


def _install(words: list[str], root: Path) -> None:
    """It is done, in a folder that stands for the root; the group must be one that we make."""
    done = []
    rest = iter(words)
    for word in rest:
        if word in {"-g", "-o"}:
            owner = next(rest)
            assert owner == "root" or owner in _groups(), owner
        else:
            done.append(word)
    *how, source, target = done
    folder = root if target.startswith("/") else _present(root)
    here = _present(root) if (_present(root) / source).is_file() else CHECKOUT
    place = folder / target.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["install", *how, source, place], cwd=here, stdin=subprocess.DEVNULL, check=True)


def _groups() -> set[str]:
    lines = (_PACKAGING / "sysusers.d/ovirt-placement.conf").read_text().splitlines()
    return {line.split()[1] for line in lines if line.startswith("u ")}


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


def _mvn(words: list[str], root: Path) -> None:
    """Built are the jars of a module and of what it needs; they go where our comparison finds them."""
    assert {"package", "dependency:copy-dependencies", "-am"} <= set(words)
    (folder,) = (word.partition("=")[2] for word in words if word.startswith("-DoutputDirectory="))
    (root / folder.lstrip("/")).mkdir(parents=True)


def _cp(words: list[str], root: Path) -> None:
    source, folder = words
    assert source.endswith(".jar")
    assert (root / folder.lstrip("/")).is_dir(), f"{folder} was not made before"


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


def _engine_config(words: list[str], root: Path) -> None:
    """The engine's options are those that the simulated engine has, from the engine's own list."""
    for word in words:
        name, _, value = word.partition("=")
        if name not in {"-s", "-g", "--cver"}:
            assert name in options.NAMES, word
        if name == "UserDefinedVMProperties" and value:
            assert value == f"{NAME}={PATTERN}"


def _mv(words: list[str], root: Path) -> None:
    """The store is set aside with what SQLite keeps next to it, in a folder that was made before."""
    files, folder = words
    assert f"sqlite:///{files}" == f"{config.StoreSettings().url}*"
    assert (root / folder.lstrip("/")).is_dir(), f"{folder} was not made before"


def _mkdir(words: list[str], root: Path) -> None:
    (folder,) = words
    (root / folder.lstrip("/")).mkdir(parents=True)


def _export(words: list[str], root: Path) -> None:
    assert {word.partition("=")[0] for word in words} <= _VARIABLES


def _read(words: list[str], root: Path) -> None:
    option, name = words
    assert option == "-rs"
    assert name in _VARIABLES


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


RULES: dict[str, Rule] = {
    "createrepo_c": _createrepo,
    "make": _make,
    "git": _git,
    "mvn": _mvn,
    "cp": _cp,
    "ln": _ln,
    "systemctl": _systemctl,
    "journalctl": _journalctl,
    "systemd-sysusers": _systemd_sysusers,
    "systemd-analyze": _systemd_analyze,
    "python3.12": _python,
    "pip": _pip,
    "dnf": _dnf,
    "install": _install,
    "cd": _cd,
    "editor": _editor,
    "echo": _echo,
    "curl": _curl,
    "engine-config": _engine_config,
    "mkdir": _mkdir,
    "mv": _mv,
    "export": _export,
    "read": _read,
    "fapolicyd-cli": _fapolicyd_cli,
    "fagenrules": _fagenrules,
    "firewall-cmd": _firewall_cmd,
}
