"""CREATE statements of items that `tailgate watch` evaluates."""
