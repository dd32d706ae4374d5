"""Fuzzers: each makes inputs for one reader by chance, and checks what may never happen to it.

An attempt makes one input, has it read, and raises for what may not be.
"""

import contextlib
import json
import random
import tempfile
import xmlrpc.client
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import fault_of
from ovirt_placement.engine.events import read_events
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.inventory.publication import (
    EMPTY,
    Decide,
    Moments,
    Publication,
    Refresh,
    Wake,
    decoded,
    encoded,
    find_changes,
    now,
    question_decoder,
)
from ovirt_placement.inventory.service import publisher
from ovirt_placement.model import PlacementKey, Snapshot, state_file, yaml_files
from ovirt_scheduler_proxy import xmlrpc as own
from ovirt_scheduler_proxy.xmlrpc import Fault, read_call, read_question
from ovirt_service.errors import UserError
from tests import builders as build
from tests.placement.model.full_state import full_state, loaded


def damaged(data: bytes, tokens: Sequence[bytes], chance: random.Random, most: int = 4) -> bytes:
    """The data with one to `most` pieces cut, repeated, or replaced by bytes or by one of the tokens."""
    found = bytearray(data)
    for _ in range(chance.randint(1, most)):
        start = chance.randrange(len(found) + 1)
        end = min(len(found), start + chance.choice([0, 0, 1, 1, 5, 40]))
        pieces = (chance.choice(tokens), chance.randbytes(chance.randint(0, 6)), bytes(found[start:end]) * 3)
        found[start:end] = chance.choice(pieces)
    return bytes(found)


# -- The reader of XML-RPC calls: each input gives a call or a fault.
_MOST_ELEMENTS = 5000

_METHODS = ("runFilters", "runCostFunctions", "runLoadBalancing", "discover", "noSuchMethod", "")

_TEXTS = ("", " ", "h1", "Keep", "é保\U0001f600", "a\nb", "&<>]]>", "x" * 300, "0" * 32)

