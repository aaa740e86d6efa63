"""Django, unmodified: `migrate` of its bundled applications and of one that changes tables with rows, `inspectdb`, and back to zero."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import django
from django.core.management import call_command

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "clients" / "python"))
from tap import check, done

sys.path.insert(0, str(Path(__file__).parent / "django_project"))
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"

BUYER = """    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=80)
    mail = models.CharField(max_length=254)
    age = models.IntegerField()
"""
SALE = """    buyer = models.ForeignKey(MarketBuyer, models.DO_NOTHING)
    amount = models.DecimalField(max_digits=12, decimal_places=3)
    data = models.JSONField()
    at = models.DateTimeField()
"""


def output(*arguments: str) -> str:
    """Returns the output of a command of django-admin."""
    text = io.StringIO()
    call_command(*arguments, no_color=True, stdout=text)
    return text.getvalue()


def main() -> None:
    django.setup()
    from django.contrib.auth.models import User  # after the setup of the applications
    from django.db import connection

    with check("migrate"):
        output("migrate")
        assert "[ ]" not in output("showmigrations")
    with check("rows after the migrations"), connection.cursor() as cursor:
        cursor.execute("UPDATE market_buyer SET name = 'Ann'")
        cursor.execute("SELECT name, key, mail, age, amount::text FROM market_buyer b JOIN market_sale s ON s.buyer_id = b.id")
        assert cursor.fetchall() == [("Ann", "ann", "a@b.c", 7, "1.500")]
    with check("inspectdb"):
        models = output("inspectdb", "market_buyer", "market_sale", "auth_user")
        assert BUYER in models, models
        assert SALE in models, models
        assert "username = models.CharField(unique=True, max_length=150)" in models, models
    with check("models"):
        User.objects.create_user("eve", password="secret")
        User.objects.filter(username="eve").update(first_name="Eve")
        assert User.objects.get(username="eve").check_password("secret")
        assert User.objects.filter(first_name__icontains="EV").count() == 1
    with check("migrate back to zero"):
        for application in ("market", "admin", "flatpages", "redirects", "sessions", "sites", "auth", "contenttypes"):
            output("migrate", application, "zero")
        assert "market_buyer" not in connection.introspection.table_names()
    done()


if __name__ == "__main__":
    main()
