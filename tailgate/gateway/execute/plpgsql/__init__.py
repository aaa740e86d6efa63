"""Runs the blocks of DO: control flow, variables, and the statements that use them."""
