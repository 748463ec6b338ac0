#!/usr/bin/env python
"""Django's usual entry."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        _ = settings.BASE_DIR  # reads them all
    except ImproperlyConfigured as error:
        sys.exit(f"The site cannot start: {error}")
    execute_from_command_line(sys.argv)
