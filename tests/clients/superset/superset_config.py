"""Apache Superset's configuration: all files in one folder, no telemetry, dashboards may refresh each second."""

import os

SECRET_KEY = "checks of a client, on loopback"
HOME = os.environ["SUPERSET_HOME"]
SQLALCHEMY_DATABASE_URI = f"sqlite:///{HOME}/superset.db"
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
CACHE_CONFIG = DATA_CACHE_CONFIG = {"CACHE_TYPE": "NullCache"}
RATELIMIT_ENABLED = False
PREVENT_UNSAFE_DB_CONNECTIONS = False
SUPERSET_DASHBOARD_PERIODICAL_REFRESH_LIMIT = 0
FEATURE_FLAGS = {"ALERT_REPORTS": False}
