"""Protobuf schemas as values, from the text of `.proto` files or from a descriptor set.

    text ──► text.parsed ───────────┐
                                    ├──► schema.File ──► linking.linked ──► schema.Schema
    bytes ──► descriptors.described ┘

Only what decoding needs is kept: names, numbers, types, presence. Options, services, extensions and
comments are skipped. Editions are refused with an error.

Source: Protocol Buffers, "Language Guide (proto 2)", "Language Guide (proto 3)", "descriptor.proto", "Encoding".
"""
