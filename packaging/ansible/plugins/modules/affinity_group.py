"""Add, change and remove an affinity group."""

DOCUMENTATION = r"""
module: affinity_group
short_description: add, change and remove an affinity group
description:
  - Makes an affinity group what is given, as C(ovirt-placement groups import) does.
  - What the engine would refuse is refused before it is asked, with the reason.
version_added: "1.0.0"
options:
  name:
    description: Its name, which is unique over all clusters.
    type: str
    required: true
  state:
    description: Whether there is to be such a group.
    type: str
    choices: [present, absent]
    default: present
  cluster:
    description: >-
      Its cluster, by name or id; needed where it is to be there. With O(state=absent), a group of another
      cluster stays.
    type: str
  description:
    description: Its description; else what is there stays.
    type: str
  priority:
    description: Higher matters more among soft rules.
    type: float
    default: 1.0
  vms_rule:
    description: Whether its VMs run together (positive) or apart (negative).
    type: str
    choices: [positive, negative, disabled]
    default: disabled
  vms_enforcing:
    description: Whether that must be so, or should.
    type: bool
    default: false
  hosts_rule:
    description: Whether its VMs run on its hosts (positive) or off them (negative).
    type: str
    choices: [positive, negative, disabled]
    default: disabled
  hosts_enforcing:
    description: Whether that must be so, or should.
    type: bool
    default: false
  vms:
    description: All its VMs, by name or id.
    type: list
    elements: str
    default: []
  hosts:
    description: All its hosts, by name or id.
    type: list
    elements: str
    default: []
  vm_labels:
    description: All affinity labels whose VMs belong to it.
    type: list
    elements: str
    default: []
  host_labels:
    description: All affinity labels whose hosts belong to it.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - ovirt_placement.core.command
  - ovirt_placement.core.command.changing
"""

EXAMPLES = r"""
- name: Keep web servers apart, unless that costs more than five migrations
  ovirt_placement.core.affinity_group:
    name: web-apart
    cluster: blue
    vms_rule: negative
    vms_enforcing: true
    priority: 5
    vms: [web1, web2]
    fail_if: ["moves>5"]
"""

RETURN = r"""
answer:
  description: What the command prints with C(--json); see docs/json.md of ovirt-placement.
  returned: unless a group that is to be absent is not there
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ovirt_placement.core.plugins.module_utils.command import (
    ask,
    change,
    changing_options,
    given,
    written,
)

_RULE = {"type": "str", "choices": ["positive", "negative", "disabled"], "default": "disabled"}
_MEMBERS = {"type": "list", "elements": "str", "default": []}
_FIELDS = {
    "cluster": {"type": "str"},
    "description": {"type": "str"},
    "priority": {"type": "float", "default": 1.0},
    "vms_rule": _RULE,
    "vms_enforcing": {"type": "bool", "default": False},
    "hosts_rule": _RULE,
    "hosts_enforcing": {"type": "bool", "default": False},
    "vms": _MEMBERS,
    "hosts": _MEMBERS,
    "vm_labels": _MEMBERS,
    "host_labels": _MEMBERS,
}


def main():
    module = AnsibleModule(
        argument_spec=changing_options(
            name={"type": "str", "required": True},
            state={"type": "str", "choices": ["present", "absent"], "default": "present"},
            **_FIELDS,
        ),
        required_if=[("state", "present", ["cluster"])],
        supports_check_mode=True,
    )
    name = module.params["name"]
    if module.params["state"] == "absent":
        cluster = module.params["cluster"]
        only = ["--cluster=%s" % cluster] if cluster else []
        listed, _ = ask(module, "ovirt-placement", ["groups", "list"] + only)
        if name not in [group["name"] for group in listed["groups"]]:
            module.exit_json(changed=False)
        change(module, ["groups", "remove"], [name])
    group = given({field: module.params[field] for field in _FIELDS})
    with written({"format": 1, "groups": [dict(group, name=name)]}) as file:
        change(module, ["groups", "import", file])


if __name__ == "__main__":
    main()
