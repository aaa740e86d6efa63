"""The handlers of protocol messages: start-up, the simple and the extended query protocol, and the delivery of results."""
