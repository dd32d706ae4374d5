"""What can be wrong with scheduling policies: rules and placement keys that no unit regards."""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ovirt_placement.answers.conflicts import sentence
from ovirt_placement.answers.doctor import RELOAD, FoundProblem, NotInUse, problem
from ovirt_placement.answers.rules import rules_check
from ovirt_placement.answers.setup import ADMISSION_UNITS, KEY_FILTER, KEY_WEIGHT, Units, twins
from ovirt_placement.answers.status import EnforcementRecord
from ovirt_placement.engine.clusters import PolicyUser, option_values
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineFault
from ovirt_placement.engine.policies import Entries, PolicyContent
from ovirt_placement.engine.topology import read_searches, read_snapshot
from ovirt_placement.inventory.on_demand import searches_of
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.names import counted
from ovirt_placement.model.record import CLUSTER, NODE, SERVER
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.placement_keys.hierarchy import NAME, PATTERN, find_mistakes
from ovirt_placement.rules.placement_keys.keys import read_settings


# -- What can be wrong with scheduling policies: rules that no unit looks at, and traps of the engine.
class InUse:
    """A policy that clusters use, by the names of the units that take effect in it."""

    def __init__(self, content: PolicyContent, units: Units) -> None:
        def named(entries: Entries, *, internal: bool) -> dict[str, int]:
            held = [(units[one], number) for one, number in entries.items() if one in units]
            return {unit.name: number for unit, number in held if unit.enabled and unit.internal is internal}

        self.name, self.locked = content.head.name, content.head.locked
        self.internal_filters = named(content.filters, internal=True).keys()
        self.our_filters = named(content.filters, internal=False).keys()
        #: Factors; a weight that is disabled is not there.
        self.internal_weights = named(content.weights, internal=True)
        self.our_weights = named(content.weights, internal=False)
        self.balances = content.balances
        #: Units of ours that stand in it, in effect or not.
        attached = [units[one] for one in units.ours(content.units)]
        self.attached = {unit.name for unit in attached}
        self.disabled = sorted(unit.name for unit in attached if not unit.enabled)
        #: The parameters that its units know.
        self.properties = units.properties(content.units).keys()
        #: Units that it holds twice, by the engine's mistake.
        self.repeated = [units.name_of(unit) for unit in content.repeated]


def examine_policy(policy: InUse) -> Iterator[FoundProblem]:
    setup = remedy(policy)
    # All policies have the others, of which `examine_units` says it.
    if disabled := [one for one in policy.disabled if one in UNITS and UNITS[one].on_request]:
        yield problem(
            "disabled_units",
            f"the engine has disabled {', '.join(disabled)} of the policy {policy.name}, and places VMs"
            f" without {'it' if len(disabled) == 1 else 'them'}",
            RELOAD,
        )
    for unit in policy.repeated:
        yield problem(
            "unit_held_twice",
            f"the engine has {unit} twice in the policy {policy.name}, and refuses every change of it",
            "restart ovirt-engine, which forgets the second",
        )
    if not policy.balances:
        yield problem(
            "no_balance",
            f"the policy {policy.name} has no balance: that stops the load balancing of all clusters",
            f"{setup}, or give it the balance None",
        )
    for own, internal in twins(UnitKind.FILTER).items():
        if own in policy.our_filters and internal not in policy.internal_filters:
            yield problem(
                "no_filter_alongside",
                f"the policy {policy.name} has {own} without the engine's filter {internal}:"
                " groups are moved VM by VM, and rules fall when the proxy is away",
                setup,
            )
    for own, internal in twins(UnitKind.WEIGHT).items():
        factor = policy.our_weights.get(own, 0)
        if factor > 0 and internal not in policy.internal_weights:
            yield problem(
                "no_weight_alongside",
                f"the policy {policy.name} has {own} without the engine's weight {internal}:"
                " of VMs that start at once ours can only guess where the others go, and rules fall when the"
                " proxy is away",
                f"{setup} --factor {own}={factor}",
            )
        elif factor > policy.internal_weights.get(internal, 0):
            yield problem(
                "weaker_weight_alongside",
                f"in the policy {policy.name} the engine's weight {internal} has the factor"
                f" {policy.internal_weights[internal]}, and {own} has {factor}: of VMs that start at once,"
                " what ours guesses outvotes what the engine knows",
                f"{setup} --factor {own}={factor}",
            )


