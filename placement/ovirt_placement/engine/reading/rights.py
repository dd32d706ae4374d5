"""What a person may do, by the engine: the roles in effect, and what each of them permits.

Read in the person's own name: the engine then adds what comes by groups of the directory and by Everyone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lxml import etree

from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.connection.sso import Refused, UserTokens
from ovirt_placement.engine.parsing import users, xml
from ovirt_placement.engine.parsing.users import Role
from ovirt_placement.model import Snapshot

#: Where something is granted: kind and id, None for the whole system.
Place = tuple[str, str] | None


@dataclass(frozen=True)
class Rights:
    """A person and what is granted to them."""

    user_id: str
    user_name: str
    #: Whether any role of theirs is of type admin: then the portal shows hosts and groups, too.
    administrator: bool
    permits: dict[Place, frozenset[str]] = field(default_factory=dict)

    def may(self, permit: str, cluster: str, snapshot: Snapshot) -> bool:
        """Whether something is permitted on a cluster: granted on it, its data center or the system."""
        known = snapshot.cluster_by_id.get(cluster)
        if known is None:
            return False
        places: list[Place] = [None, ("cluster", cluster)]
        if known.data_center is not None:
            places.append(("data_center", known.data_center))
        return any(permit in self.permits.get(place, ()) for place in places)


def read_rights(tokens: UserTokens, token: str) -> Rights:
    """Ask the engine who this is and what they may do; raises `Refused` and `EngineAway`."""
    try:
        root = users.root(tokens.get(token, ""))
        if root.user_id is None:
            raise Refused("the engine does not say whose token this is")
        held = users.permissions(tokens.get(token, f"/users/{root.user_id}/permissions"))
        name = root.user_name or _name(tokens, token, root.user_id)
        roles = _roles(tokens, token)
    except (etree.XMLSyntaxError, xml.Unexpected, xml.TooLarge):
        raise EngineAway("what answers sends something else than an engine", request_sent=True) from None
    permits: dict[Place, frozenset[str]] = {}
    for one in held:
        permits[one.on] = permits.get(one.on, frozenset()) | roles.get(one.role, Role()).permits
    return Rights(
        user_id=root.user_id,
        user_name=name,
        administrator=any(roles.get(one.role, Role()).administrative for one in held),
        permits=permits,
    )


def _name(tokens: UserTokens, token: str, user_id: str) -> str:
    """The name of a user of whom the root says the id alone; the id, where that is not to be read either."""
    try:
        user = xml.root(tokens.get(token, f"/users/{user_id}"))
    except Refused:
        return user_id
    return xml.text(xml.children(user, "user_name").get("user_name")) or user_id


def _roles(tokens: UserTokens, token: str) -> dict[str, Role]:
    """The roles by id; none to who is no admin, who may not read them all."""
    try:
        return users.roles(tokens.get(token, "/roles", follow="permits"))
    except Refused:
        return {}
