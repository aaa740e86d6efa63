"""The entities of CREATE CONNECTOR and DROP CONNECTOR, and the texts of statements that may contain passwords.

Source: ksqlDB 0.29, documentation, "Run a ksqlDB statement".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tailgate.gateway.ksqldb.server.http.errors import Document
from tailgate.sql.ksqldb import statements as k
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.lexer.secret_masking import STARS, mask_secrets

CREATES = re.compile(r"\bcreate\s+(source|sink)\s+connector\b", re.IGNORECASE)
CLASS = "connector.class"
SKIPPED = ", skipping"  # the end of the notice of IF EXISTS and IF NOT EXISTS


def shown_text(text: str) -> str:
    """Returns the text of a statement without the properties of a connector, which may be passwords."""
    return mask_secrets(text) if CREATES.search(text) else text


def entity(statement: k.CreateConnector | k.DropConnector, text: str, warnings: Sequence[Document]) -> Document:
    """Returns the entity of a statement that has succeeded. `text`: as shown. `warnings`: its notices."""
    name = ksqldb_name(statement.name)
    skipped = next((str(w["message"]) for w in warnings if str(w["message"]).endswith(SKIPPED)), None)
    if skipped is not None:
        return {"@type": "warning_entity", "message": skipped.removesuffix(SKIPPED), "statementText": text, "warnings": []}
    if isinstance(statement, k.DropConnector):
        return {"@type": "drop_connector", "connectorName": name, "statementText": text, "warnings": list(warnings)}
    properties = {key: value if key == CLASS else STARS.strip("'") for key, value in statement.properties}
    info = {"name": name, "config": {**properties, "name": name}, "tasks": [], "type": statement.direction}
    return {"@type": "connector_info", "info": info, "statementText": text, "warnings": list(warnings)}
