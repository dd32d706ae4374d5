"""What was before setup and is remembered of it, which policies setup works on, and its undoing."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

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
    #: Factors that setup has changed since, of any weight but ours; None of one that `--factor` added.
    factors: dict[str, int | None] = {}
    #: The name of the balance that ours took the place of.
    balance: str | None = None
    #: Those that have another value since, or that no unit of it knows; None of one that it had not.
    properties: dict[str, str | None] = {}


class FormerCluster(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a cluster had before it used a policy, or before it got other properties in it."""

    #: By id; None if it had this one, or what this one is made like.
    policy: str | None = None
    #: Those that it has no more, or with another value.
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


#: The policy that setup makes if it is asked for no other. A copy of another than `none` adds its name.
DEFAULT = "ovirt-placement"
#: A cluster has one of these while it is upgraded, and gets back what it had before: not ours to change.
_UPGRADING = frozenset({"7677771e-5eab-422e-83fa-dc04080d21b7", "8d5d7bec-68de-4a67-b53e-0ac54686d586"})


# -- Which policy each cluster had before setup gave it another, and the requests that give it back.
def restore_policies(
    overview: setup.Overview, head: PolicyHead, *, all_users: bool
) -> Iterator[tuple[PolicyUser, PolicyRequest]]:
    """Give its clusters, or those that it remembers, what they had; each with its policy by then."""
    heads, former = {one.id: one for one in overview.heads}, remembered(head.description).clusters
    for user in overview.users:
        entry = former.get(user.id, FormerCluster())
        if user.policy == head.id and (all_users or entry.policy):
            before = heads.get(entry.policy or "", head)
            if before is head:
                before = _origin(overview, head)
            what = f"let the cluster {user.name} use the policy {before.name} again"
            request = setup.assign(user, before.id, entry.properties, what)
            yield replace(user, policy=before.id), request


def properties_since(overview: setup.Overview, user: PolicyUser, policy: str) -> dict[str, str] | None:
    """What setup has changed since the cluster had this policy, as it was; None if it came from elsewhere."""
    heads = {one.id: one for one in overview.heads}
    at, passed, properties = user.policy, set[str](), dict[str, str]()
    while at != policy:
        if at is None or at not in heads or at in passed:
            return None
        passed.add(at)
        entry = remembered(heads[at].description).clusters.get(user.id, FormerCluster())
        properties |= entry.properties
        at = entry.policy
    return properties


def _hand_on(overview: setup.Overview, head: PolicyHead) -> Iterator[tuple[PolicyHead, PolicyRequest]]:
    """Let policies whose clusters had this one, which forgets it, remember what they had before it."""
    before = remembered(head.description).clusters
    stays = origin_of(head.description) is None
    for other in overview.heads:
        former = remembered(other.description)
        clusters = dict(former.clusters)
        for cluster, entry in former.clusters.items():
            if entry.policy == head.id:
                older = before.get(cluster, FormerCluster())
                properties = entry.properties | older.properties
                policy = older.policy or (head if stays else _origin(overview, head)).id
                clusters[cluster] = FormerCluster(policy, properties)
        description = with_former(other.description, msgspec.structs.replace(former, clusters=clusters))
        what = f"remember in the description of {other.name} what clusters had before {head.name}"
        for request in setup.describe(PolicyContent(other, {}, {}, {}), description, what):
            yield replace(other, description=description), request


def _staying(
    overview: setup.Overview, policy: PolicyContent, after: PolicyContent
) -> Iterator[tuple[PolicyUser, PolicyRequest]]:
    """What becomes of clusters that keep a policy without our units; each with its properties by then.

    The engine drops parameters that no unit knows at any change of a cluster; clusters that get another
    policy are changed by that.
    """
    units, former = overview.units, remembered(policy.head.description).clusters
    known = units.properties(after.units)
    # Also where an interrupted run has taken our units out already.
    unknown = units.properties({*policy.units, *units.ours(units)}).keys() - known.keys()
    for user in overview.users:
        entry = former.get(user.id, FormerCluster())
        if user.policy != policy.head.id or entry.policy:
            continue
        back = {n: v for n, v in entry.properties.items() if n in known and user.properties.get(n) != v}
        gone = sorted(user.properties.keys() & unknown)
        what = [f"drop the parameters {', '.join(gone)}"] if gone else []
        what += [f"have the parameter {name}={value} again" for name, value in back.items()]
        if what:
            merged = {**after.head.properties, **user.properties, **back}
            by_then = replace(user, properties={n: v for n, v in merged.items() if n in known})
            sentence = f"let the cluster {user.name} {' and '.join(what)}"
            yield by_then, setup.assign(user, policy.head.id, back, sentence)


def _origin(overview: setup.Overview, head: PolicyHead) -> PolicyHead:
    """The policy that this one was made like: the engine's own, which always stay."""
    name = origin_of(head.description) or setup.BASE
    found = overview.named(name)
    if found is None:
        raise UserError(f"the engine has no policy {name} any more to give the clusters of {head.name}")
    return found


