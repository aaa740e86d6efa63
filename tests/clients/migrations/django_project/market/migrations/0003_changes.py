"""Other types, columns, names, indexes and constraints."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("market", "0002_rows"),)
    operations = (
        migrations.AlterField("Buyer", "age", models.IntegerField(default=1)),
        migrations.AddField("Buyer", "note", models.TextField(null=True)),
        migrations.AlterField("Sale", "amount", models.DecimalField(max_digits=12, decimal_places=3)),
        migrations.RenameField("Buyer", "email", "mail"),
        migrations.AddIndex("Sale", models.Index(fields=["at"], name="sale_at")),
        migrations.AddConstraint("Sale", models.CheckConstraint(condition=models.Q(amount__gte=0), name="positive")),
        migrations.AlterField("Buyer", "name", models.CharField(max_length=80)),
        migrations.AlterField("Buyer", "id", models.BigAutoField(primary_key=True)),
        migrations.RenameModel("Tag", "Label"),
        migrations.RemoveField("Buyer", "note"),
        migrations.AlterUniqueTogether("Sale", set()),
    )
