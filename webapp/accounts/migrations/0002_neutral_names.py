"""Accounts that were made without a name get a neutral one."""

from django.db import migrations

from webapp.accounts.models import pseudonym


def name_the_nameless(apps, schema_editor):
    users = apps.get_model("accounts", "User").objects
    for user in users.filter(name=""):
        users.filter(pk=user.pk).update(name=pseudonym())


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]

    operations = [migrations.RunPython(name_the_nameless, migrations.RunPython.noop)]
