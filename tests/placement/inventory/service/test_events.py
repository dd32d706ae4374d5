"""What events report: crashes, starts, targets of migrations, and what is to be read again."""

from pathlib import Path

import pytest

from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.engine.vms import NO_DETAILS, Detail
from ovirt_placement.inventory.service.events import (
    VmReports,
    destination,
    reported_by,
    reported_start,
    vms_named,
)
from ovirt_placement.inventory.service.schedule import Subject, SubjectKind
from ovirt_placement.model import Vm
from tests import builders as build
from tests.builders import host, snapshot, vm
from tests.placement.inventory.stage import event, staged, turns

_GRANTED = (
    "User/Group ann, Namespace *, Authorization provider: internal-authz was granted permission for Role"
    " UserVmManager on {}, by admin@internal-authz."
)
_REMOVED = "User/Group ann Role UserRole permission was removed from {} by admin@internal-authz"


_DISK = "Disk d associated to the VMs"


#: Of a code and a text, what is to be read again of the VMs that are named.
NAMED = [
    (850, _GRANTED.format("VM web-1.x"), Detail.OWNER, "web-1.x"),
    (850, _GRANTED.format("Cluster web"), NO_DETAILS, ""),
    (850, _GRANTED.format("VM Pool web"), NO_DETAILS, ""),
    (852, _REMOVED.format("VM web"), Detail.OWNER, "web"),
    (852, _REMOVED.format("Host web"), NO_DETAILS, ""),
    (440, "Tag t was attached to VM(s) a, b, c by admin.", Detail.OWNER, "a b c"),
    (446, "Tag t was detached from VM(s) a by admin.", Detail.OWNER, "a"),
    (2042, f"{_DISK} a, b was successfully removed from domain data (User admin).", Detail.DISKS, "a b"),
    (2043, f"{_DISK} a was successfully removed (User admin).", Detail.DISKS, "a"),
    (2044, f"Removal of {_DISK} a, b from domain data was initiated by admin.", Detail.DISKS, "a b"),
    (35, "VM a configuration was updated by admin.", NO_DETAILS, ""),
    (440, "", NO_DETAILS, ""),
]


@pytest.mark.parametrize(("code", "text", "detail", "vms"), NAMED)
def test_vms_that_an_event_only_names_are_found_in_its_text(
    code: int, text: str, detail: Detail, vms: str
) -> None:
    assert vms_named(event(5, code, description=text)) == (detail, tuple(vms.split()))


_VM, _NETWORKS = (Subject(SubjectKind.VM, "v"), None), (Subject(SubjectKind.NETWORKS), None)
#: Of a VM's devices, of networks, and of what was found or could not be done.
REREAD = {
    **dict.fromkeys((34, 35, 53, 78, 80, 88, 97, 930, 932, 934, 2000, 2002, 2016, 2018), _VM),
    **dict.fromkeys((942, 944, 1114, 1122, 1124, 1126), _NETWORKS),
    **dict.fromkeys((9920, 10300, 10301, 10351, 10353, 10355, 10358, 10381, 10383, 10385, 10500)),
}


@pytest.mark.parametrize(("code", "again"), REREAD.items())
def test_what_is_read_again_after_an_event(code: int, again: tuple[Subject, None] | None) -> None:
    assert reported_by(event(5, code, vm="v", host="h", cluster="c")) == again


ODD = "(VM: v, Source: a, Destination: b, Destination: c, User: u)"
HOSTS = {"h1": "id1", "h2": "id2", "h3": "id3"}


def started(number: int, to: str = "h2") -> EngineEvent:
    text = f"Migration started (VM: v, Source: h1, Destination: {to}, User: admin). "
    return event(number, 62, vm="v", description=text)


def targets_of(*events: EngineEvent, now: float = 0.0) -> VmReports:
    targets = VmReports()
    for one in events:
        report(targets, one, now)
    return targets


def report(targets: VmReports, one: EngineEvent, now: float) -> None:
    hosts = [host(identity, name=name) for name, identity in HOSTS.items()]
    targets.report(one, vm("v"), hosts, now)


def target(targets: VmReports) -> str | None:
    return targets.over(vm("v")).migrating_to


@pytest.mark.parametrize(
    ("text", "hosts", "found"),
    [
        ("Migration started (VM: v, Source: h1, Destination: h2, User: admin@internal). ", HOSTS, "id2"),
        ("Migration initiated by system (VM: v, Source: h1, Destination: h3, Reason: load).", HOSTS, "id3"),
        ("Migration started (VM: v, Source: h1, Destination: <UNKNOWN>, User: a).", HOSTS, None),
        ("Migration started (VM: w, Source: h1, Destination: h2, User: a).", HOSTS, None),
        ("Migration started (VM: v, Source: gone, Destination: h2, User: a).", HOSTS, None),
        ("Migration failed (VM: v, Source: h1).", HOSTS, None),
        ("", HOSTS, None),
        # A name that is the beginning of another.
        ("(VM: v, Source: h, Destination: h-2, User: a)", {"h": "a", "h-2": "b"}, "b"),
        # Names with the text's own words in them.
        (ODD, {"a": "1", "b, Destination: c": "2"}, "2"),
        (ODD, {"a, Destination: b": "1", "c": "2"}, "2"),
        # Two readings that mean different hosts: unknown.
        (ODD, {"a": "1", "a, Destination: b": "2", "b, Destination: c": "3", "c": "4"}, None),
        ("(VM: v, Source: a, Destination: b, User: c, User: )", {"a": "", "b": "1", "b, User: c": "2"}, None),
    ],
)  # fmt: skip
def test_a_target_is_found_only_where_the_text_can_mean_but_one(
    text: str, hosts: dict[str, str], found: str | None
) -> None:
    assert destination(text, "v", hosts) == found


