"""Names that match nothing: found in settings, rules, keys and policies, said once, and patterns honoured."""

import logging
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client import Gauge

from ovirt_enforcer.cli.main import main
from ovirt_enforcer.settings import EnforcerSettings, MaintenanceSettings, Mode, Window
from ovirt_enforcer.watchers.engine_watch import NameWatch
from ovirt_placement.answers.configured import ConfiguredName, names_of, unmatched_names
from ovirt_placement.config import DomainSettings, HaSettings
from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.model.names import value_of
from ovirt_placement.model.record import RuleDomain
from ovirt_placement.rules.placement_rules.kind import resolved_rules
from tests.builders import APART, cluster, group, host, key, node_key, rule, snapshot, vm
from tests.enforcer.gates.judging import gates
from tests.golden.questions import STATES
from tests.paths import DATA
from tests.placement.rules.placement_keys.nodes import keyed

STATE = state_file.load(STATES["names"])
CONFIG = DATA / "cases" / "names.toml"
#: Where the configuration of the case is wrong.
FAULTS = (
    '[enforcer] groups: there is no affinity group or placement rule aprat; did you mean "apart"?',
    '[enforcer] exclude_vms: there is no VM A; did you mean "a"?',
    '[enforcer] exclude_vms: there is no VM B; did you mean "b"?',
    '[enforcer] exclude_groups: there is no affinity group or placement rule aprat; did you mean "apart"?',
    '[enforcer] windows[0].clusters: there is no cluster cc; did you mean "c"?',
)
_LETTERS = "ab*"


def said(state: Snapshot, *settings: EnforcerSettings | HaSettings) -> list[str]:
    names = [one for each in settings for one in names_of(_SECTIONS[type(each)], each)]
    return [one.sentence for one in unmatched_names(state, names)]


_SECTIONS: dict[type, str] = {EnforcerSettings: "enforcer", HaSettings: "ha"}


def test_status_names_each_and_what_it_is_like(capsys: pytest.CaptureFixture[str]) -> None:
    """The commands of the enforcer and of the placement answer alike."""
    status = main(["status", "--state", str(STATES["names"]), "--config", str(CONFIG)])
    text = capsys.readouterr().out
    assert status == 3
    assert "5 names match nothing: [enforcer] groups:" in text
    for fault in FAULTS:
        assert f"\nMatches nothing: {fault}\n" in text


def test_the_log_says_each_once_for_each_change(caplog: pytest.LogCaptureFixture) -> None:
    gauge = Gauge("names", "", registry=None)
    settings = EnforcerSettings(exclude_vms=("a", "gone"), exclude_tag="no-such-tag")
    watch = NameWatch(tuple(names_of("enforcer", settings)), lambda: frozenset(), gauge)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            watch.observe(STATE)
        assert gauge._value.get() == 2
        renamed = replace(STATE, vms=tuple(replace(one, name=f"{one.name}-old") for one in STATE.vms))
        watch.observe(replace(renamed, vms=tuple(replace(one, id=f"{one.id}2") for one in renamed.vms)))
        assert gauge._value.get() == 3
        watch.observe(STATE)
    assert [record.getMessage().split(":")[0:2] for record in caplog.records] == [
        ["[enforcer] exclude_tag", " there is no tag no-such-tag"],
        ["[enforcer] exclude_vms", " there is no VM gone"],
        ["[enforcer] exclude_vms", " there is no VM a"],
        ["[enforcer] exclude_vms", " a matches something again, or is not named any more"],
    ]


def test_a_tag_that_nobody_was_asked_for_is_not_judged() -> None:
    assert not said(STATE, EnforcerSettings(exclude_tag="other"))
    assert not unmatched_names(STATE, names_of("enforcer", EnforcerSettings()), frozenset())


def test_all_settings_that_hold_names_are_looked_at() -> None:
    settings = EnforcerSettings(
        clusters={"no": Mode.OBSERVE, "*": Mode.ENFORCE},
        groups={"no": Mode.OBSERVE},
        exclude_vms=("no",),
        exclude_hosts=("no*",),
        exclude_groups=("no",),
        windows=(Window(start="0 22 * * *", hours=1, clusters=("no",)),),
        blackouts=(Window(start="0 22 * * *", hours=1, clusters=("no",)),),
    )
    ha = HaSettings(domain_tags=("rack-",), domains=(DomainSettings(name="a", hosts=("no",)),))
    assert [one.split(":")[0] for one in said(STATE, settings, ha)] == [
        "[enforcer] clusters",
        "[enforcer] groups",
        "[enforcer] exclude_vms",
        "[enforcer] exclude_hosts",
        "[enforcer] exclude_groups",
        "[enforcer] windows[0].clusters",
        "[enforcer] blackouts[0].clusters",
        "[ha] domain_tags",
        "[ha] domains[0].hosts",
    ]


