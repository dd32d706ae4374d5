"""Say whether all of ovirt-placement works."""

DOCUMENTATION = r"""
module: doctor_info
short_description: say whether all of ovirt-placement works
description:
  - Asks C(ovirt-placement doctor) for its findings.
version_added: "1.0.0"
options: {}
extends_documentation_fragment:
  - ovirt_placement.core.command
  - ovirt_placement.core.command.asking
"""

EXAMPLES = r"""
- name: Ask whether all works
  ovirt_placement.core.doctor_info:
  register: found
  failed_when: not found.ok
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
    module = AnsibleModule(argument_spec=options(), supports_check_mode=True)
    report(module, "ovirt-placement", list(_words(module.params)), (0, 1))


def _words(params):
    yield "doctor"


if __name__ == "__main__":
    main()
