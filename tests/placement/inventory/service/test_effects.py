"""What events speak of: the VMs that they refer to, and those that they only name."""

from __future__ import annotations

import pytest

from ovirt_placement.engine.vms import NO_DETAILS, Detail
from ovirt_placement.inventory.service.events import reported_by, vms_named
from ovirt_placement.inventory.service.schedule import Subject, SubjectKind
from tests.placement.inventory.events import event

_GRANTED = (
    "User/Group ann, Namespace *, Authorization provider: internal-authz was granted permission for Role"
    " UserVmManager on {}, by admin@internal-authz."
)
_REMOVED = "User/Group ann Role UserRole permission was removed from {} by admin@internal-authz"


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        (850, _GRANTED.format("VM web-1.x"), (Detail.OWNER, ("web-1.x",))),
        (850, _GRANTED.format("Cluster web"), (NO_DETAILS, ())),
        (850, _GRANTED.format("VM Pool web"), (NO_DETAILS, ())),
        (852, _REMOVED.format("VM web"), (Detail.OWNER, ("web",))),
        (852, _REMOVED.format("Host web"), (NO_DETAILS, ())),
        (440, "Tag t was attached to VM(s) a, b, c by admin.", (Detail.OWNER, ("a", "b", "c"))),
        (446, "Tag t was detached from VM(s) a by admin.", (Detail.OWNER, ("a",))),
        (
            2042,
            "Disk d associated to the VMs a, b was successfully removed from domain data (User admin).",
            (Detail.DISKS, ("a", "b")),
        ),
        (
            2043,
            "Disk d associated to the VMs a was successfully removed (User admin).",
            (Detail.DISKS, ("a",)),
        ),
        (
            2044,
            "Removal of Disk d associated to the VMs a, b from domain data was initiated by admin.",
            (Detail.DISKS, ("a", "b")),
        ),
        (35, "VM a configuration was updated by admin.", (NO_DETAILS, ())),
        (440, "", (NO_DETAILS, ())),
    ],
)
def test_vms_that_an_event_only_names_are_found_in_its_text(
    code: int, text: str, expected: tuple[Detail, tuple[str, ...]]
) -> None:
    assert vms_named(event(5, code, description=text)) == expected


@pytest.mark.parametrize("code", [34, 35, 53, 78, 80, 88, 97, 930, 932, 934, 2000, 2002, 2016, 2018])
def test_what_happens_to_a_vms_devices_makes_it_be_read_again(code: int) -> None:
    (reported,) = reported_by(event(5, code, vm="v"))
    assert (reported.subject, reported.effect) == (Subject(SubjectKind.VM, "v"), None)


@pytest.mark.parametrize("code", [942, 944, 1114, 1122, 1124, 1126])
def test_what_happens_to_networks_makes_them_be_read_again(code: int) -> None:
    (reported,) = reported_by(event(5, code))
    assert reported.subject == Subject(SubjectKind.NETWORKS)


@pytest.mark.parametrize("code", [9920, 10300, 10301, 10351, 10353, 10355, 10358, 10381, 10383, 10385, 10500])
def test_what_somebody_found_or_failed_to_do_makes_nothing_be_read_again(code: int) -> None:
    assert not list(reported_by(event(5, code, vm="v", host="h", cluster="c")))
