"""PostgreSQL's values: text and binary input and output of every type, and its order, once.

    text   ──read_text──►   value ──► Arrow ──► raw value ──text_writer──►   text
    binary ──read_binary──►                               ──binary_writer──► binary
    texts  ──read_column──► Arrow, whole columns

The codec of each type is in `registry`, its functions in a folder of its family: `numbers`, `times`,
`strings`, `composites`. `codec` defines the class of codecs, and `raw` how Arrow holds values. Literals,
parameters, COPY, casts and results use the same functions.

Source: PostgreSQL 15, the types' input, output, receive and send functions.
"""
