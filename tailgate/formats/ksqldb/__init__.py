"""ksqlDB's formats of keys and values, from Arrow columns in their stored form.

    columns ──► kafka      one column: text as it is, numbers in big-endian order
            ──► jsons      an object, or the value of the only column
            ──► delimited  a line of fields

`serde.encoded` chooses among them. The names of columns are ksqlDB's. Rows without bytes are NULL.

Source: ksqlDB 0.29, documentation, "Serialization formats".
"""
