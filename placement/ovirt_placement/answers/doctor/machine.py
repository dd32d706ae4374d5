"""What can be wrong on this machine, in its configuration, in placement rules, and with the system."""

import grp
import os
import pwd
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.answers import configured
from ovirt_placement.answers.configured import configured_names, unmatched_names
from ovirt_placement.answers.doctor import FoundProblem, NotInUse, problem
from ovirt_placement.answers.proxy import configuration_of, exists, others_plugins, record_of, records
from ovirt_placement.config import Config
from ovirt_placement.config_file import DEFAULT_PATH
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.log_ins import refusal
from ovirt_placement.engine.requests import tagged_ids
from ovirt_placement.engine.topology import read_hosts
from ovirt_placement.inventory.connection import NoAnswer, NoService, NotAllowed
from ovirt_placement.inventory.publication import age, ask_moments, now
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.failover.outcomes import listed_tags
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.keys import KeyRecords, KeyStore
from ovirt_placement.store.sql.access import opened, stored
from ovirt_placement.store.sql.connections import obstacle, sqlite_path
from ovirt_placement.store.sql.database import Database, StoreAway, StoreUnmade
from ovirt_service.errors import UserError

# -- What can be wrong on this machine: no inventory is published, the store cannot be reached.
#: What is published and older is stale, or older than three times the interval of reading.
_STALE_SECONDS = 60.0
_PATIENCE_SECONDS = 2.0
_REACH = "reach the database, or set [store] url to one that is reached"


def examine_sections(configuration: Config) -> Iterator[FoundProblem]:
    for complaint in configured.complaints(configuration):
        yield problem("mistaken_configuration", complaint, "correct it: the command does not start so")


def examine_inventory(config: Config) -> Iterator[FoundProblem]:
    directory, unit = config.inventory.directory, config.unit("ovirt-placement-inventory")
    try:
        moments = ask_moments(directory, _PATIENCE_SECONDS)
    except NotAllowed:
        yield problem(
            "unreadable_inventory",
            f"the inventory at {directory} cannot be asked from here",
            "be in the group ovirt-placement",
        )
        return
    except NoService:
        yield problem(
            "no_inventory",
            f"no inventory publishes to {directory}: each worker of the proxy reads the engine itself",
            f"systemctl enable --now {unit} (or ovirt-placement inventory run)",
        )
        return
    except NoAnswer:
        moments = None
    if moments is None:
        yield problem(
            "nothing_published",
            f"the inventory at {directory} runs and has read nothing yet",
            f"look into its log: journalctl -u {unit}",
        )
        return
    log = f"look into its log for the reason: journalctl -u {unit}"
    limit = max(_STALE_SECONDS, 3 * config.inventory.interval_seconds)
    if (now() - moments.as_of) > limit:
        yield problem(
            "stale_inventory", f"the inventory's last snapshot is {now() - moments.as_of:.0f} s old", log
        )
    elif not moments.store_answers:
        keys_age, by = age(moments.keys_at), "are made without placement keys"
        if keys_age is not None:
            by = f"go by placement keys of {keys_age:.0f} s ago"
        yield problem("inventory_without_store", f"the inventory cannot read the store: decisions {by}", log)


def examine_store(config: Config) -> Iterator[FoundProblem]:
    url = config.store.url
    try:
        with closing(Database(url, patience_seconds=_PATIENCE_SECONDS, create=False)) as database:
            database.check_whole()
        with opened(Store, config, patience_seconds=_PATIENCE_SECONDS, create=False) as store:
            store.open_intents()
        path = sqlite_path(url)
        if path is not None and (fault := obstacle(path)) is not None:
            yield problem(
                "unwritable_store", f"the store {path} cannot be written: {fault.what}", fault.remedy
            )
    except StoreUnmade:
        path = sqlite_path(url)
        if path is not None and not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
            yield problem(
                "no_store",
                f"the store {path} does not exist and cannot be made there by this user",
                f"make the directory {path.parent} for the user ovirt-placement, or set [store] url",
            )
    except StoreAway as error:
        yield problem("no_store", error.what, error.remedy or _REACH)
    except UserError as error:
        yield problem("no_store", str(error), _REACH)


def with_stored_keys(snapshot: Snapshot, config: Config) -> Snapshot:
    """Add the placement keys and rules of the store; a store that does not answer is a finding already."""
    read, nothing = KeyStore.records, KeyRecords(0)
    try:
        records = stored(KeyStore, config, read, nothing, patience_seconds=_PATIENCE_SECONDS)
    except UserError:
        return snapshot
    return replace(snapshot, placement_keys=records.placement_keys, placement_rules=records.placement_rules)


