"""Sentences with names: every kind of reason has one, and ids without a name stand as they are."""

from __future__ import annotations

import pytest

from ovirt_placement.answers.sentences import sentence
from ovirt_placement.rules.verdict import Kind, Reason
from tests.builders import TOGETHER, group, host, label, snapshot, vm

STATE = snapshot(
    host("h1", name="north"),
    vm("v1", name="web"),
    group("g1", TOGETHER, "v1", name="near"),
    label("l1", "v1"),
)


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_is_a_sentence_without_ids(kind: Kind) -> None:
    text = sentence(Reason(kind, "g1", "v1", "h1", 1.5), STATE)
    assert text
    assert not {"{", "}", "v1", "h1", "g1"} & set(text.replace(",", " ").replace(":", " ").split())


def test_unknown_id_stands_as_it_is() -> None:
    text = sentence(Reason(Kind.NEGATIVE_PEER_HERE, "g9", "v9", "h9"), STATE)
    assert text == "must not run with VM v9, which is on host h9 (affinity group g9)"


def test_legacy_label_is_called_a_label() -> None:
    text = sentence(Reason(Kind.HOST_NOT_LISTED, "l1", "v1"), STATE)
    assert text == "VM web may only run on the hosts of affinity label l1"


def test_broken_negative_group_names_the_vm() -> None:
    broken = Reason(Kind.GROUP_BROKEN_HERE, "g1", "v1", number=2.0)
    assert sentence(broken, STATE) == "breaks affinity group near of priority 2: VM web is here"
