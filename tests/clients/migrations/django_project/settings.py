"""Django's settings: its bundled applications with models, and one whose migrations change tables."""

import os

SECRET_KEY = "tests"
INSTALLED_APPS = [
    *(f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes", "sessions", "messages", "sites", "redirects", "flatpages")),
    "market",
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ["PGPORT"],
        "USER": os.environ["PGUSER"],
        "NAME": os.environ["PGDATABASE"],
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
SITE_ID = 1
USE_TZ = True
SILENCED_SYSTEM_CHECKS = ["admin.E403", "admin.E408", "admin.E409", "admin.E410"]