XML_TOKENS = (
    *(b"<value>", b"</value>", b"<array><data>", b"</data></array>", b"<struct>", b"</struct>", b"<member>"),
    *(b"<name>", b"<int>", b"<i4>", b"<string>", b"</param>", b"<param>", b"<ex:nil/>", b"<nil/>"),
    *(b"<ex:i8>1</ex:i8>", b"<double>1e999</double>", b"<boolean>2</boolean>", b"<base64>=</base64>"),
    *(b"<dateTime.iso8601>x</dateTime.iso8601>", b"<!DOCTYPE a [<!ENTITY x 'y'>]>", b"&x;", b"&lt;", b"&#0;"),
    *(b"<![CDATA[", b"]]>", b"<!--", b"-->", b"<?pi?>", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf"),
    *(b"encoding='utf-16'", b"encoding='utf-7'", b"encoding='x'", b"9" * 20, b"-1", b"\xed\xa0\x80"),
)


def read_a_call(chance: random.Random) -> None:
    """What is refused is refused shortly, and so that a client can read it."""
    try:
        read_question(*read_call(damaged(_call(chance), XML_TOKENS, chance), _MOST_ELEMENTS))
    except Fault as fault:
        refusal = fault
    else:
        return
    assert len(refusal.sentence) < 400, refusal.sentence
    with pytest.raises(xmlrpc.client.Fault):
        xmlrpc.client.loads(own.fault(refusal.code, refusal.sentence))


def _call(chance: random.Random) -> bytes:
    """A call, most often one that the engine might make."""
    method = chance.choice(_METHODS)
    parameters: tuple[Any, ...]
    if chance.random() < 0.7:
        hosts = [f"{chance.getrandbits(32):08x}" for _ in range(chance.randint(0, 12))]
        units = [chance.choice(_TEXTS) for _ in range(chance.randint(0, 3))]
        asked = [[unit, chance.randint(-9, 9)] for unit in units] if method == "runCostFunctions" else units
        parameters = (asked, hosts, "vm", {chance.choice(_TEXTS): chance.choice((*_TEXTS, None))})
    else:
        parameters = tuple(_value(chance, 0) for _ in range(chance.randint(0, 5)))
    body = xmlrpc.client.dumps(parameters, method, allow_none=True)
    if chance.random() < 0.5:
        body = body.replace("\n", "")
    return body.encode()


def _value(chance: random.Random, depth: int) -> Any:
    plain = (None, True, -1, 2**31 - 1, 0.5, float("nan"), b"\0", *_TEXTS)
    what = chance.randrange(4) if depth < 5 else 0
    if what == 2:
        return [_value(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    if what == 3:
        return {text: _value(chance, depth + 1) for text in chance.choices(_TEXTS, k=2)}
    return chance.choice(plain)


# -- The reader of the engine's answers: each gives a snapshot that can be published, or what is wrong.
_ANSWERS = {
    "/clusters": (
        b'<clusters><cluster id="c"><name>c</name><data_center id="d"/><version><major>4</major>'
        b"<minor>7</minor></version><ha_reservation>true</ha_reservation><memory_policy><over_commit>"
        b'<percent>150</percent></over_commit></memory_policy><scheduling_policy id="p"/>'
        b"<custom_scheduling_policy_properties><property><name>a</name><value>1</value></property>"
        b'</custom_scheduling_policy_properties><affinity_groups><affinity_group id="g">'
        b"<name>g</name><priority>1.5</priority><vms_rule><enabled>true</enabled>"
        b'<enforcing>true</enforcing><positive>false</positive></vms_rule><vms><vm id="v"/></vms>'
        b'<hosts><host id="h"/></hosts></affinity_group></affinity_groups><permissions>'
        b'<permission id="q"/></permissions></cluster></clusters>'
    ),
    "/hosts": (
        b'<hosts><host id="h"><name>h</name><cluster id="c"/><status>up</status>'
        b"<memory>17179869184</memory><max_scheduling_memory>8589934592</max_scheduling_memory><cpu>"
        b"<topology><sockets>2</sockets><cores>4</cores><threads>2</threads></topology></cpu><tags/>"
        b"<statistics><statistic><name>cpu.current.user</name><values><value><datum>3.5</datum>"
        b"</value></values></statistic></statistics></host></hosts>"
    ),
    "/vms": (
        b'<vms><vm id="v"><name>v</name><cluster id="c"/><host id="h"/><status>up</status>'
        b"<memory>1073741824</memory><memory_policy><guaranteed>536870912</guaranteed>"
        b"</memory_policy><cpu><topology><sockets>1</sockets><cores>2</cores><threads>1</threads>"
        b"</topology></cpu><start_time>2026-01-01T00:00:00Z</start_time><placement_policy>"
        b"<affinity>migratable</affinity></placement_policy><statistics/><tags><tag><name>t</name>"
        b'</tag></tags><nics><nic id="n"><name>n</name><vnic_profile id="x"/></nic></nics>'
        b'<disk_attachments><disk_attachment id="k"><bootable>true</bootable><disk id="k"/>'
        b'</disk_attachment></disk_attachments><permissions><permission id="q"><role id="UserRole"/>'
        b'<user id="u"/></permission></permissions></vm></vms>'
    ),
    "/affinitylabels": (
        b'<affinity_labels><affinity_label id="l"><name>l</name><vms><vm id="v"/></vms>'
        b"</affinity_label></affinity_labels>"
    ),
    "/datacenters": (b'<data_centers><data_center id="d"><name>d</name></data_center></data_centers>'),
    "/networks": (b'<networks><network id="w"><name>w</name></network></networks>'),
    "/vnicprofiles": (
        b'<vnic_profiles><vnic_profile id="x"><name>x</name><network id="w"/></vnic_profile></vnic_profiles>'
    ),
    "/events": (
        b'<events><event id="7"><code>62</code><time>2026-01-01T00:00:00Z</time>'
        b'<description>d</description><vm id="v"/></event></events>'
    ),
    "/schedulingpolicyunits": (
        b'<scheduling_policy_units><scheduling_policy_unit id="s"><name>s</name><type>filter</type>'
        b"<enabled>true</enabled><internal>false</internal></scheduling_policy_unit>"
        b"</scheduling_policy_units>"
    ),
    "/schedulingpolicies/p": (
        b'<scheduling_policy id="p"><filters><filter id="s"/></filters><balances/></scheduling_policy>'
    ),
    "/schedulingpolicies/p/weights": (b'<weights><weight id="s"><factor>2</factor></weight></weights>'),
}
_MARKUP = (
    *b"< > /> </vm> <vms> </vms> <html> <fault> <none/> &amp; &x; &#0; <![CDATA[ <!-- --> <?pi?>".split(b" "),
    *b"\x00 \xff\xfe \xef\xbb\xbf -1 nan inf 1e999 true 0001-01-01T00:00:00+23:59 \xed\xa0\x80".split(b" "),
    *(b"<!DOCTYPE a [<!ENTITY x 'y'>]>", b"9" * 20, b"9" * 5000, b"", *(b"<a>" * 300, b'id="')),
    *(b"<link rel='", b"<?xml version='1.0' encoding='utf-7'?>", b"\n\x1b[2J"),
)


class _Answering(EngineConnection):
    """An engine of which one answer, or more, is spoilt."""

    def __init__(self, chance: random.Random) -> None:
        settings = EngineSettings(url="https://engine/ovirt-engine/api", username="admin@internal")
        super().__init__(settings, {"OVIRT_PASSWORD": "secret"})
        self._chance = chance
        self._spoilt = set(chance.sample(sorted(_ANSWERS), chance.randint(1, 3)))

    def get(self, path: str, **query: str | int | bool) -> bytes:
        answer = _ANSWERS.get(path, b"<none/>")
        return damaged(answer, _MARKUP, self._chance) if path in self._spoilt else answer


def read_an_engine(chance: random.Random) -> None:
    connection = _Answering(chance)
    try:
        snapshot = read_snapshot(connection, statistics=True, devices=True)
    except UserError:
        snapshot = None
    if snapshot is not None:
        find_changes(EMPTY, snapshot)
        msgspec.json.encode(snapshot)
    with contextlib.suppress(UserError, ValueError):
        read_events(connection, at_most=10)
    fault_of(
        damaged(b"<action><fault><reason>r</reason><detail>[d.]</detail></fault></action>", _MARKUP, chance)
    )


# -- What the inventory service reads of others: questions at its socket, and the state that it saved.
_PACKED = (b"\xc0", b"\x90", b"\xdc\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xa5value", b"\xcb\x7f\xf0", b"type")
_QUESTIONS = tuple(
    encoded(one)
    for one in (
        Refresh(1.0, vm="v"),
        Wake(3),
        Decide("filter", "AffinityFilter", ["h1", "h2"], "v", {"a": "b"}),
    )
)
_FOLDER = tempfile.TemporaryDirectory()


_SNAPSHOT = loaded(full_state())


def _saved() -> bytes:
    folder = Path(_FOLDER.name)
    publisher.save_state(folder, Publication(7, Moments(now(), store_asked_at=now()), _SNAPSHOT))
    return (folder / publisher.STATE_FILE).read_bytes()


_STATE = _saved()


def restore_an_inventory(chance: random.Random) -> None:
    """What is spoilt is refused in words, or is none the worse."""
    with contextlib.suppress(msgspec.MsgspecError, ValueError):
        encoded(decoded(damaged(chance.choice(_QUESTIONS), _PACKED, chance), question_decoder.decode))
    (Path(_FOLDER.name) / publisher.STATE_FILE).write_bytes(damaged(_STATE, _PACKED, chance))
    found = publisher.restore_state(Path(_FOLDER.name), 0.0)
    assert found is None or found.snapshot == _SNAPSHOT


# -- The reader of state files: each input gives a state that is read again as it is, or what is wrong.
_JSON = (
    *b'{ } [ ] , : " null true -1 1e999 0.5 NaN \\u0000 "v1" "h" "up" "id": \\ud800 \xff \x00'.split(b" "),
    *(b'"format": 2', b"9" * 30, b"[" * 2000, b'{"a":' * 2000),
)


@cache
def _state() -> bytes:
    return state_file.dumps(
        build.snapshot(build.host("h"), build.vm("v1", "h"), build.vm("v2"), build.group("g", vms="v1 v2"))
    )


def read_a_state(chance: random.Random) -> None:
    try:
        snapshot = state_file.loads(damaged(_state(), _JSON, chance))
    except UserError:
        return
    assert state_file.loads(state_file.dumps(snapshot)) == snapshot


# -- The reader of key files: each input gives keys that are read again as they are, or what is wrong.
_YAML = (
    *b"{ } [ ] , : \" ' | > &a *a !! null yes .inf .nan 0x1f 1:30 2026-01-01 !!python/object:a".split(b" "),
    *b"--- ... # \xff \x00 \xe2\x80\xa8".split(b" "),
    *(b": ", b"- ", b"\n", b"\n  ", b"<<: ", b"!!binary ", b"%YAML 3", b"\t", b"? "),
    *(b"9" * 5000, b"[" * 500, b"- " * 500),
)


@cache
def _world() -> Snapshot:
    return build.snapshot(build.host("h1"), build.host("h2"), build.vm("v1", "h1"))


_KEYS = (
    PlacementKey("node", "h1", "system", "Speed", 1.5),
    PlacementKey("node", "h2", "system", "Speed", 2.0),
    PlacementKey("server", "v1", "customer", "Speed", "fast", 0.5),
)


def _as_yaml(keys: Sequence[PlacementKey]) -> str:
    return yaml_files.encode(yaml_files.described_keys(keys, _world()))


@cache
def _files() -> list[bytes]:
    """Each key alone and all together, as YAML and as JSON: short files are read in less time."""
    chosen = [*((key,) for key in _KEYS), _KEYS]
    described = [json.dumps(yaml_files.described_keys(keys, _world())) for keys in chosen]
    return [text.encode() for text in (*map(_as_yaml, chosen), *described)]


def read_keys(chance: random.Random) -> None:
    try:
        keys = yaml_files.decode_keys(damaged(chance.choice(_files()), _YAML, chance), _world())
    except UserError:
        return
    again = yaml_files.decode_keys(_as_yaml(keys).encode(), _world())
    assert sorted(map(repr, again)) == sorted(map(repr, keys))


#: The attempts, by what is read.
FUZZERS: dict[str, Callable[[random.Random], None]] = {
    "xmlrpc": read_a_call,
    "engine": read_an_engine,
    "inventory": restore_an_inventory,
    "state_file": read_a_state,
    "key_file": read_keys,
}
