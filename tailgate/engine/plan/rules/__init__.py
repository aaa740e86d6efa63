"""The change rules: each plan node as streams and stateful operators that keep it up to date."""
