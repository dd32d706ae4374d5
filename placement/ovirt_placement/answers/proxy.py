"""The scheduler proxy of this machine: where it listens, what it offers, and what it has recorded."""

import http.client
import os
import re
import xmlrpc.client
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit
from xml.parsers.expat import ExpatError

import msgspec

from ovirt_placement.config_file import DEFAULT_ENGINE
from ovirt_placement.model.record import Record
from ovirt_placement.rules.elements.rule import UnitKind
from ovirt_service import files, identity
from ovirt_service.errors import UserError
from ovirt_service.http.addresses import any_certificate

# -- The scheduler proxy of this machine: where its configuration says that it listens, and what it offers.
#: Where proxies have their configuration: one an engine.
PROXY_DIRECTORY = Path("/etc/ovirt-scheduler-proxy")

#: Names another file, as for the proxy.
_FILE_VARIABLE = "OVIRT_SCHEDULER_PROXY_CONFIG"

#: Where the plugins of our units are, and those of the old proxy.
_OUR_PLUGINS = Path("/usr/share/ovirt-placement/plugins")
_FORMER_PLUGINS = Path("/usr/share/ovirt-scheduler-proxy/plugins")

#: Where a proxy listens that does not say where.
_LISTEN = "127.0.0.1:18781"
_PATIENCE_SECONDS = 5.0
#: By this header the proxy knows that it is not the engine that asks, which is answered later.
_NOT_THE_ENGINE = ("X-Trouble-Shooting", "1")
_ANSWERED = re.compile(r"^ovirt_scheduler_proxy_last_discovery_timestamp_seconds (\S+)$", re.MULTILINE)
#: What is known of a proxy that answers, but not to this user.
NOT_THIS_USER = "it answers root and the users that [server] allowed_users of its configuration names"
#: What an answer raises that is XML or data of another sort, inside the client or when it is read.
_NO_CALL = (AttributeError, LookupError, TypeError, ValueError)
_KINDS = {"filters": UnitKind.FILTER, "scores": UnitKind.WEIGHT, "balance": UnitKind.BALANCE}

#: A unit by type and name.
Key = tuple[str, str]


class NoDiscovery(Exception):
    """A proxy does not answer, or not as a scheduler proxy; the text says why."""


class ProxyRecord(Record, frozen=True, omit_defaults=False):
    """A scheduler proxy that was asked for its units."""

    #: Null where the configuration, which says it, cannot be read.
    url: str | None
    units: tuple[str, ...]
    #: Why it does not answer, or is not asked.
    error: str | None


def configuration_of(engine: str) -> Path:
    """The configuration of the proxy of an engine, if it exists; that of the only one as a variable says."""
    named = os.environ.get(_FILE_VARIABLE)
    if named and engine == DEFAULT_ENGINE:
        return Path(named)
    name = "ovirt-scheduler-proxy" if engine == DEFAULT_ENGINE else engine
    return PROXY_DIRECTORY / f"{name}.toml"


def section_of(engine: str, name: str) -> Mapping[str, Any] | None:
    """A section of it, perhaps empty; None without such a proxy. Raises `UserError` if it is unreadable."""
    settings = _settings(engine)
    if settings is None:
        return None
    section = settings.get(name)
    return section if isinstance(section, dict) else {}


def others_plugins(engine: str) -> tuple[Path, ...]:
    """The plugin folders but for that of our units. Raises `UserError` as `section_of`."""
    settings = _settings(engine)
    if settings is None:
        return ()
    listed = settings.get("plugins")
    tables = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    folders = [Path(str(one.get("directory"))) for one in tables] or [_FORMER_PLUGINS]
    return tuple(folder for folder in folders if folder.is_absolute() and folder != _OUR_PLUGINS)


def _settings(engine: str) -> Mapping[str, Any] | None:
    file = configuration_of(engine)
    try:
        file.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{file}: cannot read the configuration: {error.strerror}") from None
    return files.read_toml(file)


def url_of(engine: str) -> str | None:
    """Where the proxy of an engine listens; None if this machine has none. Raises as `section_of`."""
    server = section_of(engine, "server")
    if server is None:
        return None
    scheme = "https" if server.get("tls_certificate") else "http"
    return f"{scheme}://{server.get('listen') or _LISTEN}/"


