"""ksqlDB's formats of keys and values, from Arrow columns in their stored form.

    Arrow ──► values ──► kafka      one column: text as it is, numbers in big-endian order
                     ──► jsons      an object, or the value of the only column
                     ──► delimited  a line of fields
                     ──► avro       a record, or the value of the only column
                     ──► protobuf   the message ConnectDefault1

`serde.encoded` chooses among them, and `serde.schema` returns the schema that a registry has for the format.
The names of columns are ksqlDB's. Rows without bytes are NULL.

Source: ksqlDB 0.29, documentation, "Serialization formats".
"""
