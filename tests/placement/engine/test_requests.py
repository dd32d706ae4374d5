"""What is read by itself or searched for: what is gone, what is not there yet, and what no answer shows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from urllib.parse import urlsplit

import pytest

from ovirt_placement.answers.doctor import examine_permissions, read_root
from ovirt_placement.engine.actions import migrate
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway, EngineFault, EngineSetupError
from ovirt_placement.engine.events import read_events
from ovirt_placement.engine.policies import (
    PolicyReader,
    PolicyRequest,
    read_entries,
    read_heads,
    read_units,
    read_users,
    send,
)
from ovirt_placement.engine.requests import (
    RULES,
    UNPARSED,
    Doubts,
    Implausible,
    is_working,
    search_members,
    tagged_ids,
)
from ovirt_placement.engine.topology import (
    read_as_reported,
    read_descriptions,
    read_snapshot,
    reread_cluster,
    reread_hosts,
    reread_vms,
)
from ovirt_placement.engine.users import Root
from ovirt_placement.model.record import SearchOf
from ovirt_service.errors import UserError
from ovirt_simulator.generate import Sizes, generate
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server
from tests.builders import cluster, host, snapshot, vm
from tests.placement.engine.simulated import simulated
from tests.placement.engine_server import answering, connected

PAGE = b"<html><head><title>404 - Not Found</title></head></html>"
COLLECTIONS = ["/clusters", "/hosts", "/vms", "/affinitylabels", "/datacenters"]
FAULT = b"<fault><detail>Not found</detail><reason>Operation Failed</reason></fault>"


@contextmanager
def recorded_but(answers: dict[str, tuple[int, bytes]]) -> Iterator[EngineConnection]:
    """The recorded engine, but for these paths."""
    with answering(lambda path: answers.get(urlsplit(path).path)) as (_, connection):
        yield connection


@pytest.mark.parametrize("path", COLLECTIONS)
@pytest.mark.parametrize("answer", [(404, PAGE), (404, b""), (200, b"<html/>"), (200, b"<fault/>")])
def test_a_collection_is_not_empty_because_it_cannot_be_read(path: str, answer: tuple[int, bytes]) -> None:
    with recorded_but({path: answer}) as connection, pytest.raises(UserError):
        read_snapshot(connection)


def test_only_the_engine_itself_says_that_a_collection_is_not_there() -> None:
    away = "/affinitylabels: a web server answers 404 in place of the engine"
    with recorded_but({"/affinitylabels": (404, PAGE)}) as connection, pytest.raises(EngineAway, match=away):
        read_snapshot(connection)
    with recorded_but({"/affinitylabels": (404, FAULT)}) as connection:
        assert read_snapshot(connection).affinity_labels == ()


@pytest.mark.parametrize(
    ("path", "reread", "gone"),
    [
        ("/vms/v", lambda connection: reread_vms(connection, ["v"]), {}),
        ("/hosts/h", lambda connection: reread_hosts(connection, ["h"]), {}),
        ("/clusters/c", lambda connection: reread_cluster(connection, "c", PolicyReader()), None),
    ],
)
def test_what_is_gone_is_so_by_the_word_of_the_engine_and_of_no_web_server(
    path: str, reread: Callable[[EngineConnection], object], gone: object
) -> None:
    with recorded_but({path: (404, b"")}) as connection:
        assert reread(connection) == gone
    with recorded_but({path: (404, PAGE)}) as connection, pytest.raises(EngineAway):
        reread(connection)


def test_what_its_collection_lists_is_there() -> None:
    with recorded_but({}) as connection:
        known = read_snapshot(connection)
    vm, host = known.vms[0].id, known.hosts[0].id
    with recorded_but({f"/vms/{vm}": (404, b""), f"/hosts/{host}": (404, b"")}) as connection:
        assert reread_vms(connection, [vm])[vm].name == known.vms[0].name
        assert reread_hosts(connection, [host])[host].name == known.hosts[0].name


LARGE = generate(Sizes(clusters=2, hosts=60, vms=120, groups=6), 1)


@pytest.mark.parametrize("count", [0, 1, 2, 12, 80, 101])
def test_what_is_read_again_is_as_in_a_whole_reading(count: int) -> None:
    with simulated(LARGE) as (_, _, connection):
        whole = read_as_reported(connection, policies=PolicyReader())
        vms = {vm.id: vm for vm in whole.vms[:count]}
        hosts = {host.id: host for host in whole.hosts[:count]}
        assert reread_vms(connection, [*vms, "00000000-0000-0000-0000-000000000000"]) == vms
        assert reread_hosts(connection, list(hosts)) == hosts


def test_a_search_that_is_not_understood_is_not_taken_for_an_answer() -> None:
    vm = b'<vm id="%s"><name>n</name><placement_policy/><cluster id="c"/></vm>'

    def answer(path: str) -> tuple[int, bytes]:
        return (200, b"<vms/>") if "search" in path else (200, vm % path.rpartition("/")[2].encode())

    ids = [f"id{number}" for number in range(20)]
    with answering(answer) as (_, connection):
        assert list(reread_vms(connection, ids)) == ids


def test_a_cluster_comes_with_its_groups_and_policy() -> None:
    with simulated(LARGE) as (_, _, connection):
        whole = read_snapshot(connection)
        for cluster in whole.clusters:
            groups = tuple(group for group in whole.affinity_groups if group.cluster == cluster.id)
            assert reread_cluster(connection, cluster.id, PolicyReader()) == (cluster, groups)
        assert reread_cluster(connection, "00000000-0000-0000-0000-000000000000", PolicyReader()) is None


def test_several_are_asked_for_in_one_request_and_one_by_itself() -> None:
    with simulated(LARGE) as (_, server, connection):
        ids = [vm.id for vm in read_snapshot(connection).vms]
        server.disturbances.add(Disturbance(path=f"/vms/{ids[0]}", status=500, times=None))
        assert ids[0] in reread_vms(connection, ids[:30])
        server.disturbances.add(Disturbance(path="search", status=500, times=None))
        assert len(reread_vms(connection, ids[1:2])) == 1
        server.disturbances.clear()
        server.disturbances.add(Disturbance(path="/vms/", status=500, times=None))
        assert len(reread_vms(connection, ids[1:3])) == 2


READINGS: dict[str, Callable[[EngineConnection], object]] = {
    "VMs": lambda connection: reread_vms(connection, ["v"]),
    "events": lambda connection: read_events(connection, at_most=1),
    "units": read_units,
    "policies": read_heads,
    "who uses them": read_users,
    "a policy": lambda connection: list(read_entries(connection, "p")),
    "descriptions": lambda connection: read_descriptions(connection, "c"),
    "the root": read_root,
    "permissions": lambda connection: list(examine_permissions(connection, Root(None, None, "u", ""), ())),
}


@pytest.mark.parametrize("read", READINGS.values(), ids=READINGS)
def test_malformed_xml_is_no_engines(read: Callable[[EngineConnection], object]) -> None:
    with (
        answering(lambda path: (200, b"<vm><")) as (_, connection),
        pytest.raises(EngineSetupError, match=r"^http://127\.0\.0\.1:\d+: .*malformed XML"),
    ):
        read(connection)


@pytest.mark.parametrize("answer", [b"<other/>", b"<scheduling_policies/>", b"<api><time>never</time></api>"])
def test_another_document_is_no_entity(answer: bytes) -> None:
    made = PolicyRequest("make it", "POST", "/schedulingpolicies", b"<scheduling_policy/>")
    with answering(lambda path: (200, answer)) as (_, connection):
        for ask in (read_root, lambda engine: send(engine, made, None)):
            with pytest.raises(EngineAway, match=r"^http://127\.0\.0\.1:\d+: .*something else"):
                ask(connection)


def test_a_change_that_is_answered_by_malformed_xml_may_have_been_made() -> None:
    with answering(lambda path: (200, b'<?xml version="1.0"?><action><')) as (_, connection):
        with pytest.raises(EngineAway, match="malformed XML") as raised:
            migrate(connection, "v", "h", "b1")
        assert raised.value.request_sent


STATE = snapshot(
    cluster("c1", name="blue"),
    cluster("c2", name="red"),
    *(host(name, cluster="c1") for name in ("h1", "h2", "x1")),
    *(vm(name, "h1", cluster="c1", tags=("db",)) for name in ("db2", "db1")),
    vm("web1", cluster="c2"),
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with simulated(STATE) as (_, running, _):
        yield running


@pytest.fixture
def connection(server: Server) -> Iterator[EngineConnection]:
    with connected(server.api_url) as made:
        yield made


@pytest.mark.parametrize(
    ("of", "text", "found"),
    [
        ("vms", "name=db*", ("db1", "db2")),
        ("vms", "tag=db and name!=db1", ("db2",)),
        ("vms", "name=web1 or host.name=h1 and cluster=blue", ("db1", "db2", "web1")),
        ("vms", "DB", ("db1", "db2")),
        ("hosts", "name=h*", ("h1", "h2")),
        # Found are none, which is an answer nevertheless.
        ("vms", "name=nobody", ()),
        ("vms", "tag=nothing", ()),
        ("vms", "host.name=h2 and status=up", ()),
        ("vms", "nmae=db1", ()),  # free text
        ("hosts", "vm.name=nobody", ()),
    ],
)
def test_whom_a_search_means_is_found(
    connection: EngineConnection, of: SearchOf, text: str, found: tuple[str, ...]
) -> None:
    answer = search_members(connection, of, text)
    assert (answer.found, answer.problem) == (found, "")


@pytest.mark.parametrize("text", ["name=", "name=db* and", "name~db", "name='db1'", "status=upp", 'name="db'])
def test_what_is_no_search_is_not_taken_for_one_that_finds_nobody(
    connection: EngineConnection, text: str
) -> None:
    assert connection.get("/vms", search=text).count(b"<vm ") == 0
    answer = search_members(connection, "vms", text)
    assert (answer.found, answer.problem) == (None, UNPARSED)


def test_what_the_engine_refuses_is_a_problem_of_the_search(
    connection: EngineConnection, server: Server
) -> None:
    server.disturbances.add(Disturbance(path="search=", status=500))
    answer = search_members(connection, "vms", "name=db*")
    assert (answer.found, "500" in answer.problem) == (None, True)
    server.disturbances.add(Disturbance(path="search=", status=503))
    with pytest.raises(EngineAway):
        search_members(connection, "vms", "name=db*")


def test_an_engine_without_vms_has_nobody_to_find() -> None:
    with simulated(snapshot(host("h1"))) as (_, _, connection):
        assert search_members(connection, "vms", "name=db*").found == ()


TAG = "ovirt-enforcer-exclude"
TAGGED = snapshot(
    host("h1", tags=(TAG,)),
    vm("a", "h1", tags=(TAG, "other")),
    vm("b", "h1", tags=("other",)),
    vm("c", tags=(TAG,)),
    vm("d", "h1"),
)


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        (TAG, {"a", "c", "h1"}),
        ("other", {"a", "b"}),
        ("ovirt-*", {"a", "c", "h1"}),
        ("ovirt-enforcer", set()),
        ("none", set()),
    ],
)
def test_what_bears_it_is_found_by_their_tag(tag: str, found: set[str]) -> None:
    with simulated(TAGGED) as (_, _, connection):
        assert tagged_ids(connection, tag) == found


JOB = "<jobs><job id='j'><status>{}</status></job></jobs>"
FORBIDDEN = "<fault><detail>not you</detail><reason>Operation Failed</reason></fault>"


@pytest.mark.parametrize(
    ("status", "content", "works"),
    [
        (200, JOB.format("started"), True),
        (200, JOB.format("finished"), False),
        (200, JOB.format("failed"), False),
        (200, "<jobs/>", False),
        (403, FORBIDDEN, False),  # of a user who may not search jobs nothing is known
        (409, FORBIDDEN, None),
    ],
)
def test_a_job_that_has_not_ended_is_worked_on(status: int, content: str, works: bool | None) -> None:
    """A search that fails is no answer."""
    failing = nullcontext() if works is not None else pytest.raises(EngineFault)
    with answering(lambda path: (status, content.encode())) as (server, connection):
        with failing:
            assert is_working(connection, "one") is works
        assert server.requests == ["/jobs?search=correlation_id%3Done"]


# What suddenly lacks most of all is doubted.
TEN = [f"v{number}" for number in range(10)]


def doubts_about(*answers: list[str]) -> list[bool]:
    """Say of each answer in a row whether it was doubted."""
    doubts, found = Doubts(), []
    for ids in answers:
        try:
            doubts.check({"VMs": ids})
            found.append(False)
        except Implausible:
            found.append(True)
    return found


@pytest.mark.parametrize(
    ("answers", "doubted"),
    [
        ([[]], [False]),  # nothing was known
        ([TEN, []], [False, True]),
        ([TEN, [], []], [False, True, False]),
        ([TEN, [], TEN, []], [False, True, False, True]),
        ([TEN, [], [], [], TEN, []], [False, True, False, False, False, True]),
        ([TEN, TEN[:5]], [False, False]),
        ([TEN, TEN[:4]], [False, True]),
        ([TEN, ["other", *TEN[:4]]], [False, True]),
        ([["a", "b", "c"], ["a"]], [False, False]),  # two may go at once
        ([["a"], []], [False, True]),
    ],
)
def test_most_of_what_was_known_is_not_gone_at_the_first_word(
    answers: list[list[str]], doubted: list[bool]
) -> None:
    assert doubts_about(*answers) == doubted


def test_kinds_are_doubted_by_themselves_and_reported() -> None:
    doubts = Doubts()
    doubts.check({"VMs": TEN, "hosts": ["h"]})
    with pytest.raises(Implausible, match="lists but 2 of 10 VMs that it had: it is asked again before"):
        doubts.check({"VMs": TEN[:2], "hosts": ["h"]})
    with pytest.raises(Implausible, match="0 of 1 hosts"):
        doubts.check({"VMs": TEN[:2], "hosts": []})
    doubts.check({"VMs": TEN[:2], "hosts": []})
    doubts.check({"hosts": ["h"]})  # a reading of hosts says nothing of VMs


@pytest.mark.parametrize(
    ("kind", "answers", "left"),
    [
        ("affinity groups", [[], []], 0),  # the user has removed the last one
        ("affinity groups", [[], ["g"]], 1),
        ("affinity labels", [[], []], 0),
        ("VMs", [[], []], 1),  # nobody removes all: the next reading shows it
    ],
)
def test_what_a_user_may_remove_all_of_is_confirmed_at_once(
    kind: str, answers: list[list[str]], left: int
) -> None:
    doubts = Doubts()
    doubts.check({kind: ["g"]})
    found = ["g"]
    with suppress(Implausible):
        found = doubts.confirm(
            lambda: answers.pop(0), lambda ids: {kind: ids}, lambda one: one.kinds <= RULES
        )
    assert (len(found), len(answers)) == (left, 0 if kind in RULES else 1)
