"""The failure domains that the configuration names, by a list of hosts or by their tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ovirt_placement.answers.finding import find
from ovirt_placement.config import HaSettings
from ovirt_placement.lookups.called import WILDCARD, called
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import choices
from ovirt_placement.rules.failover.units import Domain, tagged_domains
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

Domains = tuple[Domain, ...]


def configured_domains(snapshot: Snapshot, settings: HaSettings) -> Domains:
    """Those that are listed, then those that tags name.

    Raises `UserError` if a host that is listed is not known, or if a name means two domains.
    """
    listed = tuple(
        Domain(one.name, frozenset(host for word in one.hosts for host in _hosts(word, one.name, snapshot)))
        for one in settings.domains
    )
    found = (*listed, *tagged_domains(snapshot, settings.domain_tags))
    twice = [name for name, count in Counter(domain.name for domain in found).items() if count > 1]
    if twice:
        raise UserError(f'[ha] domains: "{twice[0]}" is the name of two failure domains')
    return found


def named_domains(words: Iterable[str], domains: Iterable[Domain]) -> Domains:
    """The domains of these names. Raises `UserError` with the nearest right name."""
    by_name = {domain.name: domain for domain in domains if domain.name is not None}
    for word in words:
        if word not in by_name:
            raise UserError(
                f'no failure domain "{word}"{nearest(word, list(by_name))}: see [ha] in docs/ha.md'
            )
    return tuple(by_name[word] for word in words)


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
    return known if words is None else named_domains(words, known)


def all_together(words: Iterable[str], snapshot: Snapshot) -> Domains:
    """Hosts by name or id, as one domain without a name. Raises `UserError` with the nearest right name."""
    return (Domain(None, frozenset(find(word.strip(), "host", snapshot.hosts).id for word in words)),)


def _hosts(word: str, domain: str, snapshot: Snapshot) -> list[str]:
    """The host of an id or a name, or those of a pattern."""
    hosts = snapshot.hosts
    found = called(word, hosts)
    if len(found) == 1 or (found and WILDCARD in word):
        return [host.id for host in found]
    if found:
        raise UserError(f'[ha] domain "{domain}": host "{word}" is ambiguous: say {choices(found, snapshot)}')
    hint = nearest(word, [host.name for host in hosts])
    raise UserError(f'[ha] domain "{domain}": no host "{word}"{hint}')
