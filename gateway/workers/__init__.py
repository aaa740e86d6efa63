"""Work that may take long, outside the event loop and outside the interpreter's lock: parsing, binding, writing SQL, reading COPY data.

    aside(work, arguments) ──► a slice of the event loop ──► the result
                                   └─ over ──► a process of its own ──► the result, an error, or killed

Python cannot stop a thread, and a thread that computes holds up the event loop. So work begins in the event loop for at most
`slices.SLICE_S` of its CPU; what is not done by then is abandoned and done again by a process, which `statement_timeout`, a cancel
request and a limit of its memory can end. Processes are forked from one that has all modules loaded (`template`).
"""

from gateway.workers.pool import Workers
from gateway.workers.slices import Exceeded

__all__ = ["Exceeded", "Workers"]
