"""What the engine has before setup, what is remembered of it, which policies setup works on; its undoing."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from ovirt_placement.answers import setup
from ovirt_placement.engine import policies
from ovirt_placement.engine.clusters import PolicyUser
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.policies import PolicyContent, PolicyHead, PolicyRequest
from ovirt_placement.model.names import counted
from ovirt_placement.rules.elements.rule import UnitKind
from ovirt_service.errors import UserError

# -- What was before setup, remembered in the description of the policy: the engine keeps it, all can see it.
#: The description of a policy that we made; of another's policy we change no more than we must.
_MADE = "As the policy {origin}, with the units of ovirt-placement"
_ORIGIN = re.compile(re.escape(_MADE).replace(r"\{origin\}", "(.+?)"))

_OPENING, _CLOSING = "[before ovirt-placement: ", "]"
#: As long as the engine lets a description be.
_LONGEST = 4000


class FormerUnits(msgspec.Struct, frozen=True, omit_defaults=True):
    """What of another's policy may be otherwise after setup."""

    #: Of the engine's units that ours stand next to, those that it had, by name.
    filters: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    #: Factors of these weights that setup has changed since.
    factors: dict[str, int] = {}
    #: The name of the balance that ours took the place of.
    balance: str | None = None
    #: Those that no unit of it knows any more.
    properties: dict[str, str] = {}


class FormerCluster(msgspec.Struct, frozen=True, omit_defaults=True):
    """The policy that a cluster had, by id, and its properties that no unit of the new one knows."""

    policy: str | None = None
    properties: dict[str, str] = {}


