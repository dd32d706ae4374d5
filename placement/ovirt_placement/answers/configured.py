"""What the configuration of all commands names: names that match nothing, and failure domains."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin

import msgspec

from ovirt_placement.answers.keys.compiled import unmatched_keys
from ovirt_placement.config import NAMES, Config, HaSettings
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import (
    LISTED,
    WILDCARD,
    Identified,
    UnmatchedName,
    begins,
    called,
    choices,
    gone_keys,
    group_ids,
    named_group,
    unmatched,
)
from ovirt_placement.model.snapshot import HOST_TAGS
from ovirt_placement.rules.failover.outcomes import (
    LISTS,
    TAGS,
    Domain,
    listed_hosts,
    listed_tags,
    tagged_domains,
)
from ovirt_placement.rules.placement_rules.kind import resolved_rules
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

# -- Sections of the configuration that other commands read: they define how to read them.
# A package names its section and its settings as an entry point of this group.
GROUP = "ovirt_placement.sections"


class ConfiguredName(NamedTuple):
    """A text of the configuration that names something of the engine's."""

    #: The section, and the key with its place in it.
    where: str
    kind: str
    word: str


@cache
def _sections() -> tuple[tuple[str, type[msgspec.Struct]], ...]:
    """The sections that installed components read: to look for them takes longer than to read them."""
    return tuple((one.name, one.load()) for one in entry_points(group=GROUP))


def complaints(configuration: Config) -> Iterator[str]:
    for name, settings in _sections():
        try:
            configuration.section(name, settings)
        except UserError as error:
            yield str(error)


def configured_names(configuration: Config) -> tuple[ConfiguredName, ...]:
    """What all sections name, but for what they name by default; nothing of a section that is wrong."""
    found = [*names_of("ha", configuration.ha)]
    for name, settings in _sections():
        try:
            found += names_of(name, configuration.section(name, settings))
        except UserError:
            continue
    return tuple(found)


def names_of(section: str, settings: msgspec.Struct) -> Iterator[ConfiguredName]:
    """What the settings of one section name."""
    for field in msgspec.structs.fields(type(settings)):
        value = getattr(settings, field.name)
        if value != field.default:
            yield from _names(field.type, value, f"[{section}] {field.name}")


def _names(annotation: Any, value: Any, where: str) -> Iterator[ConfiguredName]:
    if get_origin(annotation) is Annotated:
        inner, *metas = get_args(annotation)
        for meta in metas:
            if kind := (meta.extra or {}).get(NAMES):
                yield ConfiguredName(where, kind, value)
        yield from _names(inner, value, where)
    elif isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(type(value)):
            yield from _names(field.type, getattr(value, field.name), f"{where}.{field.name}")
    elif isinstance(value, Mapping):
        of_keys, of_values = get_args(annotation)
        for key, one in value.items():
            yield from _names(of_keys, key, where)
            yield from _names(of_values, one, f"{where}.{key}")
    elif isinstance(value, tuple) and get_args(annotation):
        for number, one in enumerate(value):
            place = f"{where}[{number}]" if isinstance(one, msgspec.Struct) else where
            yield from _names(get_args(annotation)[0], one, place)


# -- Names that match nothing in the engine: of the configuration, of placement rules and keys, of policies.
# What such a name protects or asks for is silently gone: it was mistyped, or what it named was renamed or
# removed. Where the part of the state that shows it has not been read, nothing is said of the name.
#: This many of them are named in a sentence.
_MOST_NAMED: Final = 3


def unmatched_names(
    snapshot: Snapshot, configured: Iterable[ConfiguredName] = (), tagged: frozenset[str] | None = None
) -> tuple[UnmatchedName, ...]:
    """All, in their places; `tagged` are ids that bear a configured tag, where the engine was asked."""
    configured = [one for one in configured if one.word not in {WILDCARD, ""}]
    gone = gone_keys(snapshot.placement_keys, snapshot, LISTED)
    return (
        *_without_match(snapshot, configured, tagged),
        *(one for found in resolved_rules(snapshot) for one in found.unmatched),
        *(UnmatchedName(f"placement key {key.name}", key.level, key.resource) for key in gone),
        *unmatched_keys(snapshot),
        *_without_match(snapshot, _names_of_policies(snapshot)),
    )


