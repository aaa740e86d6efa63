"""The control protocol between gateways and the engine: requests and answers as bytes, used by both sides.

    POST /statement                       StatementRequest ──► StatementResult; before it, `102 Processing` with a header Notice
    POST /write                           Write            ──► {"number": n} or {"conflict": c}
    POST /hand-over                                        ──► {}; the engine stops at a boundary
    POST /table                           FilledTable      ──► StatementResult or {"conflict": c}
    POST /block                           BlockCommit      ──► StatementResult or {"conflict": c}
    POST /push                            StatementRequest ──► StatementResult; its view exists until the connection ends
    POST /print                           StatementRequest ──► {}, then parts: the lines of records as they arrive, or an error,
                                                               until the client disconnects; an empty part at the LIMIT
    POST /sequence                        SequenceRequest  ──► SequenceValues
    POST /lock                            LockRequest      ──► {"granted": bool}; the lock is held until the connection ends
    GET  /entries                                          ──► a stream: each new entry as "n length\\n" and its bytes, or length 0 without
                                                               them; every HEARTBEAT_S the newest number with length 0
    GET  /recent?relations=i,…&timeout=s                   ──► {"n", "time"} of an entry with all that Kafka held at the request
    GET  /freshness?after=n&version=v                      ──► the ages of records that ticks have read, or not read; if their version
                                                               is v, as soon as they change, or after FRESHNESS_HOLD_S
    GET  /status                                           ──► the state of sources, views and sinks
    GET  /health                                           ──► the state of sources, views and ticks, without a request to a broker

The header fields of an `Attempt` make sure that a POST that is sent again takes effect once. HTTP, with TLS if other machines reach the
engine. Each request carries the token of engine.json and the version of the protocol. An answer is a JSON object. With a status other than
200 it is an error: {"sqlstate", "message", "detail", "hint", "position"}. A client that sends the byte WITHDRAWAL after its request, or
disconnects, cancels the statement. After the byte, it gets the answer when the statement is undone.
"""

from tailgate.lake.control.answers import (
    Answer,
    Notice,
    SequenceValues,
    StatementResult,
    WriteResult,
    decode,
    encode,
    encode_part,
    error_fields,
    error_of,
    next_part,
)
from tailgate.lake.control.requests import (
    BLOCK,
    ENTRIES,
    FRESHNESS,
    FRESHNESS_HOLD_S,
    HAND_OVER,
    HEALTH,
    HEARTBEAT_S,
    LOCK,
    NEW_TABLE,
    PRINT,
    PUSH,
    RECENT,
    RECENT_TIMEOUT_S,
    SECONDS_MAX,
    SEQUENCE,
    STATEMENT,
    STATUS,
    TABLE,
    VERSION,
    VERSION_HEADER,
    WITHDRAWAL,
    WRITE,
    WRITE_AFTER_HEADER,
    WRITE_AGAIN_HEADER,
    WRITE_ID_HEADER,
    Attempt,
    BlockCommit,
    FilledTable,
    LockRequest,
    Part,
    SequenceRequest,
    StatementRequest,
    Write,
    check_version,
    decode_freshness,
    decode_recent,
    decode_status,
    freshness_path,
    headers,
    recent_path,
    status_path,
)

__all__ = [
    "BLOCK",
    "ENTRIES",
    "FRESHNESS",
    "FRESHNESS_HOLD_S",
    "HAND_OVER",
    "HEALTH",
    "HEARTBEAT_S",
    "LOCK",
    "NEW_TABLE",
    "PRINT",
    "PUSH",
    "RECENT",
    "RECENT_TIMEOUT_S",
    "SECONDS_MAX",
    "SEQUENCE",
    "STATEMENT",
    "STATUS",
    "TABLE",
    "VERSION",
    "VERSION_HEADER",
    "WITHDRAWAL",
    "WRITE",
    "WRITE_AFTER_HEADER",
    "WRITE_AGAIN_HEADER",
    "WRITE_ID_HEADER",
    "Answer",
    "Attempt",
    "BlockCommit",
    "FilledTable",
    "LockRequest",
    "Notice",
    "Part",
    "SequenceRequest",
    "SequenceValues",
    "StatementRequest",
    "StatementResult",
    "Write",
    "WriteResult",
    "check_version",
    "decode",
    "decode_freshness",
    "decode_recent",
    "decode_status",
    "encode",
    "encode_part",
    "error_fields",
    "error_of",
    "freshness_path",
    "headers",
    "next_part",
    "recent_path",
    "status_path",
]
