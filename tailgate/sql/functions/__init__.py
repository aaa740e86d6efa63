"""The function catalogue: tables of signatures and SQL templates, one module for each family."""
