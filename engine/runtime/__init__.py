"""The running engine. One record on its way, by module:

1.  `readers`   Kafka's readers and the inbox as one stream; a doorbell starts a batch
2.  `engine`    each batch is a tick: the circuit runs it, its changes become the log's next entry
3.  `circuits`  a graph of `engine.plan` as calls of the Java library
4.  `fills`     a new view's history, in pieces through the inbox, beside the running ticks
5.  `statements` CREATE and DROP: new items, a new graph, swapped between two ticks
6.  `writes`    what gateways write to tables: let in, one after the other, into the inbox
7.  `follow`    the Delta tables follow once a second
8.  `control`   the HTTP interface that gateways call
9.  `main`      the process: all of it together, in a Spark session (`session`) of a JVM that was launched first (`jvm`)
"""
