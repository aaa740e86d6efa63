"""Programs that a single machine needs besides Tailgate: Kafka, Kafka Connect, a registry, and the supervisor of all processes.

    supervisor.py `tailgate up`: starts all processes and restarts those that end
    claim.py      one supervisor per data folder
    children.py   a child process that ends with its parent
    kafka.py      one Kafka node, from the jars of `make setup`
    connect.py    one worker of Kafka Connect, from the jars of `make setup`
    registry.py   a Confluent-compatible schema registry, itself a child process
    subjects.py   the content of the registry, durable
    kinds.py      the kinds of schemas: parsing and compatibility

Only `tailgate up` and `tailgate demo` import this package.
"""
