"""A text that is found by its template is one that is parsed as a pull query with the same text."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tailgate.gateway.ksqldb.server import pull_texts
from tailgate.gateway.ksqldb.server.http.errors import ApiError
from tailgate.gateway.ksqldb.server.http.requests import StatementRequest
from tailgate.gateway.ksqldb.server.pull_texts import PullTexts
from tailgate.gateway.ksqldb.server.queries import one_query
from tailgate.sql.ksqldb import statements as k

WORDS = (
    "SELECT * FROM t WHERE k = ", "SELECT a, b FROM t WHERE k IN (", " AND n > ", ", ", ")", " LIMIT ", ";", " ", "\n", " EMIT CHANGES",
    "PRINT t", "`K 1`", '"K 2"', "-- 'c' 1\n", "/* ; */", "${v}", "\\\n", "e", "x1 = ", "'", "--",
)  # fmt: skip
LITERALS = (
    "'a'",
    "'it''s'",
    "';'",
    "'--'",
    "'${v}'",
    "1",
    "20",
    "1.5",
    "''",
    "'`'",
    "'\\'",
    "'\n EMIT CHANGES --'",
    "99999999999999999999",
)
structures = st.lists(st.one_of(st.sampled_from(WORDS), st.none()), max_size=8).map(
    lambda parts: ["SELECT * FROM t WHERE k = ", None, *parts]
)


def filled(structure: list[str | None], literals: list[str]) -> str:
    values = iter(literals)
    return "".join(next(values) if part is None else part for part in structure)


def pull_text(request: StatementRequest) -> str | None:
    """Returns the text of a request that is one pull query, by parsing it."""
    try:
        part = one_query(request)
    except ApiError:
        return None
    assert isinstance(part.statement, k.PushQuery)
    return None if part.statement.query.emit else part.text


@example(["SELECT * FROM t WHERE k = 1 --", None, "\nLIMIT 3;"], ["'a'"], ["'\n EMIT CHANGES --'"])
@example(["SELECT * FROM t WHERE k = `", None, "` AND j = 1;"], ["'a'"], ["'` EMIT CHANGES; --'"])
@given(structures, st.lists(st.sampled_from(LITERALS), min_size=9, max_size=9), st.lists(st.sampled_from(LITERALS), min_size=9, max_size=9))
def test_a_template_stands_for_the_parsed_text(structure: list[str | None], first: list[str], second: list[str]) -> None:
    texts = PullTexts()
    first_request, request = StatementRequest(filled(structure, first)), StatementRequest(filled(structure, second))
    if (text := pull_text(first_request)) is not None:
        texts.add(first_request, text)
    text = texts.find(request)
    assert text is None or text == pull_text(request)


def test_literals_are_not_part_of_the_template() -> None:
    texts = PullTexts()
    assert texts.find(StatementRequest("SELECT * FROM t WHERE k = 'a';")) is None
    texts.add(StatementRequest("SELECT * FROM t WHERE k = 'a';"), "SELECT * FROM t WHERE k = 'a';")
    assert texts.find(StatementRequest(" SELECT * FROM t WHERE k = 'it''s' ; ")) == "SELECT * FROM t WHERE k = 'it''s';"
    assert texts.find(StatementRequest("SELECT * FROM t WHERE j = 'a';")) is None
    assert texts.find(StatementRequest("SELECT * FROM t WHERE k = '${v}';", variables={"v": "x"})) is None
    for n in range(pull_texts.TEMPLATES_MAX):
        texts.add(StatementRequest(f"SELECT c{n} FROM t;"), f"SELECT c{n} FROM t;")
    assert texts.find(StatementRequest("SELECT * FROM t WHERE k = 'a';")) is None  # templates have a limit
