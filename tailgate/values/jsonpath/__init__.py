"""The type jsonpath: its grammar, its parser and its text."""
