"""LISTEN and NOTIFY."""
