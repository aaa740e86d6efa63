"""PostgreSQL's wire protocol without I/O: bytes to messages, messages to bytes, and the protocol's states.

    socket ──► Decoder.feed ──► Message ──► Machine.accept ──► session ──► backend.* ──► bytes ──► socket
               frames           messages    states                         encoders

1. `frames` splits received bytes into frames and refuses frames above a limit.
2. `decode` converts the body of a frame to a `messages` value.
3. `states` has a table that tells whether a message is expected, ignored (after an error, until
   Sync), or a protocol violation that ends the connection.
4. `backend` encodes the server's messages; `startup` those before the first statement.

Source: PostgreSQL 15, chapter 55, "Frontend/Backend Protocol".
"""
