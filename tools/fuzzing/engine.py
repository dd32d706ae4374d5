"""The reader of the engine's answers: each gives a snapshot that can be published, or what is wrong."""

from __future__ import annotations

import contextlib
import random
from typing import Any, cast

import msgspec
from lxml import etree

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import fault_of
from ovirt_placement.engine.reading.events import read_events
from ovirt_placement.engine.reading.topology import read_snapshot
from ovirt_placement.inventory.publication import EMPTY, find_changes
from ovirt_service.errors import UserError

from . import damaged

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
_TOKENS = (
    *b"< > /> </vm> <vms> </vms> <html> <fault> <none/> &amp; &x; &#0; <![CDATA[ <!-- --> <?pi?>".split(b" "),
    *b"\x00 \xff\xfe \xef\xbb\xbf -1 nan inf 1e999 true 0001-01-01T00:00:00+23:59 \xed\xa0\x80".split(b" "),
    *(b"<!DOCTYPE a [<!ENTITY x 'y'>]>", b"9" * 20, b"9" * 5000, b"", *(b"<a>" * 300, b'id="')),
    *(b"<link rel='", b"<?xml version='1.0' encoding='utf-7'?>", b"\n\x1b[2J"),
)


class _Answering:
    """An engine of which one answer, or more, is spoilt."""

    url = "http://engine/ovirt-engine/api"
    settings = EngineSettings(url=url)

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._spoilt = set(chance.sample(sorted(_ANSWERS), chance.randint(1, 3)))

    def get(self, path: str, **query: Any) -> bytes:
        answer = _ANSWERS.get(path, b"<none/>")
        return damaged(answer, _TOKENS, self._chance) if path in self._spoilt else answer


def attempt(chance: random.Random) -> None:
    connection = cast("EngineConnection", _Answering(chance))
    try:
        snapshot = read_snapshot(connection, statistics=True, devices=True)
    except (UserError, ValueError, etree.XMLSyntaxError):
        snapshot = None
    if snapshot is not None:
        find_changes(EMPTY, snapshot)
        msgspec.json.encode(snapshot)
    with contextlib.suppress(UserError, ValueError):
        read_events(connection, at_most=10)
    fault_of(
        damaged(b"<action><fault><reason>r</reason><detail>[d.]</detail></fault></action>", _TOKENS, chance)
    )
