"""List violated rules."""

DOCUMENTATION = r"""
module: violations_info
short_description: list violated rules
description:
  - "Asks C(ovirt-placement violations): affinity groups that the running VMs violate."
version_added: "1.0.0"
options:
  cluster:
    description: >-
      Only this cluster, by name or id; else all.
    type: str
  vm:
    description: >-
      Only of this VM.
    type: str
  host:
    description: >-
      Only of VMs on this host.
    type: str
  group:
    description: >-
      Only of this affinity group.
    type: str
extends_documentation_fragment:
  - ovirt_placement.core.command
  - ovirt_placement.core.command.asking
"""

EXAMPLES = r"""
- name: List violated rules
  ovirt_placement.core.violations_info:
    cluster: blue
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
    answer(
        "ovirt-placement",
        "violations",
        (0, 1),
        cluster={"type": "str"},
        vm={"type": "str"},
        host={"type": "str"},
        group={"type": "str"},
    )


if __name__ == "__main__":
    main()
