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
from ovirt_placement.inventory.sections import Encoder
from ovirt_service.errors import UserError

from .damage import damaged

_ANSWERS = {
    "/clusters": (
        b'<clusters><cluster id="c"><name>c</name><data_center id="d"/><version><major>4</major>'
        b"<minor>7</minor></version>"
        b"<ha_reservation>true</ha_reservation><memory_policy><over_commit><percent>150</percent>"
        b"</over_commit>"
        b'</memory_policy><scheduling_policy id="p"/><custom_scheduling_policy_properties><property>'
        b"<name>a</name>"
        b"<value>1</value></property></custom_scheduling_policy_properties><affinity_groups>"
        b'<affinity_group id="g">'
        b"<name>g</name><priority>1.5</priority><vms_rule><enabled>true</enabled><enforcing>true</enforcing>"
        b'<positive>false</positive></vms_rule><vms><vm id="v"/></vms><hosts><host id="h"/></hosts>'
        b"</affinity_group>"
        b'</affinity_groups><permissions><permission id="q"/></permissions></cluster></clusters>'
    ),
    "/hosts": (
        b'<hosts><host id="h"><name>h</name><cluster id="c"/><status>up</status><memory>17179869184</memory>'
        b"<max_scheduling_memory>8589934592</max_scheduling_memory><cpu><topology><sockets>2</sockets>"
        b"<cores>4</cores>"
        b"<threads>2</threads></topology></cpu><tags/><statistics><statistic>"
        b"<name>cpu.current.user</name><values><value>"
        b"<datum>3.5</datum></value></values></statistic></statistics></host></hosts>"
    ),
    "/vms": (
        b'<vms><vm id="v"><name>v</name><cluster id="c"/><host id="h"/><status>up</status>'
        b"<memory>1073741824</memory>"
        b"<memory_policy><guaranteed>536870912</guaranteed></memory_policy><cpu><topology>"
        b"<sockets>1</sockets>"
        b"<cores>2</cores><threads>1</threads></topology></cpu><start_time>2026-01-01T00:00:00Z</start_time>"
        b"<placement_policy><affinity>migratable</affinity></placement_policy><statistics/><tags><tag>"
        b"<name>t</name></tag>"
        b'</tags><nics><nic id="n"><name>n</name><vnic_profile id="x"/></nic></nics><disk_attachments>'
        b"<disk_attachment "
        b'id="k"><bootable>true</bootable><disk id="k"/></disk_attachment></disk_attachments>'
        b"<permissions><permission "
        b'id="q"><role id="UserRole"/><user id="u"/></permission></permissions></vm></vms>'
    ),
    "/affinitylabels": b'<affinity_labels><affinity_label id="l"><name>l</name><vms><vm id="v"/></vms>'
    b"</affinity_label>"
    b"</affinity_labels>",
    "/datacenters": b'<data_centers><data_center id="d"><name>d</name></data_center></data_centers>',
    "/networks": b'<networks><network id="w"><name>w</name></network></networks>',
    "/vnicprofiles": b'<vnic_profiles><vnic_profile id="x"><name>x</name><network id="w"/>'
    b"</vnic_profile></vnic_profiles>",
    "/events": b'<events><event id="7"><code>62</code><time>2026-01-01T00:00:00Z</time>'
    b"<description>d</description>"
    b'<vm id="v"/></event></events>',
    "/schedulingpolicyunits": b'<scheduling_policy_units><scheduling_policy_unit id="s"><name>s</name>'
    b"<type>filter</type>"
    b"<enabled>true</enabled><internal>false</internal></scheduling_policy_unit></scheduling_policy_units>",
    "/schedulingpolicies/p": b'<scheduling_policy id="p"><filters><filter id="s"/></filters><balances/>'
    b"</scheduling_policy>",
    "/schedulingpolicies/p/weights": b'<weights><weight id="s"><factor>2</factor></weight></weights>',
}
_TOKENS = (
    *(
        b"<",
        b">",
        b"/>",
        b"</vm>",
        b"<vms>",
        b"</vms>",
        b"<html>",
        b"<fault>",
        b"<none/>",
        b"&amp;",
        b"&x;",
        b"&#0;",
    ),
    *(
        b"<!DOCTYPE a [<!ENTITY x 'y'>]>",
        b"<![CDATA[",
        b"<!--",
        b"-->",
        b"<?pi?>",
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
    ),
    *(
        b"9" * 20,
        b"9" * 5000,
        b"-1",
        b"nan",
        b"inf",
        b"1e999",
        b"",
        b"true",
        b"0001-01-01T00:00:00+23:59",
        b"\xed\xa0\x80",
    ),
    *(b"<a>" * 300, b'id="', b"<link rel='", b"<?xml version='1.0' encoding='utf-7'?>", b"\n\x1b[2J"),
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
        Encoder().encode(snapshot, 1)
        msgspec.json.encode(snapshot)
    with contextlib.suppress(UserError, ValueError):
        read_events(connection, at_most=10)
    fault_of(
        damaged(b"<action><fault><reason>r</reason><detail>[d.]</detail></fault></action>", _TOKENS, chance)
    )
