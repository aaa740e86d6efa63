"""PostgreSQL's wire as values: bytes to messages, messages to bytes, and which may follow which. No I/O.

    socket ──► Decoder.feed ──► Message ──► Machine.accept ──► session ──► backend.* ──► bytes ──► socket
               frames           messages    states                         encoders

1. `frames` cuts what arrives into frames, however it was cut on the way, and refuses those above a named limit.
2. `decode` turns the body of a frame into a `messages` value.
3. `states` says, from a table, whether a message may come now, is to be ignored (after an error, until Sync), or ends
   the connection.
4. `backend` writes what the server says. `startup` writes what it says before the first statement.

Source: PostgreSQL 15, chapter 55, "Frontend/Backend Protocol".
"""
