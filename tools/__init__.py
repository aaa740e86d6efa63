"""Scripts for whoever works on this: not part of the product."""
