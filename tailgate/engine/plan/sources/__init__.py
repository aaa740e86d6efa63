"""Sources: `envelopes.source_layout` derives the decoder, the columns and the steps from a source."""
