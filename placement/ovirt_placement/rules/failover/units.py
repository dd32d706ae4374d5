"""What fails whole: single hosts, or failure domains of several hosts (a rack, a power feed, a room)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ovirt_placement.lookups.called import begins
from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record


class FailureUnit(Record, frozen=True):
    """Hosts that fail together."""

    hosts: tuple[str, ...]
    #: The domain's name; None for a host that stands for itself.
    domain: str | None = None


class Domain(Record, frozen=True):
    """A failure domain: whatever hosts it lists fail together."""

    #: None for hosts that somebody asks about.
    name: str | None
    hosts: frozenset[str]


def single_hosts(hosts: Iterable[str]) -> tuple[FailureUnit, ...]:
    return tuple(FailureUnit((host,)) for host in hosts)


def whole_domains(domains: Iterable[Domain], hosts: Sequence[str]) -> tuple[FailureUnit, ...]:
    """The domains that have any of these hosts, with those of them that they have, in this order."""
    found = ((domain, tuple(host for host in hosts if host in domain.hosts)) for domain in domains)
    return tuple(FailureUnit(own, domain.name) for domain, own in found if own)


def tagged_domains(snapshot: Snapshot, prefixes: Sequence[str]) -> tuple[Domain, ...]:
    """A domain for each host tag that begins with one of these prefixes or patterns, named as it."""
    by_tag: dict[str, set[str]] = {}
    for host in snapshot.hosts:
        for tag in host.tags:
            if any(begins(prefix, tag) for prefix in prefixes):
                by_tag.setdefault(tag, set()).add(host.id)
    return tuple(Domain(tag, frozenset(by_tag[tag])) for tag in sorted(by_tag))


def failing_hosts(units: Sequence[FailureUnit], chosen: Iterable[int]) -> tuple[str, ...]:
    """All hosts of the units with these numbers, each once."""
    return tuple(dict.fromkeys(host for number in chosen for host in units[number].hosts))


def domains_of(units: Sequence[FailureUnit], chosen: Iterable[int]) -> tuple[str, ...]:
    """The names of those of them that are domains."""
    return tuple(name for number in chosen if (name := units[number].domain) is not None)