# -- Examines names that match nothing in the engine; those of placement rules are mistakes of these.
def examine_names(
    connection: EngineConnection, configuration: Config, snapshot: Snapshot
) -> Iterator[FoundProblem]:
    """A finding for each; the engine is asked for tags where the configuration has any."""
    configured = configured_names(configuration)
    words = [one.word for one in configured if one.kind == "tag" and one.word]
    tagged = frozenset[str]().union(*(tagged_ids(connection, word) for word in words)) if words else None
    policies = any(listed_tags(cluster.scheduling_properties) for cluster in snapshot.clusters)
    if policies or any(one.kind == "host tag" for one in configured):
        snapshot = replace(snapshot, hosts=read_hosts(connection, devices=True))
    for name in unmatched_names(snapshot, configured, tagged):
        if not name.in_rule:
            yield problem(
                "name_matches_nothing",
                name.sentence,
                "correct the name, or remove it: what it is to protect or to ask for is not heeded",
            )


# -- What can be wrong with the proxy's record of decisions, by which questions about the past are answered.
#: A decision about 500 hosts takes up to 100 KB.
_LEAST_FREE = 1 << 20


def examine_record(engine: str) -> Iterator[FoundProblem | NotInUse]:
    """Look whether decisions are recorded, and have room. Raises `NoRecord` if the record cannot be read."""
    if not records(engine):
        yield NotInUse(
            "the proxy records no decisions, so that it cannot be explained later why a VM did not start"
            f" (record in section [decisions] of {configuration_of(engine)})"
        )
        return
    record = record_of(engine)
    if not exists(record):
        yield problem(
            "no_record",
            f"the proxy's record of decisions is not there: {record}: it cannot be explained later"
            " why a VM did not start",
            "restart the proxy, which makes it; if it cannot, its log says why (may its user write"
            f" to {record.parent}?)",
        )
        return
    place = os.statvfs(record.parent)
    if place.f_bavail * place.f_frsize < _LEAST_FREE:
        yield problem(
            "record_disk_full",
            f"the disk is full on which the proxy records its decisions: {record}",
            "make room; until then decisions are made, and not recorded",
        )


# -- What can be wrong with the system: the socket of the proxy is not enabled.
#: Where the files of the system are.
ROOT = Path("/")
#: Links that `systemctl enable` makes.
_ENABLED = Path("etc/systemd/system")


def examine_socket(root: Path) -> Iterator[FoundProblem]:
    """Look whether a proxy that starts with the machine has the socket which stays open while it restarts."""
    wanted = root / _ENABLED
    service = wanted / "multi-user.target.wants" / "ovirt-scheduler-proxy.service"
    socket = wanted / "sockets.target.wants" / "ovirt-scheduler-proxy.socket"
    if service.is_symlink() and not socket.is_symlink():
        yield problem(
            "socket_not_enabled",
            "ovirt-scheduler-proxy.service is enabled and its socket is not: while it restarts, the"
            " engine's calls are refused, and VMs start without our units",
            "systemctl enable ovirt-scheduler-proxy.socket, then systemctl stop"
            " ovirt-scheduler-proxy.service, and systemctl start ovirt-scheduler-proxy.socket"
            " ovirt-scheduler-proxy.service",
        )


# -- What a hardened host refuses, or does not reach: plugins under fapolicyd, wheels in FIPS mode.
_DAEMON = "fapolicyd"
#: What is in force: all that stands in rules.d, once it is loaded.
_RULES = Path("etc/fapolicyd/compiled.rules")
_ALLOWED = re.compile(r"^allow\S* .*:.*\bdir=(/\S*)", re.MULTILINE)
#: Where the wheel of psycopg on PyPI has the OpenSSL that it brings.
_BROUGHT = "psycopg_binary.libs"


def examine_system(config: Config, root: Path) -> Iterator[FoundProblem]:
    """Look at the system whose files are below `root`. Raises `UserError` if we may not look at a file."""
    yield from examine_socket(root)
    yield from examine_fips(config, root, map(Path, sys.path))
    yield from examine_fapolicyd(config.engine.name, root)


def examine_fips(config: Config, root: Path, packages: Iterable[Path]) -> Iterator[FoundProblem]:
    """Look whether a PostgreSQL is reached by the system's OpenSSL, which alone knows of FIPS mode.

    Requests to the engine go by Python's, which is the system's; pycurl is loaded by the SDK, and sends none.
    """
    if _read(root / "proc/sys/crypto/fips_enabled").strip() != "1":
        return
    brought = any(any((each / _BROUGHT).glob("libcrypto*")) for each in packages)
    if brought and config.store.url.startswith("postgresql"):
        yield problem(
            "fips_not_reached",
            "the system is in FIPS mode, and psycopg-binary has an OpenSSL of its own, which is not",
            "use psycopg with the system's libpq: docs/hardened-hosts.md shows how",
        )


