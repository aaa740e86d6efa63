"""The streams and tables of ksqlDB's dialect, as statements of a session see them."""
