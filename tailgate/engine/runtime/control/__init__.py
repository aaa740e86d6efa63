"""The control interface: statements of gateways, the status of the engine, and news of the log."""
