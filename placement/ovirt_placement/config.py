"""Reads the configuration: one TOML file, with Ansible's variables where the file does not say."""

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Meta

from ovirt_placement.config_file import DEFAULT_DIRECTORY, DEFAULT_ENGINE, inventory_directory, read_sections
from ovirt_service.decoding import complaint
from ovirt_service.errors import UserError, placed
from ovirt_service.http.addresses import shown

_MODEL = "write https://ENGINE/ovirt-engine/api"


def exposes(url: str, *, insecure: bool) -> str:
    """Say how others can learn a password that is sent there; empty if they cannot, or have no need to."""
    found = check_url(url)
    if _is_this_machine(found.hostname or ""):
        return ""
    if found.scheme == "http":
        return "the password is sent in clear: write https:// into url under [engine]"
    if insecure:
        return "the password is sent to any server that answers: set ca_file under [engine], not insecure"
    return ""


def check_url(url: str) -> SplitResult:
    """Where an engine is, in parts. Raises `UserError`, which repeats no password, if none can be there."""
    if any(mark in url for mark in "@?#"):
        raise UserError(
            "[engine] url: holds a user or a password: write them into username and password_file, and"
            " https://ENGINE/ovirt-engine/api into url"
        )
    try:
        found = urlsplit(url)
        port = found.port
    except ValueError as error:
        raise UserError(f"[engine] url: {url!r}: {error}; {_MODEL}") from None
    if found.scheme not in ("https", "http") or not found.hostname or not url.isprintable() or port == 0:
        raise UserError(f"[engine] url: {url!r}: {_MODEL}")
    return found


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


#: Where the services keep what outlasts them.
STATE_DIRECTORY = Path("/var/lib/ovirt-placement")

Seconds = Annotated[float, Meta(gt=0)]
#: What is waited for in one go: days, at most; no socket, lock or database takes an infinite number.
Patience = Annotated[float, Meta(gt=0, le=1e6)]
#: It becomes part of paths and of the names of units; never "." or "..".
EngineName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=64)]
Settings = TypeVar("Settings", bound=msgspec.Struct)

#: What a text of the configuration names: whether the engine has any is looked after (`answers.names`).
NAMES = "names"
ClusterName = Annotated[str, Meta(extra={NAMES: "cluster"})]
HostName = Annotated[str, Meta(extra={NAMES: "host"})]
VmName = Annotated[str, Meta(extra={NAMES: "VM"})]
GroupName = Annotated[str, Meta(extra={NAMES: "affinity group or placement rule"})]


#: Stands for the file where there is none.
_ENVIRONMENT = "the environment"


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the engine is and who we are there; the password is read when a connection is made."""

    #: Of one of several engines; must not change.
    name: EngineName = DEFAULT_ENGINE
    #: Ends in /ovirt-engine/api.
    url: str | None = None
    #: With its profile, as in admin@internal.
    username: str | None = None
    #: Readable by its owner or the group ovirt-placement; else OVIRT_PASSWORD.
    password_file: Path | None = None
    #: The CA of the engine's certificate; else those of the system.
    ca_file: Path | None = None
    #: Do not check the engine's certificate.
    insecure: bool = False
    #: How long one request may take.
    timeout_seconds: Patience = 30.0

    @property
    def address(self) -> str:
        """Its URL as messages and logs have it: a path may be secret. Empty without a URL."""
        return shown(self.url) if self.url else ""

    @property
    def label(self) -> str:
        """Its name where several engines have one; empty else."""
        return "" if self.name == DEFAULT_ENGINE else self.name


class InventorySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    #: Where snapshots are published (of an engine with a name, in a folder of that name).
    directory: Path = DEFAULT_DIRECTORY
    #: How often new events are read while no decision is asked for.
    interval_seconds: Seconds = 5.0
    #: How often all hosts are read.
    hosts_interval_seconds: Seconds = 15.0
    #: How often everything is read.
    vms_interval_seconds: Seconds = 60.0
    #: How often statistics are read, if a rule needs them.
    statistics_interval_seconds: Seconds = 60.0
    #: How often disks, network interfaces and owners of all VMs are read, if placement keys need them.
    details_interval_seconds: Seconds = 600.0
    #: How old a snapshot may be for a decision.
    max_age_seconds: Seconds = 0.5
    #: How long a decision waits for a fresher snapshot before the last one counts.
    engine_wait_ms: Annotated[float, Meta(ge=0)] = 300.0
    #: How old that one may be.
    longest_age_seconds: Seconds = 120.0
    #: How long an expected placement counts.
    expected_seconds: Seconds = 30.0
    #: HOST:PORT for Prometheus; empty: none.
    metrics: str = ""


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    #: An SQLAlchemy URL: SQLite on a local disk, or PostgreSQL.
    url: str = "sqlite:////var/lib/ovirt-placement/store.db"
    #: How long a decision may wait for it.
    patience_seconds: Patience = 0.05


class DomainSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hosts that fail together: a rack, a power feed, a room."""

    #: How answers call it.
    name: Annotated[str, Meta(min_length=1)]
    #: By name, id or pattern, of one or several clusters.
    hosts: Annotated[tuple[HostName, ...], Meta(min_length=1)]


class HaSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    #: Prefixes of host tags that name failure domains.
    domain_tags: tuple[Annotated[str, Meta(min_length=1, extra={NAMES: "host tag"})], ...] = ()
    #: Failure domains by name.
    domains: tuple[DomainSettings, ...] = ()

    @property
    def tagged(self) -> bool:
        """Whether the tags of hosts matter."""
        return bool(self.domain_tags)


class Config:
    """The configuration of one process, decoded section by section, so that each part reads its own."""

    def __init__(self, sections: Mapping[str, Any], source: str) -> None:
        #: The file that was read, for messages.
        self.source = source
        self._sections = sections
        self.engine = self._engine()
        inventory = self.section("inventory", InventorySettings)
        self.inventory = msgspec.structs.replace(inventory, directory=inventory_directory(sections))
        self.store = self.section("store", StoreSettings)
        self.ha = self.section("ha", HaSettings)

    def _engine(self) -> EngineSettings:
        """Refuse a wrong URL before anybody prints it: there may be a password in it."""
        engine = self.section("engine", EngineSettings)
        if engine.url:
            with placed(f"{self.source}: "):
                check_url(engine.url)
        return engine

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where the services keep the store, or what they know of it, what they publish, and audit logs."""
        url = urlsplit(self.store.url)
        file = Path(url.path[1:]) if url.scheme.startswith("sqlite") else STATE_DIRECTORY / "store"
        sections = map(self._sections.get, ("enforcer", "web"))
        logs = [one.get("audit_log") for one in sections if isinstance(one, Mapping)]
        written = (Path(log).parent for log in logs if isinstance(log, str) and log)
        return file.parent, self.inventory.directory, *written

    @property
    def files(self) -> tuple[Path, ...]:
        """What root may have closed to all others."""
        password = self.engine.password_file
        return (Path(self.source),) if password is None else (Path(self.source), password)

    def unit(self, service: str) -> str:
        """Name the systemd unit that runs this service for the engine."""
        return service if self.engine.name == DEFAULT_ENGINE else f"{service}@{self.engine.name}"

    def section(self, name: str, settings: type[Settings]) -> Settings:
        """Decode one section as a frozen record that forbids unknown fields; absent, all its defaults.

        Raises `UserError` that names file, section and key, and the nearest right key of an unknown one.
        """
        try:
            return msgspec.convert(self._sections.get(name, {}), settings, strict=True, dec_hook=_path)
        except msgspec.ValidationError as error:
            raise UserError(f"{self.source}: [{name}] {complaint(error, settings)}") from None


def load(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> Config:
    """Read the configuration: the given file, else the variable's, else the system's if there is one.

    Raises `UserError` if the file cannot be read or holds what is not known, by file, section and key.
    """
    sections, path = read_sections(path, environment)
    source = _ENVIRONMENT if path is None else str(path)
    engine = {**_from_variables(environment), **sections.get("engine", {})}
    return Config({**sections, "engine": engine}, source)


def reread(config: Config) -> Config:
    """The configuration as its file says now, for what runs on while it is changed. Raises as `load` does."""
    return config if config.source == _ENVIRONMENT else load(Path(config.source))


def _path(wanted: type, value: Any) -> Any:
    """Make a path of a text; TOML has no paths of its own."""
    if wanted is Path and isinstance(value, str) and value:
        return Path(value)
    raise ValueError(f"Expected `Path`, got `{type(value).__name__ if value else 'nothing'}`")


def _from_variables(environment: Mapping[str, str]) -> dict[str, Any]:
    """Take what Ansible's oVirt modules take from the environment, but for the password."""
    variables = {"url": "OVIRT_URL", "username": "OVIRT_USERNAME", "ca_file": "OVIRT_CAFILE"}
    found: dict[str, Any] = {
        key: environment[variable] for key, variable in variables.items() if environment.get(variable)
    }
    if insecure := environment.get("OVIRT_INSECURE"):
        found["insecure"] = _truth(insecure)
    return found


def _truth(text: str) -> bool:
    if text.lower() in {"1", "true", "yes", "on", "y", "t"}:
        return True
    if text.lower() in {"0", "false", "no", "off", "n", "f"}:
        return False
    raise UserError(f'OVIRT_INSECURE: "{text}" is neither true nor false')
