"""PostgreSQL's functions of the system catalog in Python, by subject. `catalog_functions` has all of them."""