def test_rules_keys_and_policies_are_looked_at_as_well() -> None:
    exclusive = rule(
        "r",
        "exclusive_hosts",
        "web-* db-* tag:no group:no label:no weeb-1",
        hosts="h* x*",
        domain_tags=("rack-",),
        domains=(RuleDomain(name="d", hosts=("gone",)),),
    )
    keys = (
        key("gold", weight=5.0, resource="v1"),
        key("silver", weight=5.0, resource="v9"),
        node_key("h1", "silver"),
    )
    properties = {"ha_admission_domains": "r1:h1,h7", "ha_admission_domain_tags": "room-"}
    parts = cluster(scheduling_properties=properties), host("h1"), vm("v1", name="web-1"), exclusive
    state = keyed(*parts, keys=keys)
    assert [(one.where, one.word) for one in unmatched_names(state)] == [
        *(("placement rule r", word) for word in ("x*", "db-*", "tag:no", "group:no", "label:no", "weeb-1")),
        *(("placement rule r", word) for word in ("gone", "rack-*")),
        ("placement key silver", "v9"),
        ("server web-1: system key gold", "gold"),
        ("cluster cluster1, scheduling property ha_admission_domains", "h7"),
        ("cluster cluster1, scheduling property ha_admission_domain_tags", "room-"),
    ]
    assert resolved_rules(state)[0].vms == ("v1",)
    assert resolved_rules(state)[0].hosts == frozenset({"h1"})


def test_a_pattern_protects_in_maintenance_too_unless_that_is_not_wished() -> None:
    state = state_file.load(STATES["names-with-pattern"])
    (protected,) = (one for one in state.vms if one.name == "pbs-1")
    assert protected.host is not None
    emptied = replace(state, draining_hosts=(protected.host,))
    for moves, frozen in ((False, {protected.id: "pbs-1 is among exclude_vms"}), (True, {})):
        settings = EnforcerSettings(
            exclude_vms=("pbs-*",), maintenance=MaintenanceSettings(moves_excluded_vms=moves)
        )
        assert gates(settings).frozen(emptied) == frozen
        assert gates(settings).frozen(state) == {protected.id: "pbs-1 is among exclude_vms"}


@given(
    words=st.lists(st.text(_LETTERS, min_size=1, max_size=4), max_size=4),
    names=st.sets(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=5),
)
def test_a_name_is_reported_if_and_only_if_nothing_is_excluded_by_it(
    words: list[str], names: set[str]
) -> None:
    """Python's own matching of file names is the oracle: `*` is the one sign that it and ours share here."""
    state = snapshot(host("h1"), *(vm(f"id-{name}", "h1", name=name) for name in sorted(names)))
    settings = EnforcerSettings(mode=Mode.ENFORCE, exclude_vms=tuple(words))
    reported = {one.word for one in unmatched_names(state, names_of("enforcer", settings))}
    expected = {word for word in words if not any(fnmatchcase(name, word) for name in names)}
    assert reported == expected
    frozen = set(gates(settings).frozen(state))
    assert frozen == {f"id-{name}" for name in names if any(fnmatchcase(name, word) for word in words)}


@given(
    values=st.dictionaries(st.text(_LETTERS, min_size=1, max_size=3), st.integers(), max_size=4),
    name=st.text("ab", min_size=1, max_size=3),
)
def test_of_several_patterns_the_most_specific_counts(values: dict[str, int], name: str) -> None:
    fitting = [word for word in values if fnmatchcase(name, word)]
    found = value_of(values, "no-such-id", name)
    if name in values:
        assert found == values[name]
    elif fitting:
        longest = max(map(len, fitting))
        assert found in {values[word] for word in fitting if len(word) == longest}
    else:
        assert found is None


def test_a_rule_of_a_group_takes_that_of_its_own_cluster() -> None:
    state = snapshot(
        cluster("c1"), cluster("c2"), vm("a", cluster="c1"), vm("b", cluster="c2"),
        group("g1", APART, "a", cluster="c1", name="db"), group("g2", APART, "b", cluster="c2", name="db"),
        rule("r", "at_most_per_host", "group:db", cluster="c1", most=1),
    )  # fmt: skip
    (found,) = resolved_rules(state)
    assert (found.vms, found.problems) == (("a",), ())


def test_what_the_configuration_names_is_found_by_its_types() -> None:
    assert list(names_of("enforcer", EnforcerSettings(exclude_vms=("x",)))) == [
        ConfiguredName("[enforcer] exclude_vms", "VM", "x")
    ]