def ask_local_proxy(engine: str) -> ProxyRecord | None:
    """Ask the proxy of an engine on this machine as the engine does; None if there is none."""
    url = None
    try:
        url = url_of(engine)
        return None if url is None else ProxyRecord(url, tuple(name for _, name in discover(url)), None)
    except (NoDiscovery, UserError) as error:
        return ProxyRecord(url, (), str(error))


def discover(url: str) -> dict[Key, dict[str, str]]:
    """The proxy's units with their properties. Raises `NoDiscovery`; `UserError` if not for this user."""
    try:
        with xmlrpc.client.ServerProxy(url, transport=_Transport(url)) as proxy:
            answer: Any = proxy.discover()
    except (OSError, http.client.HTTPException, xmlrpc.client.Error, ExpatError, *_NO_CALL) as error:
        refused = isinstance(error, xmlrpc.client.ProtocolError) and error.errcode == HTTPStatus.FORBIDDEN
        if refused and discovery_answered_at(url) is not None:
            raise UserError(NOT_THIS_USER) from None
        raise NoDiscovery(str(error) or type(error).__name__) from None
    try:
        return {
            (_KINDS[key], name): {
                word: regex
                for part in str(described[1]).split(";")
                for word, _, regex in (part.strip().partition("="),)
                if part.strip()
            }
            for key in {*_KINDS, *answer}
            for name, described in answer[key].items()
        }
    except _NO_CALL:
        raise NoDiscovery("its discover does not answer filters, scores and balance") from None


def discovery_answered_at(url: str) -> float | None:
    """When it last answered the engine's discovery, in Unix time; 0 if not yet, None if it does not say."""
    try:
        with closing(_Transport(url).make_connection(urlsplit(url).netloc)) as connection:
            connection.request("GET", "/metrics")
            found = _ANSWERED.search(connection.getresponse().read().decode("utf-8", "replace"))
    except (OSError, http.client.HTTPException, ValueError):
        return None
    return None if found is None else float(found[1])


class _Transport(xmlrpc.client.SafeTransport):
    """Waits for an answer, but not for ever."""

    def __init__(self, url: str) -> None:
        super().__init__(headers=[_NOT_THE_ENGINE], context=any_certificate())
        self._kind = xmlrpc.client.SafeTransport if url.startswith("https:") else xmlrpc.client.Transport

    def make_connection(self, host: Any) -> Any:
        connection = self._kind.make_connection(self, host)
        connection.timeout = _PATIENCE_SECONDS
        return connection


# -- Reads the proxy's record of decisions: one line of JSON each, in a file and those that made way for it.
FILTERS, WEIGHTS, BALANCE = "runFilters", "runCostFunctions", "runLoadBalancing"

#: Where the proxy's unit lets it record, where its configuration does not say.
LOG_DIRECTORY = Path("/var/log/ovirt-scheduler-proxy")
#: Whose group may read there.
GROUP = "ovirt-scheduler-proxy"


class NoRecord(UserError):
    """The proxy is not known to record decisions, or the record cannot be read."""


class LoggedDecision(msgspec.Struct, frozen=True):
    """One answer of the proxy."""

    #: Seconds since 1970.
    time: float
    #: The id that the proxy's log knows the call by.
    request: str
    method: str
    hosts: tuple[str, ...]
    #: For each host that fell, the units that dropped it.
    fallen: Mapping[str, tuple[str, ...]]
    #: By unit, in the order of the hosts; lower is better.
    weights: Mapping[str, tuple[int, ...]]
    #: The VM to move, and where to.
    balance: tuple[str, tuple[str, ...]] | None
    #: What units that failed, or refused the VM, had to say.
    failure_sentences: Mapping[str, str]
    seconds: float
    #: By unit: how old the state was that it decided on, in seconds, where it says so.
    state_age_seconds: Mapping[str, float] = {}
    #: The VM that was asked about; empty of a balance.
    vm: str = ""
    #: By unit: why it dropped hosts, as the unit wrote it.
    reasons: Mapping[str, Any] = {}

    @property
    def refused(self) -> bool:
        """Whether no host was left of those that the engine asked about."""
        return self.method == FILTERS and bool(self.hosts) and len(self.fallen) == len(self.hosts)


