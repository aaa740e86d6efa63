"""The settings of processes: where values come from, reading them again, and ALTER SYSTEM."""
