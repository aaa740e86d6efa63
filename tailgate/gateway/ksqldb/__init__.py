"""What statements need to know of the streams and tables of ksqlDB: their lists, and the dialect of a statement that names them."""