def test_a_vm_may_be_named_like_the_text() -> None:
    odd = "x, Source: h1, Destination: h3, User: y"
    text = f"Migration started (VM: {odd}, Source: h1, Destination: h2, User: a). "
    assert destination(text, odd, HOSTS) == "id2"


@pytest.mark.parametrize("code", [62, 67])
def test_the_start_is_reported_and_each_end_takes_it_back(code: int) -> None:
    by_system = "Migration initiated by system (VM: v, Source: h1, Destination: h2, Reason: r)."
    start = started(5) if code == 62 else event(5, 67, vm="v", description=by_system)
    assert target(targets_of(start)) == "id2"
    for end in (63, 64, 65, 120, 128, 140, 161, 1111):
        assert target(targets_of(start, event(6, end, vm="v"))) is None
    # Events may come in any order.
    assert target(targets_of(event(6, 63, vm="v"), start)) is None
    assert target(targets_of(started(8, "h3"), event(6, 63, vm="v"), start)) == "id3"


@pytest.mark.parametrize(
    "readings",
    [
        # The engine logs before it saves: for a while a VM need not have begun.
        [("id1", "up", 11.0, "id2"), ("id1", "up", 15.1, None)],
        [("id1", "migrating", 10.5, "id2"), ("id1", "up", 11.0, None)],
        [("id2", "up", 10.5, None)],
    ],
    ids=["never begun", "returned", "arrived"],
)
def test_a_target_is_known_until_a_reading_shows_the_end(
    readings: list[tuple[str, str, float, str | None]],
) -> None:
    targets = targets_of(started(5), now=10.0)
    for on, status, moment, expected in readings:
        targets.read(build.vm("v", on, status=status), moment)
        assert target(targets) == expected


def test_the_end_is_remembered_for_a_late_start_and_then_forgotten() -> None:
    targets = targets_of(event(6, 63, vm="v"), now=10.0)
    targets.read(build.vm("v", "id2"), 20.0)
    report(targets, started(5), 20.0)
    assert target(targets) is None
    targets.read(build.vm("v", "id2"), 71.0)
    report(targets, started(5), 71.0)  # as if it were new: nothing is known any more
    assert target(targets) == "id2"


def heard(code: int, vm: str | None = "v", host: str | None = "h") -> list[tuple[str, str | None, float]]:
    found: list[tuple[str, str | None, float]] = []
    reported_start(event(1, code, vm=vm, host=host), 5.0, lambda *reported: found.append(reported))
    return found


@pytest.mark.parametrize("code", [32, 152, 153, 506])
def test_a_start_reports_its_host(code: int) -> None:
    assert heard(code) == [("v", "h", 5.0)]
    assert heard(code, host=None) == heard(code, vm=None) == []


@pytest.mark.parametrize("code", [54, 61, 119, 507])
def test_a_start_that_failed_or_a_vm_that_is_down_is_nowhere_and_other_events_say_nothing(code: int) -> None:
    assert heard(code) == [("v", None, 5.0)]
    assert heard(code, vm=None) == heard(62) == []


DOWN = vm("db")


@pytest.mark.system
def test_a_vm_has_crashed_until_it_runs_and_not_once_somebody_stops_it(tmp_path: Path) -> None:
    with staged(tmp_path, snapshot(host("h1"), vm("db", "h1"))) as stage:

        def known() -> tuple[str | None, bool]:
            found = stage.follower.snapshot().vm_by_id["db"]
            return found.host, found.crashed

        assert known() == ("h1", False)
        stage.engine.vms.crash("db")
        turns(stage, 20)
        assert known()[1]
        for change, on in ((stage.engine.vms.start, "h1"), (stage.engine.vms.stop, None)):
            change("db")
            stage.settle()
            assert known() == (on, False)


def is_crashed(*events: EngineEvent) -> bool:
    return crashes_of(*events).over(DOWN).crashed


def crashes_of(*events: EngineEvent) -> VmReports:
    crashes = VmReports()
    for one in events:
        crashes.report(one, None, (), 0.0)
    return crashes


@pytest.mark.parametrize("code", [119, 143])
def test_of_what_events_report_of_a_crash_the_newest_stands(code: int) -> None:
    crash = event(5, code, vm="db")
    assert is_crashed(crash)
    assert not is_crashed(crash, event(6, 61, vm="db"))
    assert not is_crashed(event(6, 32, vm="db"), crash)
    assert is_crashed(event(4, 32, vm="db"), crash)
    assert is_crashed(event(6, 32, vm="db"), event(7, code, vm="db"), crash)
    assert not is_crashed(event(5, code, vm="other"))


def test_of_what_is_gone_nothing_is_known() -> None:
    crashes = crashes_of(event(5, 119, vm="db"))
    assert not crashes.over(vm("db", "h1")).crashed
    crashes.forget_crash("db")
    assert not crashes.over(DOWN).crashed


#: Whether what is read of a VM shows an event that names host h1.
SHOWN = [
    (32, vm("v", "h1"), True),
    (32, vm("v", "h1", status="wait_for_launch"), False),
    (153, vm("v", "h2"), False),
    (32, None, False),
    (61, vm("v", "h1"), False),
    (61, None, True),
    (62, vm("v", "h1"), False),
    (62, vm("v", "h2"), True),
    (63, vm("v", "h1", status="migrating"), False),
    (65, vm("v", "h1", status="migrating"), False),
    (65, None, True),
]


@pytest.mark.parametrize(("code", "read", "shows"), SHOWN)
def test_an_effect_is_recognised_by_what_is_read(code: int, read: Vm | None, shows: bool) -> None:
    reported = reported_by(event(1, code, vm="v", host="h1"))
    assert reported is not None
    assert reported[1] is not None
    assert reported[1](read) is shows
