"""The settings of Django's own tests: both servers have a database `postgres`, whose schema `django_suite` has all tables.

The tests of these applications need a second database for tests of routers only.
"""

import os

SECRET_KEY = "tests"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ["PGPORT"],
        "USER": os.environ["PGUSER"],
        "NAME": "postgres",
        "OPTIONS": {"options": "-c search_path=django_suite"},
        "TEST": {"NAME": "postgres"},
    },
    "other": {"ENGINE": "django.db.backends.sqlite3"},
}
TEST_RUNNER = "suite_runner.Runner"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
