"""What is installed is what the tree holds, and wheels made from it work on their own."""

import configparser
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from ovirt_placement.config import Config
from tests.docs.test_pages import leads_nowhere, links_of
from tests.paths import CHECKOUT
from tests.placement.cli.setup.policies import OUR_FILTERS, OUR_WEIGHTS
from tests.proxy.running import running

COMMANDS = ("ovirt-placement", "ovirt-scheduler-proxy", "ovirt-enforcer", "ovirt-placement-web")

#: What git ignores, and what must not get into a distribution.
IGNORED = shutil.ignore_patterns(
    *(".git", ".venv", ".work", "build", "dist", "target"),
    *("*.egg-info", "__pycache__", ".*_cache", ".hypothesis"),
)

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("packaging")]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, since a build writes into it."""
    return Path(shutil.copytree(CHECKOUT, tmp_path_factory.mktemp("copy") / "source", ignore=IGNORED))


@pytest.fixture(scope="module")
def installed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix that a wheel was installed into. Its dependencies are those of the tests."""
    return _installed(source, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def installed_simulator(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix of the simulator's own wheel; it also needs what the other holds."""
    return _installed(source / "simulator", tmp_path_factory.mktemp("simulator"))


def test_an_installed_wheel_has_all_packages_but_the_simulator(source: Path, installed: Path) -> None:
    folders = {package.parents[1] for package in source.glob("*/ovirt_*/__init__.py")}
    expected = set().union(*(_modules(folder) for folder in folders - {source / "simulator"}))
    assert _modules(_site_packages(installed)) == expected
    assert {name.partition("/")[0] for name in expected} == {
        "ovirt_service", "ovirt_placement", "ovirt_scheduler_proxy", "ovirt_enforcer", "ovirt_placement_web",
    }  # fmt: skip


def test_the_simulators_wheel_has_the_simulator_alone(source: Path, installed_simulator: Path) -> None:
    assert _modules(_site_packages(installed_simulator)) == _modules(source / "simulator")
    assert _alongside_packages(installed_simulator) == {
        "bin/ovirt-simulator",
        "share/man/man1/ovirt-simulator.1",
        "share/bash-completion/completions/ovirt-simulator",
        "share/zsh/site-functions/_ovirt-simulator",
    }


def test_the_simulator_needs_the_library_of_its_own_version() -> None:
    library, simulator = _configuration(CHECKOUT), _configuration(CHECKOUT / "simulator")
    version = library["metadata"]["version"]
    assert simulator["metadata"]["version"] == version
    assert f"ovirt-placement == {version}" in simulator["options"]["install_requires"].splitlines()


def test_dependencies_and_their_reasons_are_the_same() -> None:
    library, simulator = _configuration(CHECKOUT), _configuration(CHECKOUT / "simulator")
    listed = [
        library["options"]["install_requires"],
        *library["options.extras_require"].values(),
        simulator["options"]["install_requires"],
    ]
    lines = "\n".join(listed).splitlines()
    required = {re.split(r"[\s\[]", line)[0] for line in lines if line} - {"ovirt-placement"}
    page = (CHECKOUT / "docs" / "developers" / "dependencies.md").read_text()
    table = re.findall(r"^\| ([^|]*?)(?: \([\w, ]+\))? \| .* \|$", page.split("##")[0], re.MULTILINE)
    reasoned = {name for cell in table for name in cell.split(", ")} - {"package", "---"}
    assert reasoned == required


def test_an_installed_wheel_has_all_that_a_user_needs(installed: Path) -> None:
    found = _alongside_packages(installed)
    expected = {f"bin/{command}" for command in COMMANDS}
    for place, files in {
        "share/ovirt-placement/plugins": CHECKOUT.glob("plugins/*.py"),
        "share/doc/ovirt-placement": [*CHECKOUT.glob("*.md"), CHECKOUT / "LICENSE"],
        "share/doc/ovirt-placement/docs": CHECKOUT.glob("docs/*.*"),
        **{
            f"share/doc/ovirt-placement/docs/{folder}": CHECKOUT.glob(f"docs/{folder}/*")
            for folder in ("developers", "enforcer", "pictures", "placement-keys", "recipes")
        },
        "share/doc/ovirt-placement/packaging": CHECKOUT.glob("packaging/*.toml"),
        "share/ovirt-placement/ui-plugin": CHECKOUT.glob("packaging/ui-plugin/*.json"),
        "share/ovirt-placement/ui-plugin/ovirt-placement-resources": CHECKOUT.glob(
            "packaging/ui-plugin/ovirt-placement-resources/*"
        ),
        "share/ovirt-placement/monitoring": CHECKOUT.glob("packaging/monitoring/*.yaml"),
        "share/ovirt-placement/monitoring/dashboards": CHECKOUT.glob(
            "packaging/monitoring/dashboards/*.json"
        ),
        "share/man/man1": CHECKOUT.glob("packaging/man/*"),
        "share/bash-completion/completions": CHECKOUT.glob("packaging/completions/bash/*"),
        "share/zsh/site-functions": CHECKOUT.glob("packaging/completions/zsh/*"),
        "lib/systemd/system": [*CHECKOUT.glob("packaging/*.service"), *CHECKOUT.glob("packaging/*.socket")],
        "lib/sysusers.d": CHECKOUT.glob("packaging/sysusers.d/*.conf"),
    }.items():
        expected |= {f"{place}/{file.name}" for file in files}
    assert found == expected
    for page in installed.glob("share/doc/ovirt-placement/**/*.md"):
        links = [link for link in links_of(page) if "://" not in link]
        assert [link for link in links if leads_nowhere(page, link)] == [], page
    for unit in installed.glob("lib/systemd/system/*"):
        (page,) = re.findall(r"^Documentation=file:///usr/(.*)$", unit.read_text(), re.MULTILINE)
        assert page in found


@pytest.mark.parametrize("command", COMMANDS)
def test_an_installed_command_runs(installed: Path, command: str) -> None:
    _check_runs(installed / "bin" / command, _environment(installed))


def test_a_process_of_a_command_does_not_run_the_command_again() -> None:
    """What multiprocessing starts loads the command that starts it, under another name."""
    launcher = runpy.run_path(str(CHECKOUT / "packaging/rpm/environment.py"))["LAUNCHER"]
    code = launcher.format(home="/usr", module="sys", function="exit")
    exec(code, {"__name__": "__mp_main__"})
    with pytest.raises(SystemExit):
        exec(code, {"__name__": "__main__"})


def test_the_installed_simulator_runs_alongside(installed: Path, installed_simulator: Path) -> None:
    environment = _environment(installed, installed_simulator)
    _check_runs(installed_simulator / "bin" / "ovirt-simulator", environment)


def test_the_installed_proxy_serves_the_installed_plugins(installed: Path) -> None:
    folder = installed / "share/ovirt-placement/plugins"
    given = running(folder, environment=_environment(installed), shell="true")
    with given as proxy, proxy.client() as client:
        found = client.discover()
        (zygote,) = proxy.descendants()[:1]
        assert str(installed) in " ".join(zygote.cmdline()), "it is not the checkout's proxy that runs"
    assert isinstance(found, dict)
    assert {kind: sorted(units) for kind, units in found.items()} == {
        "filters": sorted({*OUR_FILTERS, "HaAdmissionFilter", "PlacementKeyFilter"}),
        "scores": sorted({*OUR_WEIGHTS, "HaAdmissionWeight", "PlacementKeyWeight"}),
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
    # Wheels of the same copy may have been built before.
    left_out = {name for name in tree - held if not re.search(r"(^|/)(build|\w+\.egg-info)/", name)}
    assert left_out <= {".gitignore", ".git-blame-ignore-revs"}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
@pytest.mark.parametrize("unit", sorted(CHECKOUT.glob("packaging/*.service")), ids=lambda unit: unit.name)
def test_systemd_finds_no_fault_with_a_unit(unit: Path, tmp_path: Path) -> None:
    commands = Path(sys.executable).parent
    # They name each other.
    for each in [*CHECKOUT.glob("packaging/*.service"), *CHECKOUT.glob("packaging/*.socket")]:
        (tmp_path / each.name).write_text(each.read_text().replace("/usr/bin/ovirt-", f"{commands}/ovirt-"))
    done = subprocess.run(["systemd-analyze", "verify", tmp_path / unit.name], capture_output=True, text=True)
    # Of a template an instance is judged, which has another name.
    assert [line for line in done.stderr.splitlines() if unit.stem.removesuffix("@") in line] == []


@pytest.mark.parametrize("template", sorted(CHECKOUT.glob("packaging/*@.service")), ids=lambda one: one.name)
def test_the_unit_of_one_engine_among_several_is_that_of_a_single_one(template: Path) -> None:
    """But for its files and its name."""
    single = template.with_name(template.name.replace("@", ""))
    differing = _settings(template) ^ _settings(single)
    assert {key for key, _ in differing} <= {
        "Description", "Wants", "After", "ExecStart", "Environment", "EnvironmentFile",
        "RuntimeDirectory", "RuntimeDirectoryPreserve", "Sockets", "Also",
    }  # fmt: skip
    (start,) = (value for key, value in _settings(template) if key == "ExecStart")
    assert re.search(r" --config /etc/ovirt-[a-z-]+/%i\.toml$", start)


def test_an_engine_publishes_where_systemd_lets_it() -> None:
    for unit, engine in (("ovirt-placement-inventory", "default"), ("ovirt-placement-inventory@", "east")):
        settings = dict(_settings(CHECKOUT / "packaging" / f"{unit}.service"))
        directory = Config({"engine": {"name": engine}}, "").inventory.directory
        assert f"/run/{settings['RuntimeDirectory'].replace('%i', engine)}" == str(directory)


def test_a_service_may_write_the_audit_log_that_its_page_names() -> None:
    page = (CHECKOUT / "docs/enforcer/history.md").read_text()
    (folder,) = re.findall(r'audit_log = "/var/log/(.*)/', page)
    assert ("LogsDirectory", folder) in _settings(CHECKOUT / "packaging/ovirt-enforcer.service")


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
    (group,) = (line for line in groups if line.startswith("ovirt-placement:"))
    assert set(group.split(":")[3].split(",")) == {"ovirt-scheduler-proxy", "ovirt-placement-web"}
    for unit in CHECKOUT.glob("packaging/*.service"):
        wanted = re.findall(r"^User=(.*)$", unit.read_text(), re.MULTILINE)
        assert set(wanted) <= users


def _settings(unit: Path) -> set[tuple[str, str]]:
    return set(re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.MULTILINE))


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True)


def _configuration(folder: Path) -> configparser.ConfigParser:
    read = configparser.ConfigParser()
    read.read(folder / "setup.cfg")
    return read


def _installed(source: Path, place: Path) -> Path:
    _pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(place), str(source))
    (wheel,) = place.glob("*.whl")
    prefix = place / "usr"
    _pip("install", "--no-index", "--no-deps", "--ignore-installed", "--prefix", str(prefix), str(wheel))
    return prefix


def _site_packages(installed: Path) -> Path:
    (packages,) = installed.glob("lib*/python*/site-packages")
    return packages


def _modules(folder: Path) -> set[str]:
    """Name all files of the packages in a folder."""
    packages = (init.parent for init in folder.glob("ovirt_*/__init__.py"))
    files = (file for package in packages for file in package.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)) for file in files if "__pycache__" not in file.parts}


def _alongside_packages(installed: Path) -> set[str]:
    return {
        str(file.relative_to(installed))
        for file in installed.rglob("*")
        if file.is_file() and "site-packages" not in file.parts and "__pycache__" not in file.parts
    }


def _check_runs(command: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, command, "--help"], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {command.name}")


def _environment(*installed: Path) -> dict[str, str]:
    """What makes Python find the installed packages before those of the checkout."""
    packages = (str(_site_packages(prefix)) for prefix in installed)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(packages)}
