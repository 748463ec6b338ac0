

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_neutral_names'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='is_named',
            field=models.BooleanField(default=False, help_text='On: the description of a model that you helped to train has your public name.', verbose_name='name me with models'),
        ),
    ]
