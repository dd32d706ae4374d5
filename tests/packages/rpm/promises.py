"""What an upgrade promises; each check is also run where its promise is violated, and fails there."""

from __future__ import annotations

from tests.packages.rpm.machine import Machine

CONFIGURATION = "/etc/ovirt-placement/ovirt-placement.toml"
PLUGIN = "/usr/share/ovirt-scheduler-proxy/plugins/own.py"
SYSCONFIG = "/etc/sysconfig/ovirt-scheduler-proxy"
STORE = "/var/lib/ovirt-placement/store.db"

#: Bytecode counts only if it names the very time and length of its source.
_STALE = """
import pathlib, struct, sys
for source in pathlib.Path(sys.prefix).rglob("*.py"):
    state = source.stat()
    for compiled in (source.parent / "__pycache__").glob(source.stem + ".cpython-*.pyc"):
        flags, time, size = struct.unpack("<4xIII", compiled.read_bytes()[:16])
        if (flags, time, size) != (0, int(state.st_mtime), state.st_size):
            print(source)
"""


def changed_configuration_is_kept(machine: Machine) -> None:
    assert "changed by hand" in machine.read(CONFIGURATION)


def plugins_are_kept(machine: Machine) -> None:
    assert machine.read(PLUGIN) == "class Own:\n    pass\n"


def enabled_stays_enabled(machine: Machine) -> None:
    for unit in ("ovirt-scheduler-proxy.service", "ovirt-scheduler-proxy.socket"):
        assert machine.tries("systemctl", "is-enabled", unit).stdout == "enabled\n", unit


def bytecode_counts(machine: Machine) -> None:
    assert machine.runs("/usr/libexec/ovirt-placement/bin/python3", "-c", _STALE) == ""


def begin_with_the_former_proxy(machine: Machine) -> None:
    """Have the former proxy as a site has it that uses it."""
    machine.dnf("install", "ovirt-scheduler-proxy-0.1.9")
    machine.write(PLUGIN, "class Own:\n    pass\n")
    machine.write(SYSCONFIG, "OSCHEDPROXY_PLUGINS=/usr/share/ovirt-scheduler-proxy/plugins\n")
    machine.write("/var/log/ovirt-scheduler-proxy/ovirt-scheduler-proxy.log", "of last year\n")
    machine.runs("systemctl", "enable", "ovirt-scheduler-proxy.service")
