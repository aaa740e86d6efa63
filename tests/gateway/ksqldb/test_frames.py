"""The frames of a push query over HTTP/2. npm's ksqldb-client parses each DATA frame as one row."""

from __future__ import annotations

import json
import socket

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, StreamEnded

from tests.gateway.ksqldb.world import Api, KsqldbWorld

ROWS = 200


def test_each_row_is_a_frame(world: KsqldbWorld, api: Api) -> None:
    rows = [(f"frame {i}", float(i), i) for i in range(ROWS)]
    world.append("averages", rows)
    frames = _frames(api, {"sql": f"SELECT * FROM averages EMIT CHANGES LIMIT {ROWS};", "properties": {"auto.offset.reset": "earliest"}})
    world.append("averages", rows, -1)
    head, *values = map(json.loads, frames)
    assert head["columnNames"] == ["SENSOR", "AVERAGE", "N"]
    assert len(values) == ROWS


def _frames(api: Api, body: object) -> list[bytes]:
    """Returns the data of all frames of a response that are not empty."""
    connection, frames = H2Connection(H2Configuration(client_side=True)), []
    data = json.dumps(body).encode()
    headers = [(":method", "POST"), (":path", "/query-stream"), (":scheme", "http"), (":authority", "localhost")]
    with socket.create_connection(("127.0.0.1", api.port), timeout=30) as server:
        connection.initiate_connection()
        connection.send_headers(1, [*headers, ("accept", "application/vnd.ksqlapi.delimited.v1"), ("content-type", "application/json")])
        connection.send_data(1, data, end_stream=True)
        while True:
            server.sendall(connection.data_to_send())
            received = server.recv(1 << 16)
            assert received
            for event in connection.receive_data(received):
                if isinstance(event, DataReceived):
                    connection.acknowledge_received_data(event.flow_controlled_length, 1)
                    frames += [event.data] if event.data else []
                if isinstance(event, StreamEnded):
                    return frames