def examine_properties(user: PolicyUser, policy: InUse) -> Iterator[FoundProblem]:
    """Look for parameters of a cluster that the engine will drop when the cluster is next changed."""
    unknown = sorted(user.properties.keys() - policy.properties)
    if unknown:
        yield problem(
            "unknown_parameters",
            f"cluster {user.name} has parameters that no unit of its policy {policy.name} knows:"
            f" {', '.join(unknown)}; the engine drops them when the cluster is next changed",
            "were they renamed? set the new ones by ovirt-placement setup --property",
            cluster=user,
        )


def examine_rules(snapshot: Snapshot, cluster: Cluster, policy: InUse) -> Iterator[FoundProblem]:
    """Look for rules of a cluster that have no effect: its policy lacks the unit, or has it with factor 0."""
    for rule in UNITS.values():
        asking = rule.asked_by(snapshot, cluster)
        if asking and not _takes_effect(rule, policy):
            lack, how = _lack(policy, rule, cluster)
            yield problem(
                "rule_means_nothing",
                f"cluster {cluster.name}: {asking} nothing when VMs are placed: {lack}",
                how,
                cluster=cluster,
                rule=True,
            )


def examine_admission(cluster: Cluster, policy: InUse) -> Iterator[FoundProblem]:
    units = [name for name in ADMISSION_UNITS.values() if name in policy.attached]
    if units and not cluster.ha_reservation:
        yield problem(
            "admission_without_reservation",
            f"cluster {cluster.name}: its policy {policy.name} has {' and '.join(units)}, which refuses"
            " nothing there: the cluster has no HA reservation",
            "enable HA reservation for the cluster, or take the unit out of the policy",
            cluster=cluster,
        )


def _takes_effect(rule: Rule, policy: InUse) -> bool:
    if rule.kind is UnitKind.FILTER:
        return rule.name in policy.our_filters or not policy.internal_filters.isdisjoint(rule.twins)
    own = policy.our_weights.get(rule.name, 0) > 0
    return own or any(policy.internal_weights.get(twin, 0) > 0 for twin in rule.twins)


def _lack(policy: InUse, rule: Rule, cluster: Cluster) -> tuple[str, str]:
    """What keeps a rule from taking effect, and what would repair it; setup resets no factor unasked."""
    setup = remedy(policy, cluster)
    if rule.name in policy.our_weights:
        factor = f"{setup} --factor {rule.name}={rule.usual_factor or 1}"
        return f"its policy {policy.name} has {rule.name} with factor 0", factor
    if rule.name in policy.disabled:
        return f"the engine has disabled {rule.name} of its policy {policy.name}", RELOAD
    if not rule.twins:
        return f"its policy {policy.name} lacks {rule.name}", setup
    twins = " or ".join(rule.twins)
    return f"its policy {policy.name} has neither {rule.name} nor the engine's {twins}", setup


def remedy(policy: InUse, cluster: Cluster | None = None) -> str:
    """Setup repairs it; the engine's own policies are locked, so it would take another for the cluster."""
    if policy.locked:
        return f"run ovirt-placement setup --cluster {shlex.quote(cluster.name) if cluster else 'CLUSTER'}"
    return f"run ovirt-placement setup --policy {shlex.quote(policy.name)}"


# -- What can be wrong with placement keys: units, parameters and factors that defeat them, a VM property.
_OPTION = "UserDefinedVMProperties"


