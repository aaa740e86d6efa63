"""Tools that tests and benchmarks share: servers, engines, random worlds and queries, and an independent evaluation of queries."""
