"""The steps of a trial: each does what an administrator does, and says what came of it."""

import json
import time
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from typing import Any

import ovirtsdk4
from ovirtsdk4 import types

from ovirt_placement.answers.setup import usual_units
from ovirt_placement.engine.connection.failures import EngineFault
from ovirt_placement.engine.events import add_event, read_events
from ovirt_placement.engine.policies import read_units
from ovirt_placement.engine.topology import read_snapshot
from tools.acceptance.trial import ENFORCER, PLACEMENT, Failed, Skipped, Trial

_VM_BYTES = 256 << 20
KINDS = {
    "reader": "with the role ReadOnlyAdmin",
    "owner": "with a role on a VM alone",
    "nobody": "without a role",
}
#: What each kind of user is answered who asks for violations, and who adds a group.
_MAY_NOT = {"reader": "may not change affinity groups", "owner": "ReadOnlyAdmin", "nobody": "ReadOnlyAdmin"}

Step = Callable[["Trial"], str]


def log_in(trial: Trial) -> str:
    trial.connection.get("")
    return f"as {trial.options.user}"


def read_state(trial: Trial) -> str:
    snapshot = read_snapshot(trial.connection)
    held = json.loads(trial.succeed("snapshot"))
    if {vm["id"] for vm in held["vms"]} - {vm.id for vm in snapshot.vms}:
        raise Failed("two readings show other VMs")
    with trial.system() as system:
        policies = system.scheduling_policies_service().list()
    named = (*snapshot.vms, *snapshot.clusters, *snapshot.affinity_groups, *policies)
    if present := sorted(one.name for one in named if one.name.startswith(trial.prefix)):
        raise Failed(f"there are {', '.join(present)} already: remove them, or give another --prefix")
    clusters = {cluster.name: cluster for cluster in snapshot.clusters}
    up = [host for host in snapshot.hosts if host.up]
    wanted = trial.options.cluster or next((snapshot.cluster_by_id[host.cluster].name for host in up), "")
    if wanted not in clusters:
        raise Failed(f"there is no cluster {wanted}" if wanted else "no host is up")
    trial.cluster = wanted
    return f"{len(snapshot.hosts)} hosts, {len(snapshot.vms)} VMs; cluster {wanted} is used"


def discovery(trial: Trial) -> str:
    known = {unit.name: unit for unit in read_units(trial.connection).values() if not unit.internal}
    ours = [rule.name for rule in usual_units()]
    if not known.keys() & set(ours):
        raise Skipped("the engine knows none of our policy units: it has not asked a proxy of ours")
    if disabled := [name for name in ours if name in known and not known[name].enabled]:
        raise Failed(f"the engine has disabled {', '.join(disabled)}")
    return f"{len(known.keys() & set(ours))} units, all enabled"


def set_up(trial: Trial) -> str:
    """And undo it: on a cluster of our own, without hosts, and a policy of our own."""
    discovery(trial)
    name, policy = f"{trial.prefix}cluster", f"{trial.prefix}policy"
    clusters = read_snapshot(trial.connection).clusters
    like = next(cluster for cluster in clusters if cluster.name == trial.cluster)
    trial.undo.append((f"policy {policy}", lambda: _remove_named(trial, "scheduling_policies", policy)))
    with trial.system() as system:
        service = system.clusters_service()
        model = service.cluster_service(like.id).get()
        trial.undo.append((f"cluster {name}", lambda: _remove_named(trial, "clusters", name)))
        made = types.Cluster(name=name, data_center=types.DataCenter(id=like.data_center), cpu=model.cpu)
        try:
            service.add(made)
        except ovirtsdk4.Error as error:
            raise Skipped(f"the engine makes no cluster: {error}") from None
    first = trial.succeed("setup", "--policy", policy, "--cluster", name)
    again = trial.succeed("setup", "--policy", policy, "--cluster", name)
    if "nothing to change" not in again:
        raise Failed(f"a second setup changes something: {again.strip()}")
    trial.succeed("setup", "--undo", "--policy", policy)
    return f"{len(first.splitlines())} changes, none by a second run, and undone"


def _remove_named(trial: Trial, kind: str, name: str) -> None:
    with trial.system() as system:
        service = getattr(system, f"{kind}_service")()
        for one in service.list():
            if one.name == name:
                service.service(one.id).remove()


