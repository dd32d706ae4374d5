"""Which policy each cluster had before setup gave it another, and the requests that give it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ovirt_placement.answers.setup.former import FormerCluster, origin_of, remembered
from ovirt_placement.answers.setup.requests import assign
from ovirt_placement.engine.parsing.policies import PolicyHead, PolicyUnit
from ovirt_placement.engine.writing.policies import PolicyRequest, PolicyUser
from ovirt_service.errors import UserError

#: The engine's policy that ours is made like if it is made like no other.
BASE = "none"

_UNREMEMBERED = FormerCluster()


@dataclass(frozen=True)
class Overview:
    """All policies of the engine without their units, the clusters that use them, and all units."""

    units: Mapping[str, PolicyUnit]
    heads: tuple[PolicyHead, ...]
    users: tuple[PolicyUser, ...]

    @cached_property
    def head_by_id(self) -> Mapping[str, PolicyHead]:
        return {head.id: head for head in self.heads}

    def named(self, name: str) -> PolicyHead | None:
        return next((head for head in self.heads if head.name == name), None)


def returning(
    overview: Overview, head: PolicyHead, going: frozenset[str], *, all_users: bool
) -> Iterator[PolicyRequest]:
    """Give the clusters that use a policy what they had: all of them, or those that it remembers."""
    former = remembered(head.description).clusters
    for user in overview.users:
        if user.policy != head.id or not (all_users or user.id in former):
            continue
        before = _before(overview, head, user.id, going)
        properties = former.get(user.id, _UNREMEMBERED).properties
        what = f"let the cluster {user.name} use the policy {before.name} again"
        yield assign(user, before.id, properties, what)


def in_order(heads: tuple[PolicyHead, ...]) -> Iterator[PolicyHead]:
    """So that none is removed while another still says that its clusters came from there."""
    left = list(heads)
    while left:
        chosen = next((one for one in left if not any(_mentions(other, one) for other in left)), left[0])
        left.remove(chosen)
        yield chosen


def _mentions(head: PolicyHead, other: PolicyHead) -> bool:
    return any(one.policy == other.id for one in remembered(head.description).clusters.values())


def _before(overview: Overview, head: PolicyHead, cluster: str, going: frozenset[str]) -> PolicyHead:
    """The policy that a cluster had before this one; of those that go, what it had before them."""
    passed = set()
    found = head
    while found.id not in passed and (found is head or found.id in going):
        passed.add(found.id)
        entry = remembered(found.description).clusters.get(cluster, _UNREMEMBERED)
        found = overview.head_by_id.get(entry.policy or "") or _origin(overview, found)
    return _origin(overview, found) if found.id in passed else found


def _origin(overview: Overview, head: PolicyHead) -> PolicyHead:
    """The policy that this one was made like: the engine's own, which always stay."""
    name = origin_of(head.description) or BASE
    found = overview.named(name)
    if found is None:
        raise UserError(f"the engine has no policy {name} any more to give the clusters of {head.name}")
    return found
