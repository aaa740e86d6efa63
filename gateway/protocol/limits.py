"""How large what a client sends may be. All in bytes, all with a reason."""

# PostgreSQL's MAX_STARTUP_PACKET_LENGTH: whoever is not authenticated gets no memory from us.
STARTUP_BYTES_MAX = 10_000

# PostgreSQL's PG_MAX_AUTH_TOKEN_LENGTH is 65,535 for Kerberos tickets, which are not supported; a SCRAM message has about 200.
# It is also how many bytes are queued before a connection that is not authenticated stops being read.
AUTHENTICATION_BYTES_MAX = 10_000

# PostgreSQL's PQ_SMALL_MESSAGE_LIMIT, for messages that hold a name or nothing.
SMALL_FRAME_BYTES_MAX = 10_000

# PostgreSQL allows 1 GiB a frame. A gateway copies a frame some times while nobody else is served, 5 ms for each time
# and 16 MiB; no client was seen to send more than 1 MiB.
FRAME_BYTES_MAX = 16 * 1024 * 1024

# Text of one Query or Parse. A parser in Python takes seconds for this, beside the event loop.
STATEMENT_BYTES_MAX = 4 * 1024 * 1024

# Bytes received and not yet worked on before a connection stops reading: PostgreSQL leaves them in the socket's buffer.
RECEIVE_BYTES_MAX = 256 * 1024

# Bytes of a message as an object, for each byte that was received of it: an Execute is ten bytes.
MESSAGE_FACTOR = 8
