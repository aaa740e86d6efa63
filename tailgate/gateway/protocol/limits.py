"""Limits on data from clients, in bytes, with the reason for each."""

# PostgreSQL's MAX_STARTUP_PACKET_LENGTH: clients get little memory before authentication.
STARTUP_BYTES_MAX = 10_000

# PostgreSQL's PG_MAX_AUTH_TOKEN_LENGTH is 65,535 for Kerberos tickets, which are not supported; a SCRAM message has about 200.
# An unauthenticated connection is also not read while so many bytes are queued.
AUTHENTICATION_BYTES_MAX = 10_000

# PostgreSQL's PQ_SMALL_MESSAGE_LIMIT, for messages that contain only a name or nothing.
SMALL_FRAME_BYTES_MAX = 10_000

# PostgreSQL allows 1 GiB per frame. A gateway copies a frame several times, and each copy of 16 MiB
# blocks the event loop for 5 ms. Clients have not been seen to send more than 1 MiB.
FRAME_BYTES_MAX = 16 * 1024 * 1024

# Text of one Query or Parse. The Python parser takes seconds for this, outside the event loop.
STATEMENT_BYTES_MAX = 4 * 1024 * 1024

# Received but unprocessed bytes before a connection stops reading: PostgreSQL leaves them in the socket's buffer.
RECEIVE_BYTES_MAX = 256 * 1024

# Memory of a message object per received byte: an Execute has only ten bytes.
MESSAGE_FACTOR = 8
