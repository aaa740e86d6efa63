"""PostgreSQL's values: text and binary input and output of every type, and its order, once.

    text   ──read_text──►   value ──► Arrow ──► raw value ──text_writer──►   text
    binary ──read_binary──►                               ──binary_writer──► binary
    texts  ──read_column──► Arrow, whole columns

A file per family of types; `registry` has the codec of each type. Literals, parameters, COPY,
casts and results use the same functions.

Source: PostgreSQL 15, the types' input, output, receive and send functions.
"""
