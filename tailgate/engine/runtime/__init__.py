"""The running engine. The path of a record, by module:

1.  `readers`   unions Kafka's readers and the inbox into one stream; a doorbell starts a batch
2.  `engine`    runs each batch as a tick and appends its changes to the log
3.  `circuits`  builds the circuit from a graph of `engine.plan`, by calls of the Java library
4.  `fills`     backfills a new view through the inbox while ticks run
5.  `statements` runs CREATE and DROP: new items and a new graph, swapped between two ticks
6.  `writes`    accepts the gateways' writes to tables and puts them into the inbox, in order
7.  `follow`    applies the log to the Delta tables, about once a second
8.  `control`   serves the HTTP interface that gateways call
9.  `main`      runs all of it in one process, in a Spark session (`session`) of a JVM (`jvm`)
"""
