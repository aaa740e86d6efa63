"""Reading relations at a time, and the holds of sinks and subscriptions on entries that they have not read."""
