"""Upgrades, from the former ovirt-scheduler-proxy and from a release before, and removal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packages.rpm.building import former_proxy, interpreter, packages, packed_as_earlier, repository
from tests.packages.rpm.machine import CONFIGURATION, Machine, machine
from tests.paths import CHECKOUT

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("rpm")]

PLUGIN = "/usr/share/ovirt-scheduler-proxy/plugins/own.py"
OWN = "class Own:\n    pass\n"
SYSCONFIG = "/etc/sysconfig/ovirt-scheduler-proxy"
STORE = "/var/lib/ovirt-placement/store.db"


@pytest.fixture(scope="module")
def upgraded(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine that had the former proxy and an earlier release of the commands, both in use."""
    place = tmp_path_factory.mktemp("upgraded")
    earlier = packed_as_earlier(build, tmp_path_factory.mktemp("earlier"))
    commands = [file for file in earlier if "scheduler-proxy" not in file.name]
    new = packages(build).values()
    folder = repository(place / "repository", former_proxy(place), *commands, *new)
    with machine(place, folder, interpreter()) as made:
        made.dnf("install", "ovirt-scheduler-proxy-0.1.9")
        made.write(PLUGIN, OWN)
        made.write(SYSCONFIG, "OSCHEDPROXY_PLUGINS=/usr/share/ovirt-scheduler-proxy/plugins\n")
        made.write("/var/log/ovirt-scheduler-proxy/ovirt-scheduler-proxy.log", "of last year\n")
        made.runs("systemctl", "enable", "ovirt-scheduler-proxy.service")
        made.dnf("install", "ovirt-placement-0.9.9", "ovirt-placement-enforcer-0.9.9")
        made.shell(f"echo '# changed by hand' >> {CONFIGURATION}")
        made.write(STORE, "not touched\n")
        made.dnf("upgrade")
        yield made


def test_what_a_site_has_is_kept(upgraded: Machine) -> None:
    assert "changed by hand" in upgraded.read(CONFIGURATION)
    assert (upgraded.read(PLUGIN), upgraded.read(STORE)) == (OWN, "not touched\n")
    for unit in ("ovirt-scheduler-proxy.service", "ovirt-scheduler-proxy.socket"):
        assert upgraded.tries("systemctl", "is-enabled", unit).stdout == "enabled\n", unit


def test_bytecode_counts(upgraded: Machine) -> None:
    assert upgraded.stale_bytecode() == ""


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


def test_removal_keeps_configuration_and_store(upgraded: Machine) -> None:
    """The last of this file: nothing is installed afterwards."""
    for unit in CHECKOUT.glob("packaging/ovirt-*.service"):
        upgraded.tries("systemctl", "enable", unit.name.replace("@", "@east"))
    upgraded.dnf("remove", "ovirt-placement*", "ovirt-scheduler-proxy")
    assert "changed by hand" in upgraded.read(f"{CONFIGURATION}.rpmsave")
    assert (upgraded.read(STORE), upgraded.read(PLUGIN)) == ("not touched\n", OWN)
    left = upgraded.shell(
        "find /usr/libexec/ovirt-placement /usr/bin /usr/lib/systemd /etc/systemd/system -name '*ovirt*' || :"
    )
    assert left == ""
