"""Rows, for the migrations after this one."""

from django.db import migrations


def fill(apps, schema_editor):
    buyer = apps.get_model("market", "Buyer").objects.create(name="ann", email="a@b.c", age="7")
    apps.get_model("market", "Sale").objects.create(buyer=buyer, amount="1.50")


class Migration(migrations.Migration):
    dependencies = (("market", "0001_initial"),)
    operations = (migrations.RunPython(fill, migrations.RunPython.noop),)