def examine_keys(snapshot: Snapshot, cluster: Cluster, policy: InUse) -> Iterator[FoundProblem]:
    filters = KEY_FILTER in policy.our_filters
    weighs = policy.our_weights.get(KEY_WEIGHT, 0) > 0
    if not (filters and weighs) and _has_keys(snapshot, cluster):
        lacking = [u for u, on in ((KEY_FILTER, filters), (KEY_WEIGHT, weighs)) if not on]
        setup = f"{remedy(policy, cluster)} --placement-keys"
        if policy.our_weights.get(KEY_WEIGHT) == 0:
            setup += f" --factor {KEY_WEIGHT}={_LEADING}"
        yield problem(
            "keys_do_not_count",
            f"cluster {cluster.name}: not all of its placement keys count when VMs are placed: its"
            f" policy {policy.name} has no {' and no '.join(lacking)} in effect",
            RELOAD if set(lacking).issubset(policy.disabled) else setup,
            cluster=cluster,
            rule=True,
        )
    if filters or weighs:
        yield from _parameters(cluster, policy)
    if weighs:
        yield from _factor(snapshot, cluster, policy)


def examine_mistakes(snapshot: Snapshot) -> Iterator[FoundProblem]:
    if mistakes := find_mistakes(snapshot):
        yield problem(
            "mistaken_keys",
            f"{counted(len(mistakes), 'mistake')} in placement keys, which are ignored where they are wrong",
            "ovirt-placement keys check lists them",
        )


def examine_property(connection: EngineConnection, clusters: Sequence[Cluster]) -> Iterator[FoundProblem]:
    """Look whether users can set keys on their VMs, by engines of 4.3 and later, which report it."""
    try:
        declared = connection.read(f"/options/{_OPTION}", option_values)
    except EngineFault as fault:
        if fault.code == 404:
            return
        raise
    for version in sorted({cluster.compatibility for cluster in clusters} & declared.keys()):
        entries = [entry for entry in declared[version].split(";") if entry]
        others = [entry for entry in entries if not entry.startswith(f"{NAME}=")]
        own = [entry.partition("=")[2] for entry in entries if entry not in others]
        if own and own[0].removeprefix("^").removesuffix("$") in {PATTERN, f"({PATTERN})?"}:
            continue
        wanted = ";".join((*others, f"{NAME}={PATTERN}"))
        state = "is declared with another pattern than that of keys" if own else "is not declared"
        yield problem(
            "property_of_keys",
            f"the VM custom property {NAME} {state} for clusters of version {version}: users cannot set"
            " keys on their VMs, or set what is ignored",
            f"engine-config -s {_OPTION}='{wanted}' --cver={version}, then systemctl restart ovirt-engine",
        )


def _has_keys(snapshot: Snapshot, cluster: Cluster) -> bool:
    vms = [vm for vm in snapshot.vms if vm.cluster == cluster.id]
    objects = {
        CLUSTER: {cluster.id},
        NODE: {host.id for host in snapshot.hosts_of_cluster.get(cluster.id, ())},
        SERVER: {vm.id for vm in vms},
    }
    stored = any(key.resource in objects.get(key.level, ()) for key in snapshot.placement_keys)
    return stored or any(vm.custom_properties.get(NAME) for vm in vms)


def _parameters(cluster: Cluster, policy: InUse) -> Iterator[FoundProblem]:
    setup = f"{remedy(policy, cluster)} --cluster {shlex.quote(cluster.name)} --property"
    try:
        settings = read_settings(cluster.scheduling_properties)
    except ValueError as error:
        yield problem(
            "mistaken_parameters",
            f"cluster {cluster.name}: the parameters of placement keys cannot be together, and the"
            f" defaults count: {error}",
            f"{setup} KEY=VALUE (docs/rules.md lists them)",
            cluster=cluster,
        )
        return
    if settings.refuses_keyless_vms:
        yield problem(
            "keyless_vms_refused",
            f"cluster {cluster.name}: placement_final is {float(settings.final):g}, and VMs without"
            " placement keys find no host: they score 0, which is not above it",
            f"{setup} placement_final=-10",
            cluster=cluster,
        )


#: A weight that usually has such a factor is meant to count before others.
_LEADING = 100_000


