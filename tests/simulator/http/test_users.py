"""What users see and may do (ActionGroup, QueryType), how they log in, and what happens when they are not."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from urllib.parse import urlencode

import pytest
from ovirtsdk4 import AuthError, Connection, Error, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.control import LoginError, Permit, Tokens, User, default_users
from ovirt_simulator.http.server import Server, serve
from tests.simulator.http.conftest import logged_in
from tests.simulator.http.plain import Api, Reply, request

Connect = Callable[[str], Connection]


@pytest.fixture
def connect(engine: Engine) -> Iterator[Connect]:
    """Connects as one of four users; `owner` has a role on one VM."""
    permits = frozenset({Permit.RUN_VM, Permit.MIGRATE_VM})
    users = {**default_users("password"), "owner@internal": User(password="password", permits=permits)}
    with ExitStack() as stack:
        server = stack.enter_context(closing(serve(engine, users=users)))
        yield lambda name: stack.enter_context(closing(logged_in(server, f"{name}@internal")))


def test_a_reader_reads_all(connect: Connect) -> None:
    system = connect("reader").system_service()
    assert len(system.vms_service().list()) == 11
    assert len(system.clusters_service().list(follow="affinity_groups")[0].affinity_groups) == 3
    assert system.vms_service().vm_service("web1").get().host.id == "host1"
    assert len(system.affinity_labels_service().list(follow="vms,hosts")) == 2


def test_a_reader_changes_nothing(connect: Connect) -> None:
    system = connect("reader").system_service()
    vms, cluster = system.vms_service(), system.clusters_service().cluster_service("cluster1")
    groups = cluster.affinity_groups_service()
    event = types.Event(origin="x", custom_id=1, severity=types.LogSeverity.NORMAL, description="x")
    changes: list[Callable[[], object]] = [
        lambda: vms.vm_service("web2").migrate(),
        lambda: vms.vm_service("spare").start(),
        lambda: vms.vm_service("spare").update(types.Vm(description="x")),
        lambda: system.hosts_service().host_service("host1").deactivate(),
        lambda: groups.add(types.AffinityGroup(name="x")),
        lambda: groups.group_service("apart").remove(),
        lambda: groups.group_service("apart").vms_service().vm_service("web1").remove(),
        lambda: cluster.update(types.Cluster(description="x")),
        lambda: system.affinity_labels_service().add(types.AffinityLabel(name="x")),
        lambda: system.scheduling_policies_service().add(types.SchedulingPolicy(name="x")),
        lambda: system.events_service().add(event),
    ]
    for change in changes:
        with pytest.raises(AuthError) as caught:
            change()
        assert caught.value.code == 403
        assert caught.value.fault.detail == "[User is not authorized to perform this action.]"
    assert vms.list(search="status=migratingfrom") == []


def test_a_user_cannot_ask_for_what_only_admins_may(connect: Connect) -> None:
    """Denied queries are 400, not 403."""
    system = connect("owner").system_service()
    queries: list[Callable[[], object]] = [
        lambda: system.clusters_service().cluster_service("cluster1").affinity_groups_service().list(),
        system.affinity_labels_service().list,
        system.scheduling_policies_service().list,
        system.scheduling_policy_units_service().list,
    ]
    for query in queries:
        with pytest.raises(Error, match="insufficient permissions") as caught:
            query()
        assert caught.value.code == 400


def test_a_permit_is_enough_to_act(connect: Connect, engine: Engine) -> None:
    connect("owner").system_service().vms_service().vm_service("web2").migrate()
    assert engine.queries.state.vms.get("web2").status == "migrating"
    assert engine.queries.events()[0].user is not None
    assert engine.queries.events()[0].user.name == "owner@internal-authz"


def test_each_sees_its_own_role_and_permits(connect: Connect) -> None:
    for name, some in (("admin", "inject_external_events"), ("owner", "migrate_vm"), ("reader", "login")):
        connection = connect(name)
        root = connection.system_service().get()
        users = connection.system_service().users_service()
        assert [user.id for user in users.list()] == [root.authenticated_user.id]
        (permission,) = users.user_service(root.authenticated_user.id).permissions_service().list()
        assert permission.cluster is permission.vm is None  # it is on the system
        roles = {role.id: role for role in connection.system_service().roles_service().list(follow="permits")}
        role = roles[permission.role.id]
        assert role.administrative == (name != "owner")
        assert some in {permit.name for permit in role.permits}
    assert [permit.name for permit in role.permits] == ["login"]


# -- Logging in, staying logged in, and what happens when one is not.
def post(server: Server, path: str, **form: str) -> Reply:
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    return request(f"{server.url}/ovirt-engine/{path}", "POST", urlencode(form), user=None, headers=headers)


def log_in(server: Server, **fields: str) -> Reply:
    form = {"grant_type": "password", "scope": "ovirt-app-api", "username": "admin@internal"}
    return post(server, "sso/oauth/token", **{**form, "password": "password", **fields})


def test_a_token(server: Server, api: Api) -> None:
    reply = log_in(server)
    answer = json.loads(reply.body)
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert set(answer) == {"access_token", "scope", "exp", "token_type"}
    assert answer["exp"].isdecimal()
    bearer = {"Authorization": f"Bearer {answer['access_token']}"}
    assert api("vms", user=None, headers=bearer).status == 200


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"password": "wrong"},
            "Cannot authenticate user 'admin@internal': Unable to log in. Verify your login information",
        ),
        ({"username": "nobody@internal"}, "Cannot authenticate user 'nobody@internal'"),
        ({"username": "admin@elsewhere"}, "No valid profile found in credentials."),
        ({"username": "admin"}, "No profile found in credentials."),
    ],
)
def test_an_error_is_400_in_the_apis_spelling(server: Server, fields: dict[str, str], text: str) -> None:
    reply = log_in(server, **fields)
    answer = json.loads(reply.body)
    assert (reply.status, answer["error_code"]) == (400, "access_denied")
    assert text in answer["error"]


def test_a_token_expires_when_it_is_idle_for_its_life_time(engine: Engine) -> None:
    hands = [0.0]
    tokens = Tokens(default_users("secret"), lifetime=100.0, clock=lambda: hands[0])
    token = tokens.log_in("admin@internal", "secret")
    for hands[0] in (99.0, 198.0, 297.9):
        assert tokens.user(token) is not None, "each use renews it"
    hands[0] = 398.0
    assert tokens.user(token) is None
    hands[0] = 300.0
    assert tokens.user(token) is None, "and it does not come back"
    with pytest.raises(LoginError):
        tokens.log_in("admin@internal", "Secret")


def test_a_life_time_of_nothing_ends_every_call(engine: Engine) -> None:
    """The retry is 401 again, with the container's page: the SDK cannot read it."""
    with closing(serve(engine, token_lifetime=0.0)) as server, closing(logged_in(server)) as connection:
        vms = connection.system_service().vms_service()
        with pytest.raises(Error, match="text/html") as caught:
            vms.list()
    assert (type(caught.value), caught.value.code) == (Error, None)


def test_logout_ends_the_token(server: Server, api: Api, sdk: Connection) -> None:
    token = sdk.authenticate()
    for _ in range(2):
        reply = post(server, "services/sso-logout", scope="ovirt-app-api", token=token)
        assert (reply.status, json.loads(reply.body)) == (200, {})
    bearer = {"Authorization": f"Bearer {token}"}
    assert api("vms", user=None, headers=bearer).status == 401


@pytest.mark.parametrize("user", [None, "admin@internal:wrong", "nobody:password"])
def test_401_is_the_containers(api: Api, user: str | None) -> None:
    reply = api("vms", user=user)
    assert (reply.status, reply.headers["www-authenticate"]) == (401, 'Basic realm="RESTAPI"')
    assert reply.headers["content-type"] == "text/html;charset=UTF-8"
    assert b"<html>" in reply.body
