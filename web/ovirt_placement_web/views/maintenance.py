"""A cluster without some of its hosts: maintenance, with its runs and their orders, and failures."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar
from urllib.parse import quote, urlencode

from ovirt_enforcer.orders import check_settings, run_meant
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.configured import configured_domains
from ovirt_placement.answers.document import find
from ovirt_placement.answers.orders import runs_document
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import Cluster, Host, Snapshot
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.store.enforcer.maintenance import ORDERS, MaintenanceRequest, MaintenanceStore, Work
from ovirt_placement.store.sql.access import opened
from ovirt_placement_web.bounds import Refusal, unfound
from ovirt_placement_web.settings import ENGINE_SECONDS
from ovirt_placement_web.site import words_of
from ovirt_placement_web.views.endpoints import MIGRATE, Act, Asked, Shown, Stale, acted, viewed
from ovirt_placement_web.views.vm import known
from ovirt_service.errors import UserError

_Choice = TypeVar("_Choice", bound=StrEnum)

#: What the engine asks for of who takes hosts out of service.
PERMIT = "manipulate_host"
_MOST_ENDED = 5


@viewed("/maintenance/{name}", query=("stop", "return"), repeated=("host",), bound="plans", where="host")
def maintenance(asked: Asked) -> Shown:
    """How far runs are, and of hosts that are ticked in which rounds they could be taken out."""
    cluster, chosen = asked.cluster, tuple(asked.words("host"))
    _check_hosts(chosen, cluster, asked.snapshot)
    words = asked.word("stop").replace("\r\n", "\n")
    back = _choice(Return, "return", asked.word("return", Return.NONE.value))
    command = asked.config.section("enforcer", EnforcerSettings).maintenance.command
    plan = None
    if chosen:
        asked.check_engine()
        stopped = frozenset(_stop_vms(words, asked.snapshot))
        question = "maintenance", chosen, stopped, back
        plan = asked.questions.once(question, lambda: asked.site.made.maintenance(chosen, stopped, back))
    every, error = known(lambda: asked.site.past.read(MaintenanceStore, MaintenanceStore.runs))
    own = [run for run in every or () if run.cluster == cluster.id]
    active, ended = ([run for run in own if run.active is so] for so in (True, False))
    runs = runs_document([*active, *ended[:_MOST_ENDED]]).runs
    return "maintenance.html", {
        "cluster": cluster,
        "chosen": chosen,
        "stop": words,
        "back": back,
        "backs": list(Return),
        "works": [work for work in Work if work is not Work.COMMAND or command],
        "runs": [(run, [name for name, each in ORDERS.items() if run.state in each.after]) for run in runs],
        "runs_error": error,
        "under_way": bool(active),
        "plan": plan,
    }


@acted("/maintenance/{name}/begin")
def begin(asked: Asked) -> Act:
    """Have the hosts taken out whose plan was looked at, in its order, if each can still become empty."""
    cluster, form = asked.cluster, asked.form
    wanted = MaintenanceRequest(
        work=_choice(Work, "work", form.get("work", "")),
        stop_vms=_stop_vms(form.get("stop", ""), asked.snapshot),
        reboot="reboot" in form,
        back=_choice(Return, "return", form.get("return", "")),
    )
    ids = tuple(dict.fromkeys(form.get("hosts", "").split()))
    if not ids:
        raise Refusal(400, "Tick some hosts first.")

    def carry_out(who: str) -> None:
        config = asked.config
        check_settings(config, wanted.work)
        snapshot = inventory.snapshot(config=config, max_age=0.0, deadline=ENGINE_SECONDS)
        try:
            hosts = _check_hosts(ids, cluster, snapshot)
            asked.site.made.check_rounds(snapshot, hosts, wanted.stop_vms)
        except Refusal as gone:
            raise Stale(gone.text) from None
        except UserError as error:
            raise Stale(str(error)) from None
        run = run_meant(config, snapshot, hosts, wanted, requested_by=who)
        with opened(MaintenanceStore, config) as store:
            store.request(run)

    hosts = asked.snapshot.host_by_id
    names = ", ".join(hosts[one].name if one in hosts else one for one in ids)
    # What the engine would ask of who did by hand what the enforcer does for them.
    upgrade = ("edit_host_configuration",) if wanted.work is Work.UPGRADE else ()
    stopping = ("stop_vm", "run_vm") if wanted.stop_vms else ()
    permits = (PERMIT, MIGRATE, *upgrade, *stopping)
    on = f"hosts {names} of cluster {cluster.name} ({cluster.id})"
    return Act("maintenance", (cluster,), carry_out, f"/maintenance/{cluster.id}", permits, on, plans=True)


@acted("/maintenance/{name}/{order:str}")
def order(asked: Asked) -> Act:
    cluster, name, run_id = asked.cluster, asked.request.path_params["order"], asked.form.get("run", "")
    if name not in ORDERS:
        raise Refusal(404, "There is no such page.")

    def carry_out(who: str) -> None:
        with opened(MaintenanceStore, asked.config) as store:
            if not any((one.id, one.cluster) == (run_id, cluster.id) for one in store.runs()):
                raise Stale(f"cluster {cluster.name} has no such maintenance run")
            store.order(run_id, name, set_by=who)

    on = f"maintenance run {run_id[:64]} of cluster {cluster.name} ({cluster.id})"
    back = f"/maintenance/{cluster.id}"
    return Act(f"maintenance {name}", (cluster,), carry_out, back, (PERMIT,), on)


def _stop_vms(words: str, snapshot: Snapshot) -> tuple[str, ...]:
    """The VMs that may be stopped, a name or id a line; raises `Refusal` for one that is not known."""
    try:
        named = (find(word, "VM", snapshot.vms, snapshot) for word in words_of(words))
        return tuple(dict.fromkeys(vm.id for vm in named))
    except UserError as error:
        raise Refusal(400, unfound(error)) from None


def _choice(kind: type[_Choice], key: str, word: str) -> _Choice:
    try:
        return kind(word)
    except ValueError:
        raise Refusal(400, f"{key}: {', '.join(kind)}") from None


def _check_hosts(ids: Sequence[str], cluster: Cluster, snapshot: Snapshot) -> list[Host]:
    """The hosts with these ids; raises `Refusal` for one that the cluster has not."""
    known = {host.id: host for host in snapshot.hosts_of_cluster.get(cluster.id, ())}
    if unknown := [one for one in ids if one not in known]:
        raise Refusal(404, f"Cluster {cluster.name} has no host {unknown[0]}.")
    return [known[one] for one in ids]


@viewed("/ha", repeated=("host",))
def fail(asked: Asked) -> str:
    """On to the view of the failure of hosts, which the engine's portal knows without their cluster."""
    hosts, names = asked.snapshot.host_by_id, asked.request.query_params.getlist("host")
    if unknown := [name for name in names if name not in hosts]:
        raise asked.absent(f"There is no host {unknown[0]}.")
    clusters = {hosts[name].cluster for name in names}
    if len(clusters) != 1:
        raise Refusal(400, "Name hosts of one cluster, as host=ID.")
    return f"/ha/{quote(clusters.pop(), safe='')}?{urlencode([('host', name) for name in names])}"


@viewed("/ha/{name}", repeated=("host", "domain"), bound="checks")
def failures(asked: Asked) -> Shown:
    cluster = asked.cluster
    hosts = asked.snapshot.hosts_of_cluster.get(cluster.id, ())
    own = {host.id for host in hosts}
    # Those that have hosts of this cluster; none where they are set wrongly.
    known_domains, _ = known(lambda: configured_domains(asked.snapshot, asked.config.ha))
    domains = [each for each in known_domains or () if each.hosts & own]
    by_name = {each.name: each.hosts for each in domains}
    failing = {host.id for host in _check_hosts(asked.words("host"), cluster, asked.snapshot)}
    for name in asked.words("domain"):
        if name not in by_name:
            raise Refusal(404, f"Cluster {cluster.name} has no failure domain {name}.")
        failing |= by_name[name] & own
    return "ha.html", {"cluster": cluster, "domains": domains, "failing": failing}
