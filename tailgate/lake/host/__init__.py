"""The machine that a process runs on: files, processes, ports, scratch folders, and points at which tests kill a process."""
