"""The running engine: `main` runs all of it in one process.

    kafka        which readers the sources need, metadata of topics, old records
    spark        the JVM, the session in it, and the circuit, built from a graph of `engine.plan`
    ticks        `tick_loop` asks the JVM for one tick after the other; `tick_runner` appends its
                 changes to the log; `writes` puts the gateways' writes to tables into the inbox
    backfill     `installation` swaps items and graph between two ticks; `fills` sends the history
                 of a new view through the inbox
    maintenance  `follow` applies the log to the Delta tables, about once a second
    control      the HTTP interface that gateways call; `statements` runs CREATE and DROP

Each folder imports only those above it.
"""
