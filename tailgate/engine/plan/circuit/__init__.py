"""The circuit as values: operators, the steps between them, and the decoders of its sources."""
