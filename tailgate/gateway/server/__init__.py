"""The listening sockets of a gateway, its connections, and the watch on its memory."""
