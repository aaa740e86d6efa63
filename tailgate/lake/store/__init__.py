"""Storage of a lake: objects with names. One interface, `Store`, is all that the rest of the lake knows of files."""

from tailgate.lake.store.interface import FencedWriter, Lock, NoLocks, Revoked, Store, StoreUnavailable

__all__ = ["FencedWriter", "Lock", "NoLocks", "Revoked", "Store", "StoreUnavailable"]
