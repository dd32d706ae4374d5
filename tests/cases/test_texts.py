"""Sentences without holes: each says of whom it speaks, and of one VM what is said of one."""

from __future__ import annotations

import re

from tests.cases.asking import Ask


def test_a_host_that_does_not_answer_is_the_reason_and_is_named_once(ask: Ask) -> None:
    text = ask("ovirt-enforcer maintenance plan --cluster c", "host-without-answer").text
    assert "  No round for h4:\n    - the host is non_responsive, so that its VMs cannot leave it\n" in text
    assert "--stop" not in text


def test_what_may_be_relaxed_has_a_name(ask: Ask) -> None:
    text = ask("ovirt-enforcer maintenance plan --cluster c", "ha-apart-on-two-hosts").text
    assert "Without affinity group apart alone, there is still no round" in text
    assert not re.search(r"Without +alone|\bto :|: *$", text.split("No round for h1:")[0])
    assert "Without  " not in text


def test_a_vm_on_its_way_needs_no_room(ask: Ask) -> None:
    found = ask("ovirt-enforcer make-room v1", "vm-on-its-way")
    assert (found.status, found.text) == (2, "ovirt-enforcer: VM v1 is on its way to host h0 already\n")