def records(engine: str) -> bool:
    """Whether the proxy of an engine is to record. Raises `UserError` if its configuration cannot be read."""
    return (section_of(engine, "decisions") or {}).get("record") is not False


def record_of(engine: str) -> Path:
    """Where the proxy of an engine records its decisions. Raises `NoRecord` if it does not."""
    file = configuration_of(engine)
    section = section_of(engine, "decisions")
    if not records(engine):
        raise NoRecord(f"the proxy records no decisions: record = false in section [decisions] of {file}")
    if section is not None and section.get("file"):
        return Path(section["file"])
    own = "" if engine == DEFAULT_ENGINE else f"-{engine}"
    usual = LOG_DIRECTORY / f"decisions{own}.jsonl"
    with suppress(PermissionError):  # the directory of its log is there, and closed to us
        if section is None and not usual.exists():
            raise NoRecord(
                f"this machine has no scheduler proxy of engine {engine}: there is neither {file} nor"
                f" {usual}; name the record of its proxy with --decisions"
            )
    return usual


def decisions(record: Path, fits: Callable[[bytes], bool] = bool) -> Iterator[LoggedDecision]:
    """Those whose line `fits` and can be read, the oldest first. Raises `NoRecord` if none can be."""
    bad = good = 0
    with ExitStack() as opened:
        for lines in reversed(_opened(record, opened)):
            for line in lines:
                # What is being written just now has no end yet.
                if not fits(line) or not line.endswith(b"\n"):
                    continue
                try:
                    decision = msgspec.json.decode(line, type=LoggedDecision)
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    bad += 1
                    continue
                good += 1
                yield decision
    if bad and not good:
        raise NoRecord(f"{record}: is no record of the proxy's decisions")


def about(vm: str, record: Path) -> Iterator[LoggedDecision]:
    """The decisions about a VM, the oldest first; raises as `decisions`."""
    name = msgspec.json.encode(vm)
    marks = b'"vm":' + name, b'"balance":[' + name
    # Reasons of others' units may name it, too.
    found = decisions(record, lambda line: any(mark in line for mark in marks))
    return (one for one in found if vm == (one.vm if one.balance is None else one.balance[0]))


def begins(record: Path) -> float | None:
    """When its oldest decision was made, in seconds since the epoch; None if empty. Raises as `decisions`.

    It need not stand first: the clock may have been set.
    """
    return min((one.time for one in decisions(record)), default=None)


def exists(record: Path) -> bool:
    """Whether there is a record. Raises `NoRecord` if it cannot be read."""
    try:
        with record.open("rb"):
            return True
    except FileNotFoundError:
        return False
    except OSError as error:
        raise NoRecord(_unreadable(record, error)) from None


def _opened(record: Path, opened: ExitStack) -> list[IO[bytes]]:
    """The files, the newest first, each once: one that makes way meanwhile is met again by its new name."""
    found: list[IO[bytes]] = []
    seen = set()
    for number in count():
        file = record.with_name(f"{record.name}.{number}") if number else record
        try:
            lines = opened.enter_context(os.fdopen(identity.opened(file), "rb"))
        except FileNotFoundError:
            if number:
                break
            continue  # it may have made way just now
        except OSError as error:
            raise NoRecord(_unreadable(file, error)) from None
        status = os.fstat(lines.fileno())
        if (which := (status.st_dev, status.st_ino)) not in seen:
            seen.add(which)
            found.append(lines)
    if not found:
        raise NoRecord(
            f"{record}: there is no such file: the proxy has recorded no decision yet, or is not allowed to"
            " write there (ovirt-placement doctor)"
        )
    return found


def _unreadable(file: Path, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return (
            f"{file}: cannot read the record of decisions: root and the group {GROUP} may read it"
            f" (usermod -aG {GROUP} USER)"
        )
    return f"{file}: cannot read the record of decisions: {error.strerror}"
