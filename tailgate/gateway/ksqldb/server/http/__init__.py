"""The forms of HTTP: requests, media types, errors, and results as bytes, with their limits."""
