"""PostgreSQL 15 behind a plain asynchronous server with the endpoints of `service.py`: Starlette, uvicorn and asyncpg in one process.

python bench/_peer_service.py DSN        prints the port when it serves
"""

from __future__ import annotations

import asyncio
import socket
import sys

import asyncpg
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

CONNECTIONS = 10  # to PostgreSQL
READ = 'SELECT id::text AS "userId", username, name, tweet_count, following_count, follower_count, like_count AS "likeCount" '
READ += "FROM user_information WHERE id = $1"
LIKE = 'UPDATE user_information SET like_count = like_count + 1 WHERE id = $1 RETURNING id::text AS "userId", like_count AS "likeCount"'


def app(pool: asyncpg.Pool) -> Starlette:
    """Returns the application."""

    async def answer(request: Request) -> Response:
        row = await pool.fetchrow(READ if request.method == "GET" else LIKE, int(request.path_params["id"]))
        return Response(status_code=404) if row is None else JSONResponse(dict(row))

    return Starlette(routes=[Route("/users/{id}", answer, methods=["GET"]), Route("/users/{id}/likes", answer, methods=["POST"])])


async def serve(dsn: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    async with asyncpg.create_pool(dsn, min_size=CONNECTIONS, max_size=CONNECTIONS) as pool:
        server = uvicorn.Server(uvicorn.Config(app(pool), loop="uvloop", http="httptools", log_level="warning", access_log=False))
        print(listening.getsockname()[1], flush=True)
        await server.serve([listening])


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
