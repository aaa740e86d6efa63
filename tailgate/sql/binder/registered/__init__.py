"""Types whose values are objects of the system catalog: regclass and regtype."""
