"""PostgreSQL's input functions: text to the stored form of values.

They read literals, text parameters, and the arguments of casts from text.
"""
