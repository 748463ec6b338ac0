from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("live", "0002_asked"),
    ]

    operations = [
        migrations.AddField(
            model_name="roundrecord",
            name="mean_norm",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="roundrecord",
            name="told",
            field=models.CharField(blank=True, max_length=300),
        ),
    ]
