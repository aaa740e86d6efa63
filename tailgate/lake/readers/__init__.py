"""Reading relations at a time, and the holds of sinks and subscriptions on what they still have to read."""
