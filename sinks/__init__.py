"""Changes of relations to Kafka, each exactly once: the process `tailgate sinks`.

What happens to one sink:

 1. `main` follows the log for changes of the catalog and gives each sink a `worker`, a thread that nothing of another sink
    delays. Where the sink begins (the entry of its CREATE) is noted in the lake at once, which holds the log from there.
 2. `settings` reads the sink's options; `schema` makes the Avro schemas, `registry` turns them into ids.
 3. `topics` sees to the sink's topic and the progress topic; `session` opens a transactional producer, which fences an older
    instance of the same sink; `progress` reads where that one had come to, and the session claims the sink as its own.
 4. `reading` gives the snapshot, then the steps of the log: for each time without errors of the view, its net changes.
 5. `forms` (`avro`, `jsons`) makes bytes of rows, `envelope` events of the changes; the worker commits them and the progress in one Kafka
    transaction. A copy of the progress goes to the lake about once a second, with the status that SHOW SINKS shows.
 6. Whatever fails at the broker or the registry ends the session; after a pause a new one asks Kafka where to go on, exactly as
    after a crash. There is no other way back.
"""
