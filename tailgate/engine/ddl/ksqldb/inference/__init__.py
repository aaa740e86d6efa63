"""The columns of a schema in the registry, with ksqlDB's types: of Avro, JSON Schema and Protobuf.

Fields of a type that ksqlDB lacks are left out. Names are in upper case, as ksqlDB infers them.

Source: ksqlDB 0.29, documentation, "Schemas in ksqlDB", "Schema inference"; Kafka Connect's data types.
"""
