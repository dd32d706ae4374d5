"""Have a scheduling policy with the units of ovirt-placement."""

DOCUMENTATION = r"""
module: scheduling_policy
short_description: have a scheduling policy with the units of ovirt-placement
description:
  - Makes a scheduling policy or brings it up to date, as C(ovirt-placement setup) does.
  - Lets clusters use it.
version_added: "1.0.0"
options:
  policy:
    description: Its name; else ovirt-placement.
    type: str
  state:
    description: Whether the units are to be in it; where absent, what was before is given back.
    type: str
    choices: [present, absent]
    default: present
  clusters:
    description: The clusters that are to use it, by name or id.
    type: list
    elements: str
    default: []
  all_policies:
    description: Whether all policies that clusters use are meant.
    type: bool
    default: false
  factors:
    description: How much weights count, by the name of the unit.
    type: dict
    default: {}
  properties:
    description: Parameters of units.
    type: dict
    default: {}
  placement_keys:
    description: Whether the units of placement keys are in it, too.
    type: bool
    default: false
  ha_admission:
    description: Whether starts that take the room of an HA reservation are refused, or the last choice.
    type: str
    choices: [hard, soft]
extends_documentation_fragment:
  - ovirt_placement.core.command
  - ovirt_placement.core.command.changing
"""

EXAMPLES = r"""
- name: Let the cluster blue place by our units
  ovirt_placement.core.scheduling_policy:
    clusters: [blue]
    placement_keys: true
"""

RETURN = r"""
answer:
  description: What the command prints with C(--json); see docs/json.md of ovirt-placement.
  returned: always
  type: dict
"""

import json

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ovirt_placement.core.plugins.module_utils.command import change, changing_options


def main():
    module = AnsibleModule(
        argument_spec=changing_options(
            policy={"type": "str"},
            state={"type": "str", "choices": ["present", "absent"], "default": "present"},
            clusters={"type": "list", "elements": "str", "default": []},
            all_policies={"type": "bool", "default": False},
            factors={"type": "dict", "default": {}},
            properties={"type": "dict", "default": {}},
            placement_keys={"type": "bool", "default": False, "no_log": False},
            ha_admission={"type": "str", "choices": ["hard", "soft"]},
        ),
        supports_check_mode=True,
    )
    change(module, ["setup"] + list(_words(module.params)))


def _words(params):
    for option in ("policy", "ha_admission"):
        if params[option]:
            yield "--%s=%s" % (option.replace("_", "-"), params[option])
    for cluster in params["clusters"]:
        yield "--cluster=%s" % cluster
    for option, pairs in (("factor", params["factors"]), ("property", params["properties"])):
        for name, value in sorted(pairs.items()):
            written = json.dumps(value) if isinstance(value, bool) else value
            yield "--%s=%s=%s" % (option, name, written)
    for option in ("all_policies", "placement_keys"):
        if params[option]:
            yield "--%s" % option.replace("_", "-")
    if params["state"] == "absent":
        yield "--undo"


if __name__ == "__main__":
    main()
