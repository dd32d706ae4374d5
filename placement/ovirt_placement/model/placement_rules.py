"""Placement rules: what is asked of where VMs run that no affinity group of the engine can ask."""

from collections.abc import Iterable, Iterator
from typing import Literal

from ovirt_placement.model.record import Struct

#: What the id of every placement rule begins with: no id of the engine does.
ID_PREFIX = "rule:"
#: What a word begins with that names several VMs or hosts at once.
TAG, GROUP, LABEL, SEARCH = "tag:", "group:", "label:", "search:"

#: What a search looks for.
SearchOf = Literal["vms", "hosts"]


class MemberSearch(Struct, frozen=True):
    """A search of the engine that a rule names, and who it finds."""

    of: SearchOf
    text: str
    #: Ids; null as long as the engine has not answered it.
    found: tuple[str, ...] | None = None
    #: Why it has no answer, or none that is new; empty if it has.
    problem: str = ""


class RuleDomain(Struct, frozen=True):
    """Hosts that fail together, as a rule lists them."""

    name: str
    #: Hosts, by name or id.
    hosts: tuple[str, ...]


class PlacementRule(Struct, frozen=True):
    """One rule; its kind says which of the fields count, and what they mean (docs/placement-rules.md).

    VMs and hosts stand as they were named: by name or id, `tag:`, `group:` (an affinity group), `label:` (an
    affinity label) or `search:` (of the engine). Who these are is looked up in each state.
    """

    #: Its name; an engine has one rule of each name.
    name: str
    kind: str
    #: The cluster whose VMs it is about, by name or id.
    cluster: str
    vms: tuple[str, ...] = ()
    #: The second set of a rule between two; of a restart order, those that restart first.
    other_vms: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    #: A host tag that begins with one of these is the name of a failure domain of all hosts that have it.
    domain_tags: tuple[str, ...] = ()
    domains: tuple[RuleDomain, ...] = ()
    #: The most VMs, vCPUs or MiB.
    most: int | None = None
    #: The fewest failure domains.
    least: int | None = None
    #: By how many VMs two failure domains may differ.
    max_skew: int | None = None
    #: With fewer failure domains than these, some count as empty.
    min_domains: int | None = None
    #: What is counted of VMs: `vms`, `vcpus` or `memory_mb`.
    counted: str = "vms"
    #: Hard; otherwise it is preferred, the more so the higher its priority.
    enforcing: bool = True
    priority: float = 1.0
    #: Whether it must be satisfied in every state on the way; otherwise in the end.
    continuous: bool = True
    enabled: bool = True

    @property
    def id(self) -> str:
        """What answers name it by, among affinity groups."""
        return f"{ID_PREFIX}{self.name}"

    @property
    def names_vm_tags(self) -> bool:
        """Whether the tags of VMs say who its members are."""
        return any(word.startswith(TAG) for word in (*self.vms, *self.other_vms))

    @property
    def names_host_tags(self) -> bool:
        """Whether the tags of hosts say what its hosts or domains are."""
        listed = (host for domain in self.domains for host in domain.hosts)
        return bool(self.domain_tags) or any(word.startswith(TAG) for word in (*self.hosts, *listed))

    @property
    def searches(self) -> Iterator[tuple[SearchOf, str]]:
        """What of the engine it has searched, and by which text."""
        domains = (host for domain in self.domains for host in domain.hosts)
        yield from (("vms", text) for text in _searched((*self.vms, *self.other_vms)))
        yield from (("hosts", text) for text in _searched((*self.hosts, *domains)))


def _searched(words: Iterable[str]) -> Iterator[str]:
    return (word.removeprefix(SEARCH) for word in words if word.startswith(SEARCH))
