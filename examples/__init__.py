"""What one can run with Tailgate."""
