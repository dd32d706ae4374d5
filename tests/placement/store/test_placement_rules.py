"""Placement rules in the store: what is written is there, with who changed it, and readers of keys learn."""

from __future__ import annotations

import pytest

from ovirt_placement.model import PlacementRule, RuleDomain
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from ovirt_service.errors import UserError
from tests.builders import rule
from tests.placement.store.conftest import Opening

FULL = rule(
    "racks",
    "at_most_per_domain",
    "tag:web db1",
    hosts="h1",
    domain_tags=("rack",),
    domains=(RuleDomain(name="r1", hosts=("h1", "h2")),),
    most=2,
    enforcing=False,
    priority=3.5,
)


@pytest.fixture
def store(opening: Opening) -> RuleStore:
    return opening(RuleStore)


@pytest.fixture
def keys(opening: Opening) -> KeyStore:
    return opening(KeyStore)


def put(store: RuleStore, *rules: PlacementRule, by: str = "ann") -> None:
    store.change(lambda standing: RuleChange(put=rules), changed_by=by)


def test_a_rule_is_known_whole_with_who_changed_it_and_when(store: RuleStore) -> None:
    put(store, FULL)
    (found,) = store.all_rules()
    assert (found.rule, found.changed_by) == (FULL, "ann")
    assert found.changed_at > 1_600_000_000


def test_a_rule_replaces_the_one_of_its_name_and_one_that_says_the_same_stays(store: RuleStore) -> None:
    put(store, rule("a", "x", most=1), rule("b", "x"))
    put(store, rule("a", "x", most=2), rule("b", "x"), by="bob")
    assert [(one.rule.name, one.rule.most, one.changed_by) for one in store.all_rules()] == [
        ("a", 2, "bob"),
        ("b", None, "ann"),
    ]


def test_what_the_decision_raises_changes_nothing(store: RuleStore) -> None:
    put(store, rule("a", "x"))

    def decide(standing: tuple[PlacementRule, ...]) -> RuleChange:
        assert standing == (rule("a", "x"),)
        raise UserError("no")

    with pytest.raises(UserError, match="no"):
        store.change(decide, changed_by="bob")
    assert [one.rule.name for one in store.all_rules()] == ["a"]


def test_readers_of_keys_are_shown_the_rules_and_that_there_are_others(
    store: RuleStore, keys: KeyStore
) -> None:
    before = keys.records()
    put(store, FULL)
    after = keys.records()
    assert (before.rules, after.rules) == ((), (FULL,))
    assert keys.revision() == after.revision != before.revision
    store.change(lambda standing: RuleChange(remove=("racks", "unknown")), changed_by="bob")
    assert keys.records().rules == ()
