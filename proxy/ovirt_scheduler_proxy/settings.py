"""The configuration file: every key with its default, and the words for what is wrong in it."""

import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ovirt_service import files
from ovirt_service.decoding import complaint
from ovirt_service.errors import UserError

DEFAULT_FILE = Path("/etc/ovirt-scheduler-proxy/ovirt-scheduler-proxy.toml")
FILE_VARIABLE = "OVIRT_SCHEDULER_PROXY_CONFIG"
#: The variable by which the old proxy learned its plugin folder.
PLUGINS_VARIABLE = "OSCHEDPROXY_PLUGINS"
#: Where our plugins are installed, whatever environment the interpreter is of, and where those of the old
#: proxy were: these, if there are any.
DEFAULT_PLUGINS = "/usr/share/ovirt-placement/plugins"
FORMER_PLUGINS = "/usr/share/ovirt-scheduler-proxy/plugins"

#: A request with this header is an administrator's, who wants to see every failure.
TROUBLE_SHOOTING = "x-trouble-shooting"

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Duration = Annotated[float, msgspec.Meta(gt=0, lt=1e6)]
#: At most half of the engine's patience.
_DiscoverySeconds = Annotated[float, msgspec.Meta(ge=0, le=60)]
Decision = Literal["accept", "reject"]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file. Keys that it does not know are refused."""


class Server(_Section, frozen=True):
    #: HOST:PORT; any address but loopback also needs the next three keys.
    listen: str = "127.0.0.1:18781"
    #: PEM file with the certificate chain: TLS only.
    tls_certificate: str = ""
    #: PEM file with its private key.
    tls_key: str = ""
    #: Addresses and networks that may connect, besides this machine.
    allowed_clients: tuple[str, ...] = ()
    #: Local users that may call, besides root and the proxy's own: names or numbers.
    allowed_users: tuple[str, ...] = ("ovirt", "ovirt-placement", "ovirt-placement-web")
    #: Further names in the Host header, besides localhost and the listen address.
    allowed_hosts: tuple[str, ...] = ()
    #: The limit of connections; idle ones are closed first. Users that may not call have an eighth.
    most_connections: _Count = 4096
    #: Longest request, also unpacked. 50,000 hosts need about 4.
    body_mib: _Count = 4
    #: Most XML elements in a request.
    most_elements: _Count = 200_000
    #: How long a connection may be idle.
    idle_seconds: _Duration = 300.0
    #: How long a request may take to arrive, and its answer to be read.
    request_seconds: _Duration = 10.0


class Calls(_Section, frozen=True):
    #: A call is answered within this; the engine holds a lock on the cluster meanwhile.
    deadline_seconds: _Duration = 10.0
    #: When the engine's discovery is answered; earlier, all units may stay disabled.
    discovery_seconds: _DiscoverySeconds = 2.0
    #: A filter that fails keeps all hosts ("accept") or none ("reject").
    on_failure: Decision = "accept"


class UnitSettings(_Section, frozen=True):
    #: The same for one unit, by its name.
    on_failure: Decision = "accept"


class Workers(_Section, frozen=True):
    #: Processes kept ready for each plugin folder.
    warm: _Count = 4
    #: Most processes of a folder; at most two for each unit.
    most: int = 32
    #: Memory of a worker beyond what it has after loading.
    memory_mib: _Count = 512
    #: How long the import of one plugin file may take.
    load_seconds: _Duration = 10.0


class PluginFolder(_Section, frozen=True):
    #: Each *.py file in it is a plugin module.
    directory: str
    #: The interpreter (3.9 or later) of this folder; empty: the proxy's own.
    python: str = ""
    #: A worker is replaced after this many calls; 0: never.
    calls_per_worker: int = 0


class Reload(_Section, frozen=True):
    #: How often plugin folders are checked for changes; 0: only on SIGHUP.
    watch_seconds: float = 2.0


class Log(_Section, frozen=True):
    #: "info": a line for each call; "debug": also which unit dropped which host.
    level: Literal["debug", "info", "warning", "error"] = "info"


class Decisions(_Section, frozen=True):
    #: Record each decision as a line of JSON.
    record: bool = True
    #: Empty: `decisions.jsonl` (of NAME.toml: `decisions-NAME.jsonl`) in the log directory of the systemd
    #: unit; by hand, none.
    file: str = ""
    #: How long old files are kept.
    days: _Duration = 8.0
    #: A new file begins at this size, and each day (UTC).
    file_mib: _Count = 50
    #: How many old files are kept.
    files: _Count = 10


class Settings(_Section, frozen=True):
    server: Server = Server()
    calls: Calls = Calls()
    units: dict[str, UnitSettings] = {}
    workers: Workers = Workers()
    plugins: tuple[PluginFolder, ...] = ()
    reload: Reload = Reload()
    log: Log = Log()
    decisions: Decisions = Decisions()

    def rejects(self, unit: str) -> bool:
        """Whether the failure of this unit rejects every host."""
        own = self.units.get(unit)
        return (own.on_failure if own else self.calls.on_failure) == "reject"


def load(path: Path | None) -> Settings:
    """Read the file that is named, or else by the environment, or else the default one where it exists.

    Raises `UserError` for a file that cannot be read or says what it may not.
    """
    file = _named(path)
    if file is DEFAULT_FILE and not file.exists():
        return Settings()
    return decode(files.read_toml(file), file)


def record_file(settings: Decisions, path: Path | None) -> Path | None:
    """Where decisions are recorded; None if nowhere. `path` is as that of `load`.

    Without a file that is named, it stands in the directory that systemd makes for the service's log; run by
    hand, there is none. Of several proxies of a machine, each has a configuration of its own, whose name its
    record has.
    """
    if not settings.record:
        return None
    if settings.file:
        return Path(settings.file)
    directory = os.environ.get("LOGS_DIRECTORY", "").partition(":")[0]
    name = _named(path).stem
    own = "" if name == DEFAULT_FILE.stem else f"-{name}"
    return Path(directory) / f"decisions{own}.jsonl" if directory else None


def _named(path: Path | None) -> Path:
    """The file of the command line, or else of the environment, or else the default one."""
    named = os.environ.get(FILE_VARIABLE)
    return path or (Path(named) if named else DEFAULT_FILE)


def folders(settings: Settings, record: Path | None) -> Iterator[Path]:
    """Where files are written, and where code that is run is from."""
    if record is not None:
        yield record.parent
    for plugins in settings.plugins:
        yield Path(plugins.directory)
        if plugins.python:
            yield Path(plugins.python).parent


def decode(document: dict[str, Any], file: Path) -> Settings:
    """Check a document and make settings of it. Raises `UserError`."""
    try:
        settings = msgspec.convert(document, Settings)
    except msgspec.ValidationError as error:
        raise UserError(f"{file}: {complaint(error, Settings)}") from error
    if settings.workers.most < settings.workers.warm:
        raise UserError(f"{file}: workers.most is less than workers.warm")
    for client in settings.server.allowed_clients:
        try:
            ipaddress.ip_network(client)
        except ValueError as error:
            raise UserError(f"{file}: server.allowed_clients: {error}") from error
    return settings


def with_plugins(settings: Settings, directories: list[str]) -> Settings:
    """The settings with the folders of the command line, or of the environment, in place of the file's.

    What the file says of a folder that is named there holds on. One that is named twice, also by a link to
    it, counts once.
    """
    named = directories or [os.environ[PLUGINS_VARIABLE]] if os.environ.get(PLUGINS_VARIABLE) else directories
    if named:
        known = {os.path.realpath(folder.directory): folder for folder in settings.plugins}
        folders = tuple(known.get(os.path.realpath(name), PluginFolder(name)) for name in named)
    else:
        usual = FORMER_PLUGINS if os.path.isdir(FORMER_PLUGINS) else DEFAULT_PLUGINS
        folders = settings.plugins or (PluginFolder(usual),)
    once: dict[str, PluginFolder] = {}
    for folder in folders:
        once.setdefault(os.path.realpath(folder.directory), folder)
        if not os.path.isdir(folder.directory):
            raise UserError(
                f"plugin folder {folder.directory} does not exist; name the right one with --plugins"
            )
    return msgspec.structs.replace(settings, plugins=tuple(once.values()))