# -- Which policies setup works on when it is asked for all: those that clusters use, or that it has changed.
def targets(overview: setup.Overview, asked: setup.Target) -> tuple[setup.Target, ...]:
    """Every policy that some cluster uses; in place of one that is locked, a copy of it.

    If properties are asked for, clusters are named that use theirs already: they are to have these. Raises
    `UserError` if the name of a copy is taken.
    """
    users: defaultdict[str, list[str]] = defaultdict(list)
    for user in overview.users:
        if user.policy is not None and user.policy not in _UPGRADING:
            users[user.policy].append(user.id)
    named = {
        head.name: replace(asked, policy=head.name, clusters=users[head.id] if asked.properties else ())
        for head in overview.heads
        if head.id in users and not head.locked
    }
    for head in overview.heads:
        if head.id in users and head.locked:
            copy = _copy(overview, head)
            clusters = (*named.get(copy, asked).clusters, *users[head.id])
            named[copy] = replace(asked, policy=copy, clusters=clusters, origin=head.name)
    return tuple(named.values())


def upgrading(overview: setup.Overview) -> tuple[str, ...]:
    """The names of clusters that are left alone."""
    return tuple(user.name for user in overview.users if user.policy in _UPGRADING)


def changed(connection: EngineConnection, overview: setup.Overview) -> Iterator[PolicyHead]:
    """The policies in which setup has left a trace, each after those that it remembers of its clusters.

    Where a cluster returns to, all its properties are known again by then.
    """
    left = {head.id: head for head in overview.heads if not head.locked}
    while left:
        before = {i: {one.policy for one in remembered(left[i].description).clusters.values()} for i in left}
        head = left.pop(next((one for one in left if not before[one] & left.keys()), next(iter(left))))
        if (
            origin_of(head.description) is not None
            or remembered(head.description) != NOTHING
            or overview.units.ours(policies.read_content(connection, head).units)
        ):
            yield head


def _copy(overview: setup.Overview, head: PolicyHead) -> str:
    """The name of the copy of a locked policy: one that is there, or a new one's."""
    usual = DEFAULT if head.name == setup.BASE else f"{DEFAULT}-{head.name}"
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


def undo(overview: setup.Overview, policy: PolicyContent) -> setup.SetupPlan:
    """In order. Raises `UserError` for what the engine would refuse."""
    head, units = policy.head, overview.units
    handed_on = tuple(_hand_on(overview, head))
    handing = tuple(request for _, request in handed_on)
    others = tuple(other for other, _ in handed_on)
    if origin_of(head.description) is not None:
        returned = tuple(restore_policies(overview, head, all_users=True))
        return setup.SetupPlan(
            (*handing, *(request for _, request in returned), setup.remove(policy)),
            users=tuple(user for user, _ in returned),
            others=others,
        )
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
    restored = tuple(restore_policies(overview, head, all_users=False))
    staying = tuple(_staying(overview, policy, after))
    description = forgotten(head.description)
    requests = (
        *handing,
        *(request for _, request in restored),
        *setup.describe(policy, meanwhile, _REMEMBERING),
        *setup.lead_to(units, policy, after),
        *(request for _, request in staying),
        # At last: until then an interrupted run must know what to do.
        *setup.describe(policy, description, _FORGETTING, meanwhile),
    )
    return setup.SetupPlan(
        requests,
        (_UNKNOWN,) if own and former.units is None else (),
        after=replace(after, head=replace(after.head, description=description)),
        users=tuple(user for user, _ in (*restored, *staying)),
        others=others,
    )


def _without_ours(
    units: setup.Units, policy: PolicyContent, own: set[str], former: FormerUnits | None
) -> PolicyContent:
    """The policy with what it had; where that is not known, the engine's units next to ours stay."""
    gone, back = set(own), dict[str, int]()
    before = former or FormerUnits()
    if former is not None:
        for name in {*setup.twins(UnitKind.FILTER).values()}.difference(former.filters):
            gone.add(units.id_of(UnitKind.FILTER, name, internal=True) or "")
        gone.update(unit for unit in units.weight_twins().values() if units[unit].name not in former.weights)
    for name, factor in before.factors.items():
        found = (units.id_of(UnitKind.WEIGHT, name, internal=internal) for internal in (True, False))
        unit = next((one for one in found if one is not None), "")
        if factor is None:
            gone.add(unit)
        elif unit and unit not in gone:
            back[unit] = factor
    balances = policy.balances
    if own.intersection(balances):
        known = (before.balance or _NO_BALANCE, _NO_BALANCE)
        balance_ids = (units.id_of(UnitKind.BALANCE, name, internal=True) for name in known)
        balance = next((unit for unit in balance_ids if unit is not None), None)
        balances = balances if balance is None else {balance: 1}
    after = PolicyContent(
        policy.head,
        setup.left_of(policy.filters, gone),
        setup.left_of({**back, **policy.weights, **back}, gone),
        balances,
    )
    properties = {**policy.head.properties, **before.properties}
    known_now = units.properties(after.units)
    return setup.with_properties(
        after, {name: value for name, value in properties.items() if name in known_now and value is not None}
    )
