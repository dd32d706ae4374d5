"""What would have let a VM start that was refused on every host, as far as the record says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ovirt_placement.answers.decisions.past import HostInDecision
from ovirt_placement.answers.decisions.reasons import PastReason
from ovirt_placement.answers.document import listed
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.rules.affinity.vm_filter import NEGATIVE_PEER_HERE

#: How many ways a person reads, the simplest first.
_MOST = 5


#: What stands in the way of a host, by id with its name; nothing where that cannot be had away.
_Obstacles = Callable[[HostInDecision], Mapping[str, str]]


class Way(Record, frozen=True, omit_defaults=False):
    """One change with which hosts would have passed the proxy's filters, as things stood."""

    #: `relax`: these rules were not hard, or not there; `move`: these VMs ran elsewhere.
    kind: str
    #: Ids of affinity groups, else names of policy units; ids of VMs.
    what: tuple[str, ...]
    hosts: tuple[Named, ...]
    sentence: str


def ways(hosts: tuple[HostInDecision, ...]) -> tuple[Way, ...]:
    """The smallest changes, those first that let most hosts pass; none where any host passed.

    The engine asks the proxy about hosts that its own filters have let pass: what a way frees, it could take.
    """
    if any(not one.dropped_by for one in hosts):
        return ()
    found = (*_by(hosts, "move", _moves), *_by(hosts, "relax", _rules))
    return tuple(sorted(found, key=lambda way: (len(way.what), -len(way.hosts)))[:_MOST])


def _by(hosts: tuple[HostInDecision, ...], kind: str, of: _Obstacles) -> Iterator[Way]:
    """Hosts with the same obstacles together."""
    alike: dict[tuple[str, ...], list[Named]] = {}
    names: dict[str, str] = {}
    for one in hosts:
        obstacles = of(one)
        if obstacles:
            names |= obstacles
            alike.setdefault(tuple(sorted(obstacles)), []).append(one.host)
    for what, freed in alike.items():
        yield Way(kind, what, tuple(freed), _sentence(kind, [names[one] for one in what], freed))


def _sentence(kind: str, what: list[str], freed: list[Named]) -> str:
    names = listed([host.name for host in freed])
    hosts = f"host{'s' * (len(freed) > 1)} {names}"
    if kind == "move":
        return f"with {listed(what, ' and ')} on another host: {hosts}"
    return f"without {listed(what, ' and ')}: {hosts}"


def _moves(one: HostInDecision) -> Mapping[str, str]:
    """The VMs whose presence alone refuses the host, by id with their names; none if anything else does."""
    if all(reason.kind == NEGATIVE_PEER_HERE.name and reason.vm for reason in one.reasons):
        return {reason.vm.id: f"VM {reason.vm.name}" for reason in one.reasons if reason.vm}
    return {}


def _rules(one: HostInDecision) -> Mapping[str, str]:
    """The rules that refuse the host, by id with what they are called."""
    return dict(map(_rule, one.reasons))


def _rule(reason: PastReason) -> tuple[str, str]:
    if reason.group is not None:
        return reason.group.id, reason.group.name
    return reason.unit, f"the rule of {reason.unit}"
