"""Tests buenavista's interface over serving."""

import asyncio
from decimal import Decimal

import pytest
from buenavista.core import BVType

from gateway.backend import TailgateConnection
from lake import errors
from lake.catalog.roles import OPERATOR
from lake.types import BOOL, FLOAT8, INT8, TEXT, TIMESTAMPTZ, Type
from tests.gateway.serving.made import Made, serving


def test_a_session(made: Made, run) -> None:
    async def work() -> None:
        item = made.create(
            "v", {"id": INT8, "name": TEXT, "amount": FLOAT8, "on": BOOL, "price": Type("numeric", (10, 2)), "at": TIMESTAMPTZ}
        )
        made.tick({item.id: [((1, "a", 0.5, True, Decimal("1.20"), None), 1), ((2, None, None, None, None, None), 1)]})
        async with serving(made) as server:
            connection = TailgateConnection(server, OPERATOR)
            session = connection.create_session()
            assert connection.get_session(session.id) is session
            assert connection.parameters()["server_version"].startswith("15.")

            def ask() -> None:
                result = session.cursor().execute_sql("SELECT * FROM v ORDER BY id")
                kinds = [BVType.BIGINT, BVType.TEXT, BVType.FLOAT, BVType.BOOL, BVType.DECIMAL, BVType.TIMESTAMP]
                assert result.has_results()
                assert [result.column(i) for i in range(result.column_count())] == list(
                    zip(["id", "name", "amount", "on", "price", "at"], kinds, strict=True)
                )
                assert list(result.rows()) == [[1, "a", 0.5, True, Decimal("1.20"), None], [2, None, None, None, None, None]]
                assert result.status() == "SELECT 2"
                assert list(session.execute_sql("SELECT name FROM v WHERE id = $1", [1]).rows()) == [["a"]]
                with pytest.raises(errors.FeatureNotSupported):
                    session.execute_sql("BEGIN")
                with pytest.raises(errors.UndefinedTable):
                    session.execute_sql("SELECT * FROM nonsense")

            await asyncio.to_thread(ask)
            connection.close_session(session)

    run(work)
