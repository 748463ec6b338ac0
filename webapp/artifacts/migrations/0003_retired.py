

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('artifacts', '0002_bases'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='checkpoint',
            options={'ordering': ['-round', '-pk']},
        ),
        migrations.AddField(
            model_name='checkpoint',
            name='is_pinned',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='checkpoint',
            name='model',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='artifacts.artifact'),
        ),
        migrations.AddField(
            model_name='checkpoint',
            name='retired_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='checkpoint',
            name='sha256',
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddField(
            model_name='checkpoint',
            name='size_bytes',
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AlterField(
            model_name='artifact',
            name='kind',
            field=models.CharField(choices=[('tokenizer', 'Tokenizer'), ('text', 'Text'), ('checkpoint', 'Checkpoint'), ('model', 'Model'), ('base', 'Base'), ('weights', 'Weights')], max_length=12),
        ),
        migrations.AlterField(
            model_name='checkpoint',
            name='artifact',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to='artifacts.artifact'),
        ),
    ]
