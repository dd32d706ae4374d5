"""What can be wrong with placement keys: units, parameters and factors that defeat them, a VM property."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.answers.doctor.finding import Finding
from ovirt_placement.answers.doctor.policies import InUse, remedy
from ovirt_placement.answers.setup.default_keys import DEFAULT_WEIGHTS, weighing
from ovirt_placement.engine.connection.client import EngineConnection, EngineFault
from ovirt_placement.engine.parsing import options
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.amounts import counted
from ovirt_placement.model.key_levels import CLUSTER, NODE, SERVER
from ovirt_placement.model.names import Named
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.placement_keys.mistakes import find_mistakes
from ovirt_placement.rules.placement_keys.parameters import read_settings
from ovirt_placement.rules.placement_keys.property import NAME, PATTERN
from ovirt_placement.store.default_keys import DefaultKeys

_OPTION = "UserDefinedVMProperties"


def examine_keys(snapshot: Snapshot, cluster: Cluster, policy: InUse) -> Iterator[Finding]:
    """Look at what the policy of a cluster makes of placement keys."""
    filters = ours.KEY_FILTER in policy.our_filters
    weighs = policy.our_weights.get(ours.KEY_WEIGHT, 0) > 0
    if not (filters and weighs) and _has_keys(snapshot, cluster):
        lacking = [
            unit for unit, enabled in ((ours.KEY_FILTER, filters), (ours.KEY_WEIGHT, weighs)) if not enabled
        ]
        yield Finding(
            kind="keys_do_not_count",
            what=f"cluster {cluster.name}: not all of its placement keys count when VMs are placed: its"
            f" policy {policy.name} has no {' and no '.join(lacking)} in effect",
            remedy=f"{remedy(policy, cluster)} --placement-keys",
            cluster=Named(cluster.id, cluster.name),
            rule=True,
        )
    if filters or weighs:
        yield from _parameters(cluster)
    if weighs:
        yield from _factor(snapshot, cluster, policy)


def examine_mistakes(snapshot: Snapshot) -> Iterator[Finding]:
    """Look for keys that are ignored, in all clusters."""
    if mistakes := find_mistakes(snapshot):
        yield Finding(
            kind="mistaken_keys",
            what=f"{len(mistakes)} {'mistake' if len(mistakes) == 1 else 'mistakes'} in placement keys, which"
            " are ignored where they are wrong",
            remedy="ovirt-placement keys check lists them",
        )


def examine_property(connection: EngineConnection, clusters: Sequence[Cluster]) -> Iterator[Finding]:
    """Look whether users can set keys on their VMs, where the policies of these clusters weigh keys.

    Raises what `EngineConnection.get` raises; engines before 4.3 do not report it.
    """
    try:
        declared = options.by_version(connection.get(f"/options/{_OPTION}"))
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
        yield Finding(
            kind="property_of_keys",
            what=f"the VM custom property {NAME} {state} for clusters of version {version}: users cannot set"
            " keys on their VMs, or set what is ignored",
            remedy=f"engine-config -s {_OPTION}='{wanted}' --cver={version}, then systemctl restart"
            " ovirt-engine",
        )


def without_special_keys(
    snapshot: Snapshot, policy_of: Mapping[str, InUse], there: DefaultKeys
) -> Iterator[str]:
    """Clusters whose policies weigh keys, and which nobody has given special keys; policies by cluster."""
    settled = weighing(there)
    for cluster in snapshot.clusters:
        policy = policy_of.get(cluster.id)
        if policy is not None and weighs_by_keys(policy) and cluster.id not in settled:
            weights = ", ".join(f"{name} ({weight:g})" for name, weight in DEFAULT_WEIGHTS.items())
            yield (
                f"cluster {cluster.name} places by keys, and has no special keys: to give it {weights},"
                f" {remedy(policy, cluster)} --placement-keys"
            )


def weighs_by_keys(policy: InUse) -> bool:
    return policy.our_weights.get(ours.KEY_WEIGHT, 0) > 0


def _has_keys(snapshot: Snapshot, cluster: Cluster) -> bool:
    """Whether there are keys on the cluster, its hosts or its VMs, by whomever."""
    vms = [vm for vm in snapshot.vms if vm.cluster == cluster.id]
    objects = {
        CLUSTER: {cluster.id},
        NODE: {host.id for host in snapshot.hosts_of_cluster.get(cluster.id, ())},
        SERVER: {vm.id for vm in vms},
    }
    stored = any(key.resource in objects.get(key.level, ()) for key in snapshot.placement_keys)
    return stored or any(vm.custom_properties.get(NAME) for vm in vms)


def _parameters(cluster: Cluster) -> Iterator[Finding]:
    try:
        settings = read_settings(cluster.scheduling_properties)
    except ValueError as error:
        yield Finding(
            kind="mistaken_parameters",
            what=f"cluster {cluster.name}: the parameters of placement keys cannot be together, and the"
            f" defaults count: {error}",
            remedy="correct them by ovirt-placement setup --property (docs/rules.md lists them)",
            cluster=Named(cluster.id, cluster.name),
        )
        return
    if settings.refuses_keyless_vms:
        yield Finding(
            kind="keyless_vms_refused",
            what=f"cluster {cluster.name}: placement_final is {float(settings.final):g}, and VMs without"
            " placement keys find no host: they score 0, which is not above it",
            remedy="ovirt-placement setup --property placement_final=-10",
            cluster=Named(cluster.id, cluster.name),
        )


#: A weight that usually has such a factor is meant to count before others.
_LEADING = 100_000


def _factor(snapshot: Snapshot, cluster: Cluster, policy: InUse) -> Iterator[Finding]:
    """The worst rank that all other weights can give together must not outweigh one rank by keys.

    Those that are meant to count before others are left out.
    """
    factor = policy.our_weights[ours.KEY_WEIGHT]
    modest = (
        weight
        for name, weight in policy.our_weights.items()
        if name not in UNITS or (UNITS[name].usual_factor or 0) < _LEADING
    )
    others = sum(policy.internal_weights.values()) + sum(modest)
    hosts = len(snapshot.hosts_of_cluster.get(cluster.id, ()))
    needed = others * max(0, hosts - 1)
    if factor <= needed:
        yield Finding(
            kind="keys_outvoted",
            what=f"cluster {cluster.name}: the other weights of its policy {policy.name} can outvote"
            f" placement keys: {ours.KEY_WEIGHT} has the factor {factor}, and with {counted(hosts, 'host')}"
            f" it takes {needed + 1}",
            remedy=f"{remedy(policy, cluster)} --factor {ours.KEY_WEIGHT}={needed + 1}",
            cluster=Named(cluster.id, cluster.name),
        )