def tagged_in(file: Snapshot, configured: Iterable[ConfiguredName]) -> frozenset[str] | None:
    """The ids that bear a tag of the configuration in a state file; None if that was made without tags."""
    bearers: list[Host | Vm] = [*file.hosts, *file.vms]
    if not any(one.tags for one in bearers):
        return None
    words = {one.word for one in configured if one.kind == "tag"}
    return frozenset(one.id for one in bearers if not words.isdisjoint(one.tags))


def summary(names: Sequence[UnmatchedName]) -> str:
    said = [one.sentence for one in names[:_MOST_NAMED]]
    if more := len(names) - len(said):
        said.append(f"and {more} more")
    return "; ".join(said)


def _without_match(
    snapshot: Snapshot, names: Iterable[ConfiguredName], tagged: frozenset[str] | None = None
) -> Iterator[UnmatchedName]:
    groups = [named_group(one, snapshot) for one in group_ids(snapshot)]
    entities: dict[str, Sequence[Identified]] = {
        "VM": snapshot.vms,
        "host": snapshot.hosts,
        "cluster": snapshot.clusters,
        "affinity group or placement rule": groups,
    }
    tags = {tag for host in snapshot.hosts for tag in host.tags}
    for name in names:
        if name.kind == "tag":
            if tagged is not None and not tagged:
                vm_tags = (tag for vm in snapshot.vms for tag in vm.tags)
                yield unmatched(name.where, name.kind, name.word, [*tags, *vm_tags])
        elif name.kind == "host tag":
            if HOST_TAGS not in snapshot.unread and not any(begins(name.word, tag) for tag in tags):
                yield unmatched(name.where, "tag of a host", name.word, tags)
        elif not called(name.word, entities[name.kind]):
            yield unmatched(name.where, name.kind, name.word, [entity.name for entity in entities[name.kind]])


def _names_of_policies(snapshot: Snapshot) -> Iterator[ConfiguredName]:
    """Hosts and tags that the properties of a cluster's policy name as failure domains."""
    for cluster in snapshot.clusters:
        where, properties = f"cluster {cluster.name}, scheduling property", cluster.scheduling_properties
        yield from (ConfiguredName(f"{where} {LISTS}", "host", word) for word in listed_hosts(properties))
        yield from (ConfiguredName(f"{where} {TAGS}", "host tag", word) for word in listed_tags(properties))


# -- The failure domains that the configuration names, by a list of hosts or by their tags.
Domains = tuple[Domain, ...]


def configured_domains(snapshot: Snapshot, settings: HaSettings) -> Domains:
    """Those listed, then those of tags. Raises `UserError` for unknown hosts, and for a name of two."""
    listed = tuple(
        Domain(
            one.name,
            frozenset(host for word in one.hosts for host in _hosts_of_word(word, one.name, snapshot)),
        )
        for one in settings.domains
    )
    found = (*listed, *tagged_domains(snapshot, settings.domain_tags))
    twice = [name for name, count in Counter(domain.name for domain in found).items() if count > 1]
    if twice:
        raise UserError(f'[ha] domains: "{twice[0]}" is the name of two failure domains')
    return found


def asked_domains(snapshot: Snapshot, settings: HaSettings, words: Iterable[str] | None) -> Domains:
    """The domains of these names, or all. Raises `UserError` where there are none."""
    known = configured_domains(snapshot, settings)
    if not known and settings.domain_tags:
        begins = " or ".join(f'"{tag}"' for tag in settings.domain_tags)
        raise UserError(
            f"no failure domains: no host is known to have a tag that begins with {begins}; an inventory that"
            " runs reads the tags of hosts once it is restarted (docs/ha.md)"
        )
    if not known:
        raise UserError("no failure domains: set domains or domain_tags under [ha] (docs/ha.md)")
    by_name = {domain.name: domain for domain in known if domain.name is not None}
    for word in words or ():
        if word not in by_name:
            raise UserError(
                f'no failure domain "{word}"{nearest(word, list(by_name))}: see [ha] in docs/ha.md'
            )
    return known if words is None else tuple(by_name[word] for word in words)


def _hosts_of_word(word: str, domain: str, snapshot: Snapshot) -> list[str]:
    """The host of an id or a name, or those of a pattern."""
    hosts = snapshot.hosts
    found = called(word, hosts)
    if len(found) == 1 or (found and WILDCARD in word):
        return [host.id for host in found]
    if found:
        raise UserError(f'[ha] domain "{domain}": host "{word}" is ambiguous: say {choices(found, snapshot)}')
    hint = nearest(word, [host.name for host in hosts])
    raise UserError(f'[ha] domain "{domain}": no host "{word}"{hint}')
