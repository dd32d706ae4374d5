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

from ansible_collections.ovirt_placement.core.plugins.module_utils.command import answer


def main():
    answer("ovirt-placement", "ha-check", (0, 1), cluster={"type": "str"}, failures={"type": "int"})


if __name__ == "__main__":
    main()
