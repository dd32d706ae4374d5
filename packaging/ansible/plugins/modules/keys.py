"""Set placement keys."""

DOCUMENTATION = r"""
module: keys
short_description: set placement keys
description:
  - Sets placement keys as C(ovirt-placement keys import) does, all of them or none.
version_added: "1.0.0"
options:
  keys:
    description: Keys on objects of a level, as in a file of keys.
    type: list
    elements: dict
    default: []
    suboptions:
      level:
        description: What it is set on, such as C(server) for a VM.
        type: str
        required: true
      resource:
        description: The name or id of what it is set on.
        type: str
        required: true
      name:
        description: The name of the key.
        type: str
        required: true
      value:
        description: A number.
        type: float
        required: true
      weight:
        description: A number.
        type: float
      class:
        description: Whose key it is; else that of O(setter), else the operator's.
        type: str
        choices: [system, be, customer]
  node_keys:
    description: Keys of hosts, each with a value for every host of a cluster.
    type: list
    elements: dict
    default: []
    suboptions:
      cluster:
        description: The cluster, by name or id.
        type: str
        required: true
      name:
        description: The name of the key.
        type: str
        required: true
      values:
        description: The value of each host, by its name or id.
        type: dict
        required: true
      weight:
        description: A number, of a sticky key.
        type: float
      sticky:
        description: Whether VMs that start on a host take a copy.
        type: bool
  replace:
    description: Whether all other keys are removed; with O(setter), those of that class.
    type: bool
    default: false
  setter:
    description: Whose keys these are.
    type: str
    choices: [operator, billing-entity, customer]
extends_documentation_fragment:
  - ovirt_placement.core.command
  - ovirt_placement.core.command.changing
"""

EXAMPLES = r"""
- name: Let web1 prefer rack 1
  ovirt_placement.core.keys:
    node_keys:
      - cluster: blue
        name: rack
        values: {node1: 1, node2: 2}
    keys:
      - level: server
        resource: web1
        name: rack
        value: 1
        weight: 5
"""

RETURN = r"""
answer:
  description: What the command prints with C(--json); see docs/json.md of ovirt-placement.
  returned: always
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ovirt_placement.core.plugins.module_utils.command import (
    change,
    changing_options,
    given,
    written,
)

_KEY = {
    "level": {"type": "str", "required": True},
    "resource": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
    "value": {"type": "float", "required": True},
    "weight": {"type": "float"},
    "class": {"type": "str", "choices": ["system", "be", "customer"]},
}
_NODE_KEY = {
    "cluster": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
    "values": {"type": "dict", "required": True},
    "weight": {"type": "float"},
    "sticky": {"type": "bool"},
}


def main():
    module = AnsibleModule(
        argument_spec=changing_options(
            keys={"type": "list", "elements": "dict", "default": [], "options": _KEY, "no_log": False},
            node_keys={
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": _NODE_KEY,
                "no_log": False,
            },
            replace={"type": "bool", "default": False},
            setter={"type": "str", "choices": ["operator", "billing-entity", "customer"]},
        ),
        supports_check_mode=True,
    )
    content = {name: [given(one) for one in module.params[name]] for name in ("keys", "node_keys")}
    with written(dict(content, format=1)) as file:
        words = ["keys", "import", file]
        if module.params["replace"]:
            words.append("--replace")
        if module.params["setter"]:
            words += ["--as", module.params["setter"]]
        change(module, words)


if __name__ == "__main__":
    main()
