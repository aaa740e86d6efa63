"""`python -m tests.forked_process`: prints its arguments, environment and descriptors as JSON, and waits for the end of its input."""

from __future__ import annotations

import json
import os
import signal
import sys

if __name__ == "__main__":
    fields = {
        "arguments": sys.argv[1:],
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "parent": os.getppid(),
        "is_session_leader": os.getsid(0) == os.getpid(),
        "group": os.getpgid(0) if os.getpgid(0) != os.getpid() else "own",
        "descriptors": sorted(map(int, os.listdir("/proc/self/fd")))[:-1],  # the last one lists the folder
        "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "name": __name__,
    }
    print(json.dumps(fields), flush=True)
    sys.exit(len(sys.stdin.read()))
