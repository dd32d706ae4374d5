"""What can be wrong on this machine, in its configuration and in placement rules."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

from msgspec.structs import replace

from ovirt_placement.answers import configured
from ovirt_placement.answers.configured import configured_names, unmatched_names
from ovirt_placement.answers.conflicts import sentence
from ovirt_placement.answers.decisions.record import exists, record_of, records
from ovirt_placement.answers.doctor.finding import FoundProblem, NotInUse, problem
from ovirt_placement.answers.rules import rules_check_together
from ovirt_placement.answers.status.proxy import configuration_of
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading.searches import tagged_ids
from ovirt_placement.engine.reading.topology import read_hosts, read_snapshot
from ovirt_placement.inventory import protocol
from ovirt_placement.inventory.asking import NoAnswer, NoService, NotAllowed
from ovirt_placement.inventory.on_demand import read_searches, searches_of
from ovirt_placement.inventory.publication import Moments, age, now
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.admission.units import listed_tags
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.keys import KeyRecords, KeyStore
from ovirt_placement.store.sql.connections import obstacle, sqlite_path
from ovirt_placement.store.sql.database import Database, StoreAway, StoreUnmade
from ovirt_placement.store.sql.opening import opened, stored
from ovirt_service.errors import UserError

# -- What can be wrong on this machine: no inventory is published, the store cannot be reached.
#: What is published and older is stale, or older than three times the interval of reading.
_STALE_SECONDS = 60.0
_PATIENCE_SECONDS = 2.0
_REACH = "reach the database, or set [store] url to one that is reached"


def examine_sections(configuration: Config) -> Iterator[FoundProblem]:
    """Look at the sections of the configuration that other commands read."""
    for complaint in configured.complaints(configuration):
        yield problem("mistaken_configuration", complaint, "correct it: the command does not start so")


def examine_inventory(config: Config) -> Iterator[FoundProblem]:
    directory, unit = config.inventory.directory, config.unit("ovirt-placement-inventory")
    try:
        found = protocol.ask_moments(directory, _PATIENCE_SECONDS)
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
        found = ()
    if not found:
        yield problem(
            "nothing_published",
            f"the inventory at {directory} runs and has read nothing yet",
            f"look into its log: journalctl -u {unit}",
        )
        return
    moments = Moments(*found)
    limit = max(_STALE_SECONDS, 3 * config.inventory.interval_seconds)
    if (now() - moments.as_of) > limit:
        yield problem(
            "stale_inventory",
            f"the inventory's last snapshot is {now() - moments.as_of:.0f} s old",
            f"look into its log for the reason: journalctl -u {unit}",
        )
    elif not moments.store_answers:
        keys_age = age(moments.keys_at)
        yield problem(
            "inventory_without_store",
            "the inventory cannot read the store: "
            + (
                "decisions are made without placement keys"
                if keys_age is None
                else f"decisions go by placement keys of {keys_age:.0f} s ago"
            ),
            f"look into its log for the reason: journalctl -u {unit}",
        )


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
    return replace(snapshot, placement_keys=records.keys, placement_rules=records.rules)


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
    for one in unmatched_names(snapshot, configured, tagged):
        if not one.in_rule:
            yield problem(
                "name_matches_nothing",
                one.sentence,
                "correct the name, or remove it: what it is to protect or to ask for is not heeded",
            )


# -- Examines placement rules: not in force, about what is not there, or not to be satisfied with all others.
def examine_rules(connection: EngineConnection, snapshot: Snapshot) -> Iterator[FoundProblem]:
    """A finding for each mistake; tags are read, and searches asked, where a rule goes by them."""
    rules = snapshot.placement_rules
    if any(rule.names_vm_tags or rule.names_host_tags for rule in rules):
        snapshot = replace(read_snapshot(connection, devices=True), placement_rules=rules)
    snapshot = replace(snapshot, member_searches=read_searches(connection, searches_of(rules)))
    check = rules_check_together(snapshot)
    for one in check.problems:
        yield problem(
            "placement_rule_mistaken",
            f"{one.rule.title}: {one.sentence}",
            f'ovirt-placement rules edit "{one.rule.name}", or what it names in the engine',
        )
    for each in check.contradictions:
        yield problem(
            "placement_rules_contradict",
            sentence(each, whole=False),
            "change or remove one of them: ovirt-placement rules edit",
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
