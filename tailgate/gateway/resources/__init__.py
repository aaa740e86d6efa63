"""The limits of a gateway process: memory (`memory`, `budgets`) and concurrent work (`concurrency`)."""
