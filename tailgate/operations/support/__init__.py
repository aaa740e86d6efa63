"""Views of a running lake for people: the live view, and the collection for a bug report."""
