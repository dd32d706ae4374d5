"""The failure domains that admission control is given: by the tags of hosts, and in lists of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.failover.units import Domain, tagged_domains
from ovirt_placement.rules.reasons import Reason, ReasonKind

TAGS = "ha_admission_domain_tags"
LISTS = "ha_admission_domains"

UNKNOWN_HOST = ReasonKind(
    "admission_domain_host_unknown", f"{LISTS} names {{status}}, which is no host, or not one alone"
)


def domains_of(snapshot: Snapshot, parameters: Mapping[str, str]) -> tuple[Domain, ...]:
    """Those that are listed, with the hosts that there are, then those that tags name."""
    listed = tuple(
        Domain(name, frozenset(host for word in words for host in _called(snapshot, word)))
        for name, words in _lists(parameters)
    )
    return (*listed, *tagged_domains(snapshot, listed_tags(parameters)))


def listed_tags(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """What the tags of hosts that name domains begin with."""
    return tuple(filter(None, parameters.get(TAGS, "").split(",")))


def listed_hosts(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts of all lists, by name or id, each once."""
    return tuple(dict.fromkeys(word for _, some in _lists(parameters) for word in some))


def unknown_hosts(snapshot: Snapshot, vm: str) -> tuple[Reason, ...]:
    """What the lists of a VM's cluster name that is no host."""
    known = snapshot.vm_by_id.get(vm)
    if known is None:
        return ()
    words = listed_hosts(snapshot.cluster_by_id[known.cluster].scheduling_properties)
    return tuple(Reason(UNKNOWN_HOST, status=word) for word in words if not _called(snapshot, word))


def _lists(parameters: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    for one in filter(None, parameters.get(LISTS, "").split("/")):
        name, _, hosts = one.partition(":")
        yield name, [word for word in hosts.split(",") if word]


def _called(snapshot: Snapshot, word: str) -> list[str]:
    """The host of this id, or the one of this name."""
    if word in snapshot.host_by_id:
        return [word]
    found = [host.id for host in snapshot.hosts if host.name == word]
    return found if len(found) == 1 else []
