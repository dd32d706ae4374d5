"""Upgrades, from the former ovirt-scheduler-proxy and from a release before, and removal."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.packages.rpm.building import former_proxy, interpreter, packages, packed_again, repository
from tests.packages.rpm.machine import CONFIGURATION, Machine, machine

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("rpm")]

PLUGIN = "/usr/share/ovirt-scheduler-proxy/plugins/own.py"
SYSCONFIG = "/etc/sysconfig/ovirt-scheduler-proxy"
STORE = "/var/lib/ovirt-placement/store.db"


# -- What an upgrade promises; each check is also run where its promise is violated, and fails there.


def changed_configuration_is_kept(machine: Machine) -> None:
    assert "changed by hand" in machine.read(CONFIGURATION)


def plugins_are_kept(machine: Machine) -> None:
    assert machine.read(PLUGIN) == "class Own:\n    pass\n"


def enabled_stays_enabled(machine: Machine) -> None:
    for unit in ("ovirt-scheduler-proxy.service", "ovirt-scheduler-proxy.socket"):
        assert machine.tries("systemctl", "is-enabled", unit).stdout == "enabled\n", unit


def bytecode_counts(machine: Machine) -> None:
    assert machine.stale_bytecode() == ""


def begin_with_the_former_proxy(machine: Machine) -> None:
    """Have the former proxy as a site has it that uses it."""
    machine.dnf("install", "ovirt-scheduler-proxy-0.1.9")
    machine.write(PLUGIN, "class Own:\n    pass\n")
    machine.write(SYSCONFIG, "OSCHEDPROXY_PLUGINS=/usr/share/ovirt-scheduler-proxy/plugins\n")
    machine.write("/var/log/ovirt-scheduler-proxy/ovirt-scheduler-proxy.log", "of last year\n")
    machine.runs("systemctl", "enable", "ovirt-scheduler-proxy.service")


CHECKS = [changed_configuration_is_kept, plugins_are_kept, enabled_stays_enabled, bytecode_counts]


@pytest.fixture(scope="module")
def earlier(build: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The packages of an earlier release, whose default configuration was another."""

    def alter(root: Path) -> None:
        configuration = root / CONFIGURATION[1:]
        configuration.write_text(f"{configuration.read_text()}# of the release before\n")

    def change(text: str) -> str:
        return text.replace("\nVersion: 1.0.0\n", "\nVersion: 0.9.9\n").replace(" - 1.0.0-1", " - 0.9.9-1")

    return packed_again(build, tmp_path_factory.mktemp("earlier"), change, alter)


@pytest.fixture(scope="module")
def breaking(build: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The packages of a release that keeps no promise."""

    def alter(root: Path) -> None:
        for source in (root / "usr/libexec/ovirt-placement").rglob("ovirt_placement/model/*.py"):
            source.write_text(f"{source.read_text()}\n")
        configuration = root / CONFIGURATION[1:]
        configuration.write_text(f"{configuration.read_text()}# of a later release\n")

    def change(text: str) -> str:
        forgotten = text.replace("systemctl --no-reload enable ovirt-scheduler-proxy.socket", "true")
        careless = forgotten.replace("%config(noreplace)", "%config")
        trigger = "%triggerpostun -n ovirt-scheduler-proxy -- ovirt-scheduler-proxy < 1.0.0\n"
        assert trigger in careless
        losing = careless.replace(trigger, f"{trigger}rm -f /usr/share/ovirt-scheduler-proxy/plugins/*\n")
        return losing.replace("\nVersion: 1.0.0\n", "\nVersion: 1.0.1\n").replace(" - 1.0.0-1", " - 1.0.1-1")

    return packed_again(build, tmp_path_factory.mktemp("breaking"), change, alter)


@pytest.fixture(scope="module")
def upgraded(build: Path, earlier: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine that had the former proxy and an earlier release of the commands, both in use."""
    yield from _upgraded([*packages(build).values()], earlier, tmp_path_factory.mktemp("upgraded"))


@pytest.fixture(scope="module")
def spoilt(
    build: Path, earlier: list[Path], breaking: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    """The same, upgraded to the release that keeps no promise."""
    yield from _upgraded(breaking, earlier, tmp_path_factory.mktemp("spoilt"))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_upgrade_keeps_its_promise(upgraded: Machine, check: Callable[[Machine], None]) -> None:
    check(upgraded)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_promise_that_is_not_kept_is_found(spoilt: Machine, check: Callable[[Machine], None]) -> None:
    with pytest.raises(AssertionError):
        check(spoilt)


def test_the_former_proxy_makes_way(upgraded: Machine) -> None:
    assert upgraded.version("ovirt-scheduler-proxy").startswith("1.0.0-")
    assert upgraded.read(SYSCONFIG) == "OSCHEDPROXY_PLUGINS=/usr/share/ovirt-scheduler-proxy/plugins\n"
    assert upgraded.read("/var/log/ovirt-scheduler-proxy/ovirt-scheduler-proxy.log") == "of last year\n"
    assert "ExecStart=/usr/bin/ovirt-scheduler-proxy" in upgraded.read(
        "/usr/lib/systemd/system/ovirt-scheduler-proxy.service"
    )


def test_new_defaults_lie_next_to_a_changed_configuration(upgraded: Machine) -> None:
    assert "changed by hand" not in upgraded.read(f"{CONFIGURATION}.rpmnew")
    assert upgraded.shows(f"{CONFIGURATION}.rpmnew") == "640 root ovirt-placement"


def test_an_upgrade_leaves_the_store_to_the_services(upgraded: Machine) -> None:
    assert upgraded.read(STORE) == "not touched\n"


def test_removal_keeps_configuration_and_store(upgraded: Machine) -> None:
    """The last of this file: nothing is installed afterwards."""
    upgraded.runs("systemctl", "enable", "ovirt-placement-inventory.service")
    upgraded.dnf("remove", "ovirt-placement*", "ovirt-scheduler-proxy")
    assert "changed by hand" in upgraded.read(f"{CONFIGURATION}.rpmsave")
    assert upgraded.read(STORE) == "not touched\n"
    plugins_are_kept(upgraded)
    left = upgraded.shell(
        "find /usr/libexec/ovirt-placement /usr/bin /usr/lib/systemd /etc/systemd/system -name '*ovirt*' || :"
    )
    assert left == ""


def _upgraded(new: list[Path], earlier: list[Path], place: Path) -> Iterator[Machine]:
    commands = [file for file in earlier if "scheduler-proxy" not in file.name]
    folder = repository(place / "repository", former_proxy(place), *commands, *new)
    with machine(place, folder, interpreter()) as made:
        begin_with_the_former_proxy(made)
        made.dnf("install", "ovirt-placement-0.9.9", "ovirt-placement-enforcer-0.9.9")
        made.shell(f"echo '# changed by hand' >> {CONFIGURATION}")
        made.write(STORE, "not touched\n")
        made.dnf("upgrade")
        yield made
