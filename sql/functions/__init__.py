"""The function catalogue: data, in one module for each family of functions."""
