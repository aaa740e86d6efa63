"""What a single machine needs besides Tailgate itself: a Kafka, a schema registry, and child processes that never outlive their parent.

    children.py   a child process: started, watched, ended, also when its parent is killed
    kafka.py      one Kafka node over the jars of `make setup`
    registry.py   a Confluent-compatible schema registry, itself a child
    subjects.py   what the registry knows, durable

`tailgate up` and `tailgate demo` put these beside the engine; apart from them nothing imports this package.
"""
