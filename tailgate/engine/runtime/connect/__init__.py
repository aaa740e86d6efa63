"""Connectors of Kafka Connect: CREATE, DROP, DESCRIBE and SHOW, through the REST interface of its workers.

statements.py    executes the statements
translation.py   properties for plugins that are not installed, or that have new names for them
secrets.py       which properties are never shown
client.py        requests to a worker
"""

from tailgate.engine.runtime.connect.statements import Connectors

__all__ = ["Connectors"]