def make_vms(trial: Trial) -> str:
    if trial.options.vm:
        if len(trial.options.vm) < 2:
            raise Failed("--vm names one VM: two are needed, which may be started, stopped and migrated")
        known = {vm.name for vm in read_snapshot(trial.connection).vms}
        if missing := set(trial.options.vm) - known:
            raise Failed(f"there is no VM {', '.join(sorted(missing))}")
        trial.vms = trial.options.vm[:2]
        return f"those that --vm names: {', '.join(trial.vms)}"
    for name in (f"{trial.prefix}a", f"{trial.prefix}b"):
        vm = types.Vm(
            name=name,
            cluster=types.Cluster(name=trial.cluster),
            template=types.Template(name="Blank"),
            memory=_VM_BYTES,
            memory_policy=types.MemoryPolicy(guaranteed=_VM_BYTES, max=4 * _VM_BYTES),
            os=types.OperatingSystem(boot=types.Boot(devices=[types.BootDevice.NETWORK])),
        )
        try:
            with trial.system() as system:
                service = system.vms_service()
                trial.undo.append((f"VM {name}", partial(_remove_vm, trial, name)))
                made = service.add(vm)
                service.vm_service(made.id).nics_service().add(types.Nic(name="nic1"))
        except EngineFault as error:
            why = "the engine makes no VM of the template Blank, and --vm names none"
            raise Skipped(f"{why}: {error}") from None
        trial.vms.append(name)
    trial.until(lambda: all(trial.vm(name).status == "down" for name in trial.vms), "VMs that are down")
    return ", ".join(trial.vms)


def _remove_vm(trial: Trial, name: str) -> None:
    """Stop and remove it, as soon as the engine is done with what it does with it."""
    refusal = ""

    def removed() -> bool:
        nonlocal refusal
        found = next((one for one in read_snapshot(trial.connection).vms if one.name == name), None)
        if found is None:
            return True
        try:
            with trial.system() as system:
                service = system.vms_service().vm_service(found.id)
                service.remove() if found.host is None else service.stop()
        except EngineFault as error:
            refusal = str(error)
        return False

    try:
        trial.until(removed, f"the end of VM {name}")
    except Failed as failed:
        raise Failed(f"{failed}: {refusal}") from None


def groups(trial: Trial) -> str:
    one, other = _two_vms(trial)
    name = f"{trial.prefix}apart"
    trial.group(name, "--vms-rule", "negative", "--vms-enforcing", "--vm", one, "--vm", other)
    listed = trial.succeed("groups", "list", "--cluster", trial.cluster)
    if name not in listed:
        raise Failed(f"groups list does not show {name}")
    return f"{name}: {one} and {other} apart, hard"


def start_by_filter(trial: Trial) -> str:
    """Two VMs that must be apart."""
    one, other = _two_vms(trial)
    if sum(host.up for host in _hosts(trial)) < 2:
        raise Skipped(f"fewer than two hosts of cluster {trial.cluster} are up")
    for name in (one, other):
        if trial.host_of(name) is None:
            trial.undo.append((f"{name} running", partial(_stop, trial, name)))
            trial.act(name, methodcaller("start"))
            _await_up(trial, name)
    if trial.host_of(one) == trial.host_of(other):
        raise Failed(f"{one} and {other} both run on {trial.host_of(one)}, though they must be apart")
    refused = trial.run(PLACEMENT, "why", other, str(trial.host_of(one)))[1]
    if f"{trial.prefix}apart" not in refused:
        raise Failed(f"why {other} does not name the group: {refused.strip()}")
    return f"{one} on {trial.host_of(one)}, {other} on {trial.host_of(other)}; why names the group"


def _await_up(trial: Trial, name: str, host: str | None = None) -> None:
    """Wait until a VM is up, on this host if one is named."""

    def is_up() -> bool:
        return trial.vm(name).status == "up" and host in (None, trial.host_of(name))

    trial.until(is_up, f"{name} up" if host is None else f"{name} on {host}")


def _stop(trial: Trial, name: str) -> None:
    trial.until(lambda: trial.vm(name).status not in ("migrating", "wait_for_launch"), f"{name} at rest")
    if trial.vm(name).host is not None:
        trial.act(name, methodcaller("stop"))
        trial.until(lambda: trial.vm(name).host is None, f"{name} down")


def violation(trial: Trial) -> str:
    """The same two together: the plan's migrations are carried out, of ours alone."""
    one, other = _two_vms(trial)
    if None in (trial.host_of(one), trial.host_of(other)):
        raise Skipped("the two VMs do not run")
    trial.remove_group(f"{trial.prefix}apart")
    name = f"{trial.prefix}together"
    trial.group(name, "--vms-rule", "positive", "--vms-enforcing", "--vm", one, "--vm", other)
    found = trial.succeed("violations", "--cluster", trial.cluster, "--group", name, statuses=(0, 1))
    if name not in found and trial.host_of(one) != trial.host_of(other):
        raise Failed(f"violations does not name {name}: {found.strip()}")
    status, planned, complaint = trial.run(ENFORCER, "plan", "--cluster", trial.cluster, "--json")
    if status not in (0, 3, 4):
        raise Failed(f"ovirt-enforcer plan ended with {status}: {complaint.strip()}")
    steps = [step for plan in json.loads(planned)["clusters"] for step in plan["steps"]]
    moves = [(vm["name"], step["to"]["name"]) for step in steps for vm in step["vms"]]
    moves = [(vm, target) for vm, target in moves if vm in (one, other)]
    if not moves and trial.host_of(one) != trial.host_of(other):
        raise Failed(f"the plan of cluster {trial.cluster} moves neither {one} nor {other}")
    for vm, target in moves:
        if trial.host_of(vm) != target:  # the engine's own enforcement may have been quicker
            trial.act(vm, methodcaller("migrate", host=types.Host(name=target)))
            _await_up(trial, vm, target)
    trial.until(lambda: trial.host_of(one) == trial.host_of(other), f"{one} and {other} together")
    trial.until(
        lambda: trial.run(PLACEMENT, "violations", "--cluster", trial.cluster, "--group", name)[0] == 0,
        "a state without the violation",
    )
    return f"repaired by {', '.join(f'{vm} to {target}' for vm, target in moves) or 'the engine itself'}"


