"""Sentences with names: every kind of reason has one, and ids without a name stand as they are."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from ovirt_placement import rules
from ovirt_placement.rules.affinity.filters import HOST_NOT_LISTED, NEGATIVE_PEER_HERE
from ovirt_placement.rules.affinity.groups import GROUP_VIOLATED_BY_VM
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind, sentence
from tests.builders import TOGETHER, group, host, label, snapshot, vm

STATE = snapshot(
    host("h1", name="north"),
    vm("v1", name="web"),
    group("g1", TOGETHER, "v1", name="near"),
    label("l1", "v1"),
)


def kinds() -> list[ReasonKind]:
    """All that some rule declares."""
    names = [module.name for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}.")]
    values = [value for name in names for value in vars(importlib.import_module(name)).values()]
    return list(dict.fromkeys(value for value in values if isinstance(value, ReasonKind)))


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: str(kind.name))
def test_every_kind_is_a_sentence_without_ids(kind: ReasonKind) -> None:
    text = sentence(Reason(kind, "g1", "v1", "h1", 1.5), STATE)
    assert text
    assert not {"{", "}", "v1", "h1", "g1"} & set(text.replace(",", " ").replace(":", " ").split())


def test_unknown_id_stands_as_it_is() -> None:
    text = sentence(Reason(NEGATIVE_PEER_HERE, "g9", "v9", "h9"), STATE)
    assert text == "must not run with VM v9, which is on host h9 (affinity group g9)"


def test_legacy_label_is_called_a_label() -> None:
    text = sentence(Reason(HOST_NOT_LISTED, "l1", "v1"), STATE)
    assert text == "VM web may only run on the hosts of affinity label l1"


def test_violated_negative_group_names_the_vm() -> None:
    violated = Reason(GROUP_VIOLATED_BY_VM, "g1", "v1", number=2.0)
    assert sentence(violated, STATE) == "violates affinity group near of priority 2: VM web is here"
