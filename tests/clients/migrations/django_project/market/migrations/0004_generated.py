"""Generated columns, and the removal of one."""

from django.db import migrations, models
from django.db.models.functions import Lower


class Migration(migrations.Migration):
    dependencies = (("market", "0003_changes"),)
    operations = (
        migrations.AddField(
            "Buyer", "key", models.GeneratedField(expression=Lower("name"), output_field=models.CharField(max_length=80), db_persist=True)
        ),
        migrations.CreateModel(
            "Parcel",
            [
                ("id", models.AutoField(primary_key=True)),
                ("width", models.IntegerField()),
                ("height", models.IntegerField()),
                (
                    "area",
                    models.GeneratedField(
                        expression=models.F("width") * models.F("height"), output_field=models.IntegerField(), db_persist=True
                    ),
                ),
            ],
        ),
        migrations.RemoveField("Parcel", "area"),
    )