def maintenance(trial: Trial) -> str:
    wanted = trial.options.maintenance
    if not wanted:
        raise Skipped("--maintenance names no host")
    host = next((one for one in _hosts(trial) if one.name == wanted), None)
    if host is None or not host.up:
        raise Failed(f"host {wanted} of cluster {trial.cluster} is not up")
    there = [vm.name for vm in read_snapshot(trial.connection).vms if vm.host == host.id]
    if others := [name for name in there if name not in trial.vms]:
        raise Skipped(f"on host {wanted} run VMs that are not ours: {', '.join(others)}")

    def status() -> str:
        return str(next(one.status for one in _hosts(trial) if one.id == host.id))

    def activate() -> None:
        with trial.system() as system:
            if status() != "up":
                system.hosts_service().host_service(host.id).activate()
        trial.until(lambda: status() == "up", f"host {wanted} up")

    trial.undo.append((f"host {wanted} in maintenance", activate))
    preview = trial.run(ENFORCER, "maintenance", "plan", wanted)
    with trial.system() as system:
        system.hosts_service().host_service(host.id).deactivate(reason=f"{trial.prefix}trial")
    trial.until(lambda: status() == "maintenance", f"host {wanted} in maintenance")
    activate()
    return f"{wanted} emptied and up again; the preview ended with {preview[0]}"


def events(trial: Trial) -> str:
    text = f"{trial.prefix}event {time.time_ns()}"
    add_event(trial.connection, number=time.time_ns() % 2**31, severity="normal", description=text)
    trial.until(
        lambda: any(text in event.description for event in read_events(trial.connection, at_most=200)),
        "our event among the engine's",
    )
    return "one was added, and read"


def rights(trial: Trial) -> str:
    found = []
    for kind in KINDS:
        given = getattr(trial.options, kind)
        if not given:
            found.append(f"{kind}: skipped, --{kind} names no user")
            continue
        user, _, file = given.partition(":")
        config = trial.config(user, file or trial.options.password_file)
        status, _, complaint = trial.run(PLACEMENT, "violations", config=config)
        if kind == "reader":
            if status not in (0, 1):
                raise Failed(f"{user} does not read: {complaint.strip()}")
            words = ("groups", "add", f"{trial.prefix}no", "--cluster", trial.cluster, "--vm", trial.vms[0])
            status, _, complaint = trial.run(PLACEMENT, *words, config=config)
        if status == 0 or _MAY_NOT[kind] not in complaint:
            raise Failed(f"{kind} {user} is not refused in the right words: {complaint.strip()}")
        found.append(f"{kind} {user}: refused with the reason")
    if all("skipped" in one for one in found):
        raise Skipped("; ".join(found))
    return "; ".join(found)


def _hosts(trial: Trial) -> list[Any]:
    snapshot = read_snapshot(trial.connection)
    return [host for host in snapshot.hosts if snapshot.cluster_by_id[host.cluster].name == trial.cluster]


def _two_vms(trial: Trial) -> tuple[str, str]:
    if len(trial.vms) < 2:
        raise Skipped("there are no two VMs to use")
    return trial.vms[0], trial.vms[1]


STEPS: tuple[tuple[str, str, Step], ...] = (
    ("log-in", "logs in", log_in),
    ("snapshot", "reads hosts, VMs and rules", read_state),
    ("discovery", "looks whether the engine has our policy units enabled", discovery),
    ("setup", "makes a cluster without hosts and a policy of its own, sets it up, and undoes that", set_up),
    ("VMs", "makes two small VMs of the template Blank, without disks, unless --vm names two", make_vms),
    ("groups", "adds an affinity group that keeps them apart", groups),
    ("start", "starts them: a filter must keep them apart", start_by_filter),
    ("repair", "has them violate a rule, plans, and carries the plan's migrations of them out", violation),
    ("maintenance", "puts the host that --maintenance names into maintenance, and activates it", maintenance),
    ("events", "adds an event, and reads it", events),
    ("rights", "asks as the users that --reader, --owner and --nobody name", rights),
)