def examine_fapolicyd(engine: str, root: Path) -> Iterator[FoundProblem]:
    """Look whether the proxy's workers may read plugins that no package has installed."""
    if not any(_read(comm).strip() == _DAEMON for comm in (root / "proc").glob("[0-9]*/comm")):
        return
    allowed = [Path(found) for found in _ALLOWED.findall(_read(root / _RULES))]
    for folder in others_plugins(engine):
        plugins = any((root / folder.relative_to("/")).glob("*.py"))
        if plugins and not any(folder.is_relative_to(each) for each in allowed):
            yield problem(
                "fapolicyd_refuses",
                f"fapolicyd is in force, and no rule of it lets the proxy read {folder}: plugins there"
                " that no package has installed do not load",
                "add the rule that docs/hardened-hosts.md shows to /etc/fapolicyd/rules.d, then"
                " fagenrules --load && systemctl restart fapolicyd",
            )


def _read(file: Path) -> str:
    """What is in a file; nothing if there is none, as of a process that has just ended."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; run doctor as root") from None


# -- Whether the services' users can read what root can: the configuration, the password, the CA.
#: The users of the systemd units, and what runs as each.
SERVICES = {"ovirt-placement": "inventory and enforcer", "ovirt-scheduler-proxy": "the proxy's workers"}
#: The group that all of them are in.
GROUP = "ovirt-placement"
_READ, _ENTER = 4, 1


class User(NamedTuple):
    """Whom the kernel asks for: the groups are all that the user is in."""

    name: str
    uid: int
    gids: frozenset[int]


class Found(NamedTuple):
    """A file that services read, as it stands, and the directories that lead to it."""

    path: Path
    status: os.stat_result
    directories: tuple[tuple[Path, os.stat_result], ...]
    is_password: bool = False


def examine_services(config: Config) -> Iterator[FoundProblem]:
    """Ask for each user of a service; of a configuration of one's own nothing is asked."""
    if Path(config.source).parent != DEFAULT_PATH.parent:
        return
    users = _users()
    if users:
        yield from examine_files(tuple(_files(config)), users, _group())


def examine_files(files: Iterable[Found], users: Iterable[User], group: int | None) -> Iterator[FoundProblem]:
    """Ask by owner, groups and mode; `group` is the number of the services' group."""
    everyone = tuple(users)
    for file in files:
        for user in everyone:
            if hindrance := _hindrance(user, file, group):
                what, remedy = hindrance
                who = f"{SERVICES.get(user.name, 'a service')} (user {user.name})"
                yield problem("unreadable_by_service", f"{who}: {what}", remedy)


def _hindrance(user: User, file: Found, group: int | None) -> tuple[str, str] | None:
    for path, status in file.directories:
        if not _may(user, status, _ENTER):
            what = f"cannot read {file.path}, since it may not enter {path}"
            return what, f"chmod a+x {path}, or keep the file in {DEFAULT_PATH.parent}"
    share = f"chown root:{GROUP} {file.path} && chmod 640 {file.path}"
    status = file.status
    if not _may(user, status, _READ):
        for_group = status.st_gid == group and status.st_mode & stat.S_IRGRP
        join = f"usermod -aG {GROUP} {user.name}, and restart its service"
        return f"cannot read {file.path}", join if for_group and group not in user.gids else share
    reason = refusal(status, user.uid, str(file.path)) if file.is_password else None
    return None if reason is None else (f"refuses {reason}", share)


def _may(user: User, status: os.stat_result, right: int) -> bool:
    """Answer as the kernel does: the first of owner, group and others that fits decides."""
    if user.uid == status.st_uid:
        bits = status.st_mode >> 6
    elif status.st_gid in user.gids:
        bits = status.st_mode >> 3
    else:
        bits = status.st_mode
    return bool(bits & right)


def _files(config: Config) -> Iterator[Found]:
    """Look at what there is; the reader of a missing file reports it."""
    engine = config.engine
    for path in (Path(config.source), engine.password_file, engine.ca_file):
        if path is None:
            continue
        try:
            real = path.resolve()
            on_the_way = sorted({*path.absolute().parents, *real.parents})
            directories = tuple((each, each.stat()) for each in on_the_way)
            yield Found(path, path.stat(), directories, is_password=path == engine.password_file)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}; run doctor as root") from None


def _users() -> tuple[User, ...]:
    found = []
    for name in SERVICES:
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            found.append(User(name, entry.pw_uid, frozenset(os.getgrouplist(name, entry.pw_gid))))
    return tuple(found)


def _group() -> int | None:
    with suppress(KeyError):
        return grp.getgrnam(GROUP).gr_gid
    return None
