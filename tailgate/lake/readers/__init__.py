"""Reading relations at a time, and what is kept for readers: the holds of sinks and subscriptions."""
