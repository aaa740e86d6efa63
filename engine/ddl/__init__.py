"""Statements to changes of the catalog: values in, values out; only `registry` speaks to the world."""
