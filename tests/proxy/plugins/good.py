"""A plugin with nothing wrong in it, to stand next to those that tests are about."""

GOOD = '''
class Good:
    properties_validation = "good_limit=[0-9]+"
    def do_filter(self, hosts, vm, args):
        """Accepts all"""
        return hosts
'''
