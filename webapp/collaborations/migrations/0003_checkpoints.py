

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('collaborations', '0002_passports'),
    ]

    operations = [
        migrations.AddField(
            model_name='collaboration',
            name='keep_evaluated',
            field=models.BooleanField(default=True, verbose_name='and those that were evaluated'),
        ),
        migrations.AddField(
            model_name='collaboration',
            name='keep_every',
            field=models.PositiveIntegerField(default=0, help_text='0: none is kept for that.', verbose_name='and one in every so many rounds'),
        ),
        migrations.AddField(
            model_name='collaboration',
            name='keep_last',
            field=models.PositiveSmallIntegerField(default=5, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)], verbose_name='the last so many are kept'),
        ),
        migrations.AddField(
            model_name='collaboration',
            name='visibility',
            field=models.CharField(choices=[('everybody', 'Everybody'), ('volunteers', 'Its volunteers'), ('organisers', 'Organisers only')], default='everybody', help_text='Devices that train have the model in any case.', max_length=10, verbose_name='who sees and downloads its checkpoints'),
        ),
    ]
