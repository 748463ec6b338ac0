from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credit", "0003_weight"),
    ]

    operations = [
        migrations.AddField(
            model_name="receipt",
            name="steps",
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="receipt",
            name="norm",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="receipt",
            name="drift",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name="receipt",
            index=models.Index(fields=["round"], name="receipts_of_a_round"),
        ),
    ]
