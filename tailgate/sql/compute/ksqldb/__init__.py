"""The functions of ksqlDB that no expression of PostgreSQL's dialect computes."""
