"""List violated rules."""

DOCUMENTATION = r"""
module: violations_info
short_description: list violated rules
description:
  - Asks C(ovirt-placement violations) which rules running VMs violate.
version_added: "1.0.0"
options:
  cluster:
    description: Only this cluster, by name or id; else all.
    type: str
extends_documentation_fragment:
  - ovirt_placement.core.command
  - ovirt_placement.core.command.asking
"""

EXAMPLES = r"""
- name: Ask which rules are violated
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

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.ovirt_placement.core.plugins.module_utils.command import options, report


def main():
    module = AnsibleModule(argument_spec=options(cluster={"type": "str"}), supports_check_mode=True)
    report(module, "ovirt-placement", list(_words(module.params)), (0, 1))


def _words(params):
    yield "violations"
    for option in ("cluster",):
        if params[option] is not None:
            yield "--%s=%s" % (option, params[option])


if __name__ == "__main__":
    main()
