"""Writing the changes of relations to Kafka, each exactly once: the process `tailgate sinks`.

The steps for one sink:

 1. `main` follows the log for changes of the catalog and runs each sink in a `worker`, a thread, so that
    sinks do not delay each other. It records at once where the sink begins (the entry of CREATE SINK),
    which holds the log from there.
 2. `settings` reads the sink's options. `tailgate.formats.events` builds the schemas, and `registry` registers them.
 3. `topics` creates the sink's topic and the progress topic. `session` opens a transactional producer,
    which fences an older instance of the same sink. `progress` reads the position of that instance,
    and the session claims the sink.
 4. `reading` returns the snapshot, then the steps of the log: the net changes of each time at which the
    view has no errors.
 5. `formats` encodes rows, and `envelope` turns changes into events. The worker
    commits events and progress in one Kafka transaction. About once a second it also writes the
    progress and the status for SHOW SINKS to the lake (`status`).
 6. Any failure of the broker or the registry ends the session. After a pause, a new session reads from
    Kafka where to continue, exactly as after a crash. This is the only recovery path.
"""
