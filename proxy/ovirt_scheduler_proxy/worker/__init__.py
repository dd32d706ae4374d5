"""What runs in the processes of plugins, with the standard library alone."""

#: What a plugin folder's interpreter is started with. Of the folder that our package is in it takes our own
#: code alone, as what else lies next to that may belong to another Python. Arguments: this folder, the
#: control socket's descriptor, and the process id of the proxy.
PROGRAM = """
import sys
home, control, proxy = sys.argv[1:]
sys.path[0] = home
from ovirt_scheduler_proxy.worker import zygote
sys.path.remove(home)
zygote.main(int(control), int(proxy))
"""
