"""The passes that rewrite a plan."""