def _factor(snapshot: Snapshot, cluster: Cluster, policy: InUse) -> Iterator[FoundProblem]:
    """All weights together, but those meant to count first, must not outweigh one rank by keys."""
    factor = policy.our_weights[KEY_WEIGHT]
    modest = (
        weight
        for name, weight in policy.our_weights.items()
        if name not in UNITS or (UNITS[name].usual_factor or 0) < _LEADING
    )
    others = sum(policy.internal_weights.values()) + sum(modest)
    hosts = len(snapshot.hosts_of_cluster.get(cluster.id, ()))
    needed = others * max(0, hosts - 1)
    if factor <= needed:
        yield problem(
            "keys_outvoted",
            f"cluster {cluster.name}: the other weights of its policy {policy.name} can outvote"
            f" placement keys: {KEY_WEIGHT} has the factor {factor}, and with {counted(hosts, 'host')}"
            f" it takes {needed + 1}",
            f"{remedy(policy, cluster)} --factor {KEY_WEIGHT}={needed + 1}",
            cluster=cluster,
        )


# -- Examines placement rules: not in force, about what is not there, or not to be satisfied with all others.
def examine_placement_rules(connection: EngineConnection, snapshot: Snapshot) -> Iterator[FoundProblem]:
    """A finding for each mistake; tags are read, and searches asked, where a rule goes by them."""
    rules = snapshot.placement_rules
    if any(rule.names_vm_tags or rule.names_host_tags for rule in rules):
        snapshot = replace(read_snapshot(connection, devices=True), placement_rules=rules)
    snapshot = replace(snapshot, member_searches=read_searches(connection, searches_of(rules)))
    check = rules_check(snapshot, together=True)
    for one in check.problems:
        yield problem(
            "placement_rule_mistaken",
            f"{one.rule.title}: {one.sentence}",
            f'ovirt-placement rules edit "{one.rule.name}", or what it names in the engine',
        )
    for each in check.contradictions:
        yield problem(
            "placement_rules_contradict",
            sentence(each, whole=False),
            "change or remove one of them: ovirt-placement rules edit",
        )


# -- Parts of the product that are not at work here: nothing is wrong with them, and nothing comes of them.
def unused_units(snapshot: Snapshot, policy_of: Mapping[str, InUse]) -> Iterator[NotInUse]:
    """Clusters whose scheduling policy has none of our units; `policy_of` is by cluster."""
    without = [
        cluster.name
        for cluster in snapshot.clusters
        if cluster.id not in policy_of or not policy_of[cluster.id].attached
    ]
    if without:
        what = (
            "no cluster's scheduling policy has our units: VMs start by the engine's rules alone"
            if len(without) == len(snapshot.clusters)
            else f"the scheduling policies of these clusters have none of our units: {', '.join(without)}"
        )
        yield NotInUse(f"{what} (ovirt-placement setup --cluster CLUSTER)")


def examine_enforcer(found: EnforcementRecord, unit: str) -> Iterator[FoundProblem | NotInUse]:
    """One that fails, does not run, or not as configured, or migrates nothing; of a store that answers."""
    if found.error is not None or (found.leader is None and found.unwritable is not None):
        return
    if found.leader is not None and found.last_cycle is not None and found.last_cycle.error is not None:
        yield problem(
            "enforcer_fails",
            f"the last cycle of ovirt-enforcer failed: {found.last_cycle.error}",
            f"journalctl -u {unit} shows since when",
        )
    if found.leader is None:
        yield NotInUse(
            "no enforcer runs: violated rules are not repaired, and HA reservations not watched"
            f" (systemctl enable --now {unit})"
        )
    elif not found.acts:
        yield NotInUse(
            "ovirt-enforcer is in observe mode: it reports, and migrates nothing ([enforcer] mode)"
        )
    if found.configured_mode not in {None, found.mode}:
        yield NotInUse(
            f"[enforcer] mode {found.configured_mode}: the enforcer that leads was started with {found.mode}"
            f" (systemctl restart {unit})"
        )
    yield from (NotInUse(f"migrations are paused: {sentence}") for sentence in found.paused)
