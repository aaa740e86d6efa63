"""Authentication and TLS of connections, and the ownership checks of statements that change the catalog."""
