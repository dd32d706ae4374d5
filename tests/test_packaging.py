"""What setup.cfg says is installed is what the tree holds, and a wheel made from it works on its own."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.paths import CHECKOUT
from tests.proxy.running import running

COMMANDS = ("ovirt-placement", "ovirt-scheduler-proxy", "ovirt-enforcer", "ovirt-simulator")

#: What git ignores, and what must not get into a distribution.
IGNORED = shutil.ignore_patterns(
    ".git",
    ".venv",
    ".work",
    "build",
    "dist",
    "target",
    "*.egg-info",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
)

pytestmark = pytest.mark.xdist_group("packaging")


@pytest.fixture(scope="module")
def configuration() -> configparser.ConfigParser:
    read = configparser.ConfigParser()
    read.read(CHECKOUT / "setup.cfg")
    return read


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, since a build writes into it."""
    return Path(shutil.copytree(CHECKOUT, tmp_path_factory.mktemp("copy") / "source", ignore=IGNORED))


@pytest.fixture(scope="module")
def installed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix that a wheel was installed into. Its dependencies are those of the tests."""
    place = tmp_path_factory.mktemp("installed")
    _pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(place), str(source))
    (wheel,) = place.glob("*.whl")
    prefix = place / "usr"
    _pip("install", "--no-index", "--no-deps", "--ignore-installed", "--prefix", str(prefix), str(wheel))
    return prefix


def test_every_package_is_listed(configuration: configparser.ConfigParser) -> None:
    listed = set(configuration["options"]["packages"].split())
    folders = dict(line.split(" = ") for line in configuration["options"]["package_dir"].strip().splitlines())
    found = {
        ".".join((package, *init.parent.relative_to(CHECKOUT / folder).parts))
        for package, folder in folders.items()
        for init in (CHECKOUT / folder).rglob("__init__.py")
    }
    assert listed == found


def test_dependencies_and_their_reasons_are_the_same(configuration: configparser.ConfigParser) -> None:
    requirements = configuration["options"]["install_requires"].split("\n")
    for extra in configuration["options.extras_require"].values():
        requirements += extra.split("\n")
    required = {re.split(r"[\s\[]", line)[0] for line in requirements if line}
    page = (CHECKOUT / "docs" / "dependencies.md").read_text()
    table = re.findall(r"^\| ([^|]*?)(?: \(\w+\))? \| .* \|$", page.split("##")[0], re.MULTILINE)
    reasoned = {name for cell in table for name in cell.split(", ")} - {"package", "---"}
    assert reasoned == required


def test_an_installed_wheel_has_all_that_a_user_needs(installed: Path) -> None:
    found = {
        str(file.relative_to(installed))
        for file in installed.rglob("*")
        if file.is_file() and "site-packages" not in file.parts and "__pycache__" not in file.parts
    }
    expected = {f"bin/{command}" for command in COMMANDS}
    for place, files in {
        "share/ovirt-placement/plugins": CHECKOUT.glob("plugins/*.py"),
        "share/doc/ovirt-placement": [*CHECKOUT.glob("docs/*.md"), *CHECKOUT.glob("packaging/*.toml")],
        "share/doc/ovirt-placement/placement-keys": CHECKOUT.glob("docs/placement-keys/*"),
        "lib/systemd/system": CHECKOUT.glob("packaging/*.service"),
        "lib/sysusers.d": CHECKOUT.glob("packaging/sysusers.d/*.conf"),
    }.items():
        expected |= {f"{place}/{file.name}" for file in files}
    expected |= {f"share/doc/ovirt-placement/{name}" for name in ("README.md", "CHANGELOG.md")}
    assert found == expected
    for unit in installed.glob("lib/systemd/system/*"):
        (page,) = re.findall(r"^Documentation=file:///usr/(.*)$", unit.read_text(), re.MULTILINE)
        assert page in found


@pytest.mark.parametrize("command", COMMANDS)
def test_an_installed_command_runs(installed: Path, command: str) -> None:
    done = subprocess.run(
        [sys.executable, installed / "bin" / command, "--help"],
        env=_environment(installed),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {command}")


def test_the_installed_proxy_serves_the_installed_plugins(installed: Path) -> None:
    folder = installed / "share/ovirt-placement/plugins"
    with running(folder, environment=_environment(installed)) as proxy, proxy.client() as client:
        found = client.discover()
        (zygote,) = proxy.descendants()[:1]
        assert str(installed) in " ".join(zygote.cmdline()), "it is not the checkout's proxy that runs"
    assert isinstance(found, dict)
    assert {kind: sorted(units) for kind, units in found.items()} == {
        "filters": ["AffinityFilter", "HostAffinityFilter", "PlacementKeyFilter"],
        "scores": ["HaReservationWeight", "HostAffinityWeight", "PlacementKeyWeight", "SoftAffinityWeight"],
        "balance": ["HaReservationBalance"],
    }


def test_a_source_distribution_has_the_whole_tree(source: Path, tmp_path: Path) -> None:
    build = "import sys, setuptools.build_meta as build; build.build_sdist(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=source, check=True, stdout=subprocess.DEVNULL
    )
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    tree = {str(file.relative_to(source)) for file in source.rglob("*") if file.is_file()}
    left_out = {name for name in tree - held if not name.startswith(("build/", "ovirt_placement.egg-info/"))}
    assert left_out <= {".gitignore"}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
@pytest.mark.parametrize("unit", sorted(CHECKOUT.glob("packaging/*.service")), ids=lambda unit: unit.name)
def test_systemd_finds_no_fault_with_a_unit(unit: Path, tmp_path: Path) -> None:
    commands = Path(sys.executable).parent
    for each in CHECKOUT.glob("packaging/*.service"):  # they name each other
        (tmp_path / each.name).write_text(each.read_text().replace("/usr/bin/ovirt-", f"{commands}/ovirt-"))
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / unit.name], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if unit.name in line] == []


@pytest.mark.skipif(shutil.which("systemd-sysusers") is None, reason="there is no systemd-sysusers")
def test_the_users_of_the_units_are_made(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    subprocess.run(
        ["systemd-sysusers", f"--root={tmp_path}", *CHECKOUT.glob("packaging/sysusers.d/*.conf")],
        check=True,
        capture_output=True,
    )
    users = {line.split(":")[0] for line in (tmp_path / "etc/passwd").read_text().splitlines()}
    groups = (tmp_path / "etc/group").read_text().splitlines()
    assert "ovirt" in next(line for line in groups if line.startswith("ovirt-placement:")).split(":")[3]
    for unit in CHECKOUT.glob("packaging/*.service"):
        wanted = re.findall(r"^User=(.*)$", unit.read_text(), re.MULTILINE)
        assert set(wanted) <= users


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True)


def _environment(installed: Path) -> dict[str, str]:
    """What makes Python find the installed packages before those of the checkout."""
    (packages,) = installed.glob("lib*/python*/site-packages")
    return {**os.environ, "PYTHONPATH": str(packages)}
