"""Say whether highly available VMs would restart."""

DOCUMENTATION = r"""
module: ha_check_info
short_description: say whether highly available VMs would restart
description:
  - Asks C(ovirt-placement ha-check) whether all highly available VMs restart after hosts fail.
version_added: "1.0.0"
options:
  cluster:
    description: Only this cluster, by name or id; else all.
    type: str
  failures:
    description: How many hosts fail together; else as the command has it.
    type: int
extends_documentation_fragment:
  - ovirt_placement.core.command
  - ovirt_placement.core.command.asking
"""

EXAMPLES = r"""
- name: Ask whether two hosts may fail
  ovirt_placement.core.ha_check_info:
    cluster: blue
    failures: 2
  register: found
"""

RETURN = r"""
answer:
  description: What the command prints with C(--json); see docs/json.md of ovirt-placement.
  returned: always
  type: dict
ok:
  description: Whether nothing is wrong.
  returned: always
  type: bool
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ovirt_placement.core.plugins.module_utils.command import options, report


def main():
    module = AnsibleModule(
        argument_spec=options(cluster={"type": "str"}, failures={"type": "int"}), supports_check_mode=True
    )
    report(module, "ovirt-placement", list(_words(module.params)), (0, 1))


def _words(params):
    yield "ha-check"
    for option in ("cluster", "failures"):
        if params[option] is not None:
            yield "--%s=%s" % (option, params[option])


if __name__ == "__main__":
    main()
