"""What statements say about the storage of tables and indexes."""
