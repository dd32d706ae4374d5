"""What a plugin folder's interpreter is started with.

Arguments: the control socket's descriptor, and the process id of the proxy.
"""

import os
import socket
import sys

if __name__ == "__main__":
    # Only our own code is taken from here: what else lies next to it may belong to another Python.
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path[0] = home
    from ovirt_scheduler_proxy.worker import zygote

    sys.path.remove(home)
    zygote.main(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
