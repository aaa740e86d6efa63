"""The views of a catalog as one circuit: numbered operators, shared operators, backfills and replacements."""
