"""Tables with keys, a unique pair and a many-to-many relation."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = (
        migrations.CreateModel(
            "Buyer",
            [
                ("id", models.AutoField(primary_key=True)),
                ("name", models.CharField(max_length=50, unique=True)),
                ("email", models.EmailField(db_index=True, max_length=254)),
                ("age", models.CharField(max_length=10, default="1")),
            ],
        ),
        migrations.CreateModel(
            "Sale",
            [
                ("id", models.AutoField(primary_key=True)),
                ("buyer", models.ForeignKey("market.Buyer", on_delete=models.CASCADE)),
                ("amount", models.DecimalField(max_digits=10, decimal_places=2)),
                ("data", models.JSONField(default=dict)),
                ("at", models.DateTimeField(auto_now_add=True)),
            ],
            options={"unique_together": {("buyer", "at")}},
        ),
        migrations.CreateModel(
            "Tag",
            [
                ("id", models.AutoField(primary_key=True)),
                ("word", models.SlugField()),
                ("sales", models.ManyToManyField("market.Sale")),
            ],
        ),
    )
