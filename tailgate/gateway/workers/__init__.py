"""Runs long work outside the event loop and the interpreter's lock: parsing, binding, rendering SQL.

    run_bounded(work, arguments) ──► a slice of the event loop ──► result
                                         └─ not done ──► worker process ──► result, error, or killed

Python cannot stop a thread, and a computing thread delays the event loop. So work starts in the
event loop, for at most `cpu_limit.SLICE_S` of CPU time. If it is not done by then, it is abandoned and
starts again in a worker process, which `statement_timeout`, a cancel request or a memory limit can
end. Workers are forked from a process that has all modules loaded (`template`).
"""
