"""Changes of the catalog in the running engine, and the fills of new views."""
