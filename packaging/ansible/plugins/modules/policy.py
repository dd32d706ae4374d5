"""Have placement rules."""

DOCUMENTATION = r"""
module: policy
short_description: have placement rules
description:
  - Makes placement rules what is given, as C(ovirt-placement rules apply) does, all of them or none.
version_added: "1.0.0"
options:
  rules:
    description: The rules, as in a file of rules; see docs/placement-rules.md of ovirt-placement.
    type: list
    elements: dict
    required: true
  exclusive:
    description: Whether all other rules are removed.
    type: bool
    default: true
  force:
    description: Whether rules are written that name what is not there, or that cannot be satisfied.
    type: bool
    default: false
extends_documentation_fragment:
  - ovirt_placement.core.command
  - ovirt_placement.core.command.changing
"""

EXAMPLES = r"""
- name: At most two web servers on a host
  ovirt_placement.core.policy:
    rules:
      - name: web
        kind: at_most_per_host
        cluster: blue
        vms: [web1, web2, web3]
        most: 2
    fail_if: ["moves>5"]
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
    written,
)


def main():
    module = AnsibleModule(
        argument_spec=changing_options(
            rules={"type": "list", "elements": "dict", "required": True},
            exclusive={"type": "bool", "default": True},
            force={"type": "bool", "default": False},
        ),
        supports_check_mode=True,
    )
    with written({"format": 1, "rules": module.params["rules"]}) as file:
        words = ["rules", "apply" if module.params["exclusive"] else "import", file]
        change(module, words + (["--force"] if module.params["force"] else []))


if __name__ == "__main__":
    main()
