"""Say whether all of ovirt-placement works."""

DOCUMENTATION = r"""
module: doctor_info
short_description: say whether all of ovirt-placement works
description:
  - "Asks C(ovirt-placement doctor): what is not right, and what to do about it."
version_added: "1.0.0"
options:
  proxy:
    description: >-
      The scheduler proxy's address; else as configured on this machine.
    type: str
extends_documentation_fragment:
  - ovirt_placement.core.command
  - ovirt_placement.core.command.asking
"""

EXAMPLES = r"""
- name: Say whether all of ovirt-placement works
  ovirt_placement.core.doctor_info:
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
    answer("ovirt-placement", "doctor", (0, 1), proxy={"type": "str"})


if __name__ == "__main__":
    main()