class Former(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was before setup, as far as it is remembered."""

    #: None of a policy that we made, or that had our units before anything was remembered.
    units: FormerUnits | None = None
    #: By id; of a policy that we made, only those that did not come from the policy that it is like.
    clusters: dict[str, FormerCluster] = {}
    #: Parameters of the policy that are not there until a weight whose factor changes is back.
    away: dict[str, str] = {}


NOTHING = Former()


def made_like(origin: str) -> str:
    """The description of a policy that we make like one of the engine's own."""
    return _MADE.format(origin=origin)


def origin_of(description: str) -> str | None:
    """The name of the policy that we made this one like; None if we did not make it."""
    found = _ORIGIN.match(description)
    return None if found is None else found[1]


def remembered(description: str) -> Former:
    """What a description remembers; nothing, if it was made unreadable."""
    _, opening, text = description.rpartition(_OPENING)
    if not opening:
        return NOTHING
    try:
        return msgspec.json.decode(text.removesuffix(_CLOSING), type=Former)
    except msgspec.DecodeError:
        return NOTHING


def forgotten(description: str) -> str:
    """The description without what it remembers, as it was."""
    if remembered(description) == NOTHING:
        return description
    return description.rpartition(_OPENING)[0].removesuffix(" ")


def with_former(description: str, former: Former) -> str:
    """The description with what it is to remember. Raises `UserError` if the engine has no room for it."""
    own = forgotten(description)
    if former == NOTHING:
        return own
    text = f"{_OPENING}{msgspec.json.encode(former).decode()}{_CLOSING}"
    found = f"{own} {text}" if own else text
    if len(found) > _LONGEST:
        raise UserError(
            "the description of the policy has no room to remember what"
            f" {counted(len(former.clusters), 'cluster')} had before:"
            " give some of them another policy by --policy"
        )
    return found


def with_returned(policy: PolicyContent) -> PolicyContent:
    """The policy with the parameters that an interrupted run has put aside."""
    return setup.with_properties(
        policy, {**remembered(policy.head.description).away, **policy.head.properties}
    )


# -- What the engine has.
#: The engine's policy that ours is made like if it is made like no other.
BASE = "none"
BASE_ID = "b4ed2332-a7ac-4d5f-9596-99a439cb2812"
#: The policy that setup makes if it is asked for no other. A copy of another than `none` adds its name.
DEFAULT = "ovirt-placement"
#: A cluster has one of these while it is upgraded, and gets back what it had before: not ours to change.
_UPGRADING = frozenset({"7677771e-5eab-422e-83fa-dc04080d21b7", "8d5d7bec-68de-4a67-b53e-0ac54686d586"})


@dataclass(frozen=True)
class Overview:
    """All policies of the engine without their units, the clusters that use them, and all units."""

    units: setup.Units
    heads: tuple[PolicyHead, ...]
    users: tuple[PolicyUser, ...]

    def named(self, name: str) -> PolicyHead | None:
        return next((head for head in self.heads if head.name == name), None)


def read_overview(connection: EngineConnection) -> Overview:
    """Read all policies and who uses them. Raises what `EngineConnection.get` raises, as all here do."""
    units = setup.Units(policies.read_units(connection))
    return Overview(units, policies.read_heads(connection), policies.read_users(connection))


def read_policy(connection: EngineConnection, overview: Overview, name: str) -> PolicyContent | None:
    """Read a policy with its units; None if the engine has none of the name."""
    head = overview.named(name)
    return None if head is None else policies.read_content(connection, head)


# -- Which policy each cluster had before setup gave it another, and the requests that give it back.
def restore_policies(
    overview: Overview, head: PolicyHead, going: frozenset[str], *, all_users: bool
) -> Iterator[tuple[PolicyUser, PolicyRequest]]:
    """Give its clusters, or those that it remembers, what they had; each with its policy by then."""
    heads, former = {one.id: one for one in overview.heads}, remembered(head.description).clusters
    for user in overview.users:
        if user.policy != head.id or not (all_users or user.id in former):
            continue
        # Of policies that go, what it had before them.
        passed, before = set[str](), head
        while before.id not in passed and (before is head or before.id in going):
            passed.add(before.id)
            entry = remembered(before.description).clusters.get(user.id, FormerCluster())
            before = heads.get(entry.policy or "") or _origin(overview, before)
        if before.id in passed:
            before = _origin(overview, before)
        what = f"let the cluster {user.name} use the policy {before.name} again"
        request = setup.assign(user, before.id, former.get(user.id, FormerCluster()).properties, what)
        yield replace(user, policy=before.id), request


def _origin(overview: Overview, head: PolicyHead) -> PolicyHead:
    """The policy that this one was made like: the engine's own, which always stay."""
    name = origin_of(head.description) or BASE
    found = overview.named(name)
    if found is None:
        raise UserError(f"the engine has no policy {name} any more to give the clusters of {head.name}")
    return found


# -- Which policies setup works on when it is asked for all: those that clusters use, or that it has changed.
@dataclass(frozen=True)
class Target:
    """A policy that is to have our units, and the clusters that are to use it from now on."""

    policy: str
    clusters: tuple[PolicyUser, ...] = ()
    #: The engine's policy that it is made like, if it must be made.
    origin: str = BASE


def targets(overview: Overview, *, for_users: bool) -> tuple[Target, ...]:
    """Every policy that some cluster uses; in place of one that is locked, a copy of it.

    With `for_users`, clusters are named that use theirs already: they are to have its parameters. Raises
    `UserError` if the name of a copy is taken.
    """
    users: defaultdict[str, list[PolicyUser]] = defaultdict(list)
    for user in overview.users:
        if user.policy is not None and user.policy not in _UPGRADING:
            users[user.policy].append(user)
    named = {
        head.name: Target(head.name, tuple(users[head.id]) if for_users else ())
        for head in overview.heads
        if head.id in users and not head.locked
    }
    for head in overview.heads:
        if head.id in users and head.locked:
            copy = _copy(overview, head)
            clusters = (*named.get(copy, Target(copy)).clusters, *users[head.id])
            named[copy] = Target(copy, clusters, head.name)
    return tuple(named.values())


def upgrading(overview: Overview) -> tuple[str, ...]:
    """The names of clusters that are left alone."""
    return tuple(user.name for user in overview.users if user.policy in _UPGRADING)


def changed(connection: EngineConnection, overview: Overview) -> Iterator[PolicyHead]:
    """The policies in which setup has left a trace, each after those that remember it of their clusters."""
    left = [head for head in overview.heads if not head.locked]
    while left:
        before = {one.policy for head in left for one in remembered(head.description).clusters.values()}
        head = next((one for one in left if one.id not in before), left[0])
        left.remove(head)
        if (
            origin_of(head.description) is not None
            or remembered(head.description) != NOTHING
            or overview.units.ours(policies.read_content(connection, head).units)
        ):
            yield head


def _copy(overview: Overview, head: PolicyHead) -> str:
    """The name of the copy of a locked policy: one that is there, or a new one's."""
    usual = DEFAULT if head.name == BASE else f"{DEFAULT}-{head.name}"
    copies = [one.name for one in overview.heads if origin_of(one.description) == head.name]
    if copies:
        return usual if usual in copies else copies[0]
    if overview.named(usual) is not None:
        raise UserError(
            f"setup would name its copy of {head.name} {usual}, but another policy has that name: rename it"
        )
    return usual


# -- The requests that take our units out of a policy again, and give clusters back what they had.
#: The engine's balance that does nothing. A policy without any stops the load balancing of all clusters.
_NO_BALANCE = "None"

_UNKNOWN = (
    "it is not recorded which of the engine's units the policy had before ours: those next to ours stay,"
    " and the balance is None"
)
_REMEMBERING = "remember in the policy's description the properties that go meanwhile"
_FORGETTING = "forget in the policy's description what was before"


def undo(overview: Overview, policy: PolicyContent, going: frozenset[str] = frozenset()) -> setup.SetupPlan:
    """In order; `going` go in the same run. Raises `UserError` for what the engine would refuse."""
    head, units = policy.head, overview.units
    if origin_of(head.description) is not None:
        returned = restore_policies(overview, head, going | {head.id}, all_users=True)
        return setup.SetupPlan((*(request for _, request in returned), setup.remove(policy)))
    former = remembered(head.description)
    own = units.ours(policy.units)
    if not own and former == NOTHING:
        return setup.SetupPlan(after=policy)
    setup.check_unspoilt(units, policy)
    after = _without_ours(units, with_returned(policy), own, former.units)
    away = setup.parameters_away(units, policy, after)
    meanwhile = head.description
    if away:
        meanwhile = with_former(meanwhile, msgspec.structs.replace(former, away={**former.away, **away}))
    restored = tuple(restore_policies(overview, head, going, all_users=False))
    # The engine drops parameters that no unit knows at any change of a cluster; clusters
    # that get another policy are changed by that.
    unknown = units.properties(policy.units).keys() - units.properties(after.units)
    dropping = [
        (user, sorted(names))
        for user in overview.users
        if (names := unknown & user.properties.keys())
        and user.policy == head.id
        and user.id not in former.clusters
    ]
    description = forgotten(head.description)
    requests = (
        *(request for _, request in restored),
        *setup.describe(policy, meanwhile, _REMEMBERING),
        *setup.lead_to(units, policy, after),
        *(
            setup.assign(
                user, head.id, {}, f"let the cluster {user.name} drop the parameters {', '.join(names)}"
            )
            for user, names in dropping
        ),
        # At last: until then an interrupted run must know what to do.
        *setup.describe(policy, description, _FORGETTING, meanwhile),
    )
    return setup.SetupPlan(
        requests,
        (_UNKNOWN,) if own and former.units is None else (),
        after=replace(after, head=replace(after.head, description=description)),
        users=(
            *(user for user, _ in restored),
            *(
                replace(user, properties={n: v for n, v in user.properties.items() if n not in names})
                for user, names in dropping
            ),
        ),
    )


def _without_ours(
    units: setup.Units, policy: PolicyContent, own: set[str], former: FormerUnits | None
) -> PolicyContent:
    """The policy with what it had; where that is not known, the engine's units next to ours stay."""
    gone, back = set(own), dict[str, int]()
    if former is not None:
        for name in {*setup.twins(UnitKind.FILTER).values()}.difference(former.filters):
            gone.add(units.id_of(UnitKind.FILTER, name, internal=True) or "")
        for unit in units.weight_twins().values():
            if units[unit].name not in former.weights:
                gone.add(unit)
            elif units[unit].name in former.factors:
                back[unit] = former.factors[units[unit].name]
    before = former or FormerUnits()
    balances = policy.balances
    if own.intersection(balances):
        known = (before.balance or _NO_BALANCE, _NO_BALANCE)
        found = (units.id_of(UnitKind.BALANCE, name, internal=True) for name in known)
        balance = next((unit for unit in found if unit is not None), None)
        balances = balances if balance is None else {balance: 1}
    after = PolicyContent(
        policy.head,
        setup.left_of(policy.filters, gone),
        setup.left_of({**back, **policy.weights, **back}, gone),
        balances,
    )
    properties = {**before.properties, **policy.head.properties}
    known_now = units.properties(after.units)
    return setup.with_properties(
        after, {name: value for name, value in properties.items() if name in known_now}
    )
