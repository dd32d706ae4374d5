"""What the engine's API has and the simulator does not: asked for, it is refused, and never quietly left out.

The engine itself refuses elements that its API has not; here both kinds have one answer. What a client
sends for `false`, or empty, asks for nothing and passes.
"""

from __future__ import annotations

from collections.abc import Mapping

from lxml import etree

from ovirt_simulator.http.answers import Refusal, fault

_NOT_SIMULATED = "Not simulated"

#: Parameters of the API that would change an answer; all others are either known here or the engine's API
#: does not know them, and it reads past those.
_PARAMETERS = frozenset(
    {
        "activate",
        "async",
        "auto_pinning_policy",
        "clone_permissions",
        "deploy_hosted_engine",
        "destroy",
        "detail",
        "force",
        "include_active",
        "include_template",
        "JobId",
        "ovf_as_ova",
        "reboot",
        "refresh",
        "report_status",
        "require_consistency",
        "seal",
        "StepId",
        "undeploy_hosted_engine",
        "unregistered",
        "use_active",
    }
)
_NOTHING = ("", "false", "f", "no", "n", "0")

#: By the root of a body: the elements that count, and behind `|` those that are read past, as documented.
_ELEMENTS = {
    "action": "cluster force host migrate_vms_in_affinity_closure reason upgrade_action vm succeeded "
    "upgrade_percent_complete"
    "| use_cloud_init use_sysprep use_initialization filter image timeout",
    "affinity_group": "name description priority positive enforcing cluster vms_rule hosts_rule vms hosts "
    "vm_labels host_labels | broken comment",
    "affinity_label": "name vms hosts has_implicit_affinity_group | read_only comment description",
    "balance": "scheduling_policy_unit | name",
    "cluster": "description scheduling_policy custom_scheduling_policy_properties ha_reservation "
    "name data_center | cpu",
    "disk": "alias name description provisioned_size format sparse disk_profile storage_domains active "
    "bootable interface | content_type shareable wipe_after_delete propagate_errors backup storage_type "
    "initial_size qcow_version",
    "disk_attachment": "active bootable interface disk "
    "| pass_discard read_only uses_scsi_reservation vm template",
    "event": "origin severity custom_id description cluster data_center host vm user flood_rate custom_data "
    "time correlation_id | code name",
    "filter": "position scheduling_policy_unit | name",
    "host": "name cluster",
    "image_transfer": "disk image direction "
    "| backup format inactivity_timeout shallow snapshot timeout_policy",
    "job": "description | auto_cleared external status",
    "nic": "name vnic_profile | interface linked plugged",
    "permission": "role user group | cluster vm",
    "scheduling_policy": "name description properties | locked default_policy",
    "step": "type description | external job status",
    "tag": "name description parent | comment",
    "template": "name description vm | cluster comment",
    "vm": "name description comment cluster template high_availability memory memory_policy "
    "custom_properties "
    "cpu_profile quota instance_type type os console soundcard_enabled initialization cpu placement_policy "
    "disk_attachments | bios cpu_shares delete_protected display io large_icon migration migration_downtime "
    "multi_queues_enabled origin small_icon sso start_paused stateless storage_error_resume_behaviour "
    "time_zone usb",
    "vnic_profile": "name | network pass_through port_mirroring",
    "weight": "factor scheduling_policy_unit | name",
}
_KNOWN = {root: frozenset(names.replace("|", " ").split()) for root, names in _ELEMENTS.items()}
#: Any body may have these of the entity that it began as, and the engine does not take them from there.
_EVERYWHERE = frozenset({"actions", "link"})


def check_parameters(parameters: Mapping[str, str]) -> None:
    """Refuse a parameter that the engine would act on."""
    for name in sorted(_PARAMETERS & set(parameters)):
        if parameters[name].lower() not in _NOTHING:
            raise _refusal(f"the parameter {name!r}")


def check_body(root: etree._Element) -> None:
    """Refuse a body with an element that neither counts nor is said to be read past."""
    known = _KNOWN.get(str(root.tag), frozenset()) | _EVERYWHERE
    for child in root:
        asked = len(child) or child.attrib or (child.text or "").strip().lower() not in ("", "false")
        if asked and child.tag not in known:
            raise _refusal(f"the element {root.tag}/{child.tag}")


def _refusal(what: str) -> Refusal:
    return fault(501, f"The simulator does not know {what}; see its documentation.", _NOT_SIMULATED)
