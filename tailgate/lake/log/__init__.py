"""The log: entries, the segments of older entries, and copies of the catalog."""
