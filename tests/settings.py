"""The site's own settings, with a throw-away data folder and no broker.

`DATABASE_URL` may point the same tests at PostgreSQL; the default is a SQLite file, because an
in-memory database cannot be shared with a live server's threads.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_data = Path(os.environ.setdefault("POTLUCK_TEST_DATA", tempfile.mkdtemp(prefix="potluck-test-")))
os.environ["DATA_DIR"] = str(_data)
os.environ.setdefault("SITE_URL", "http://testserver")
os.environ.setdefault("LOG_LEVEL", "WARNING")

from webapp.settings import *  # noqa: E402, F403
from webapp.settings import DATABASES  # noqa: E402

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": str(_data / "test.sqlite3")}
else:
    DATABASES["default"]["OPTIONS"] = {}

CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CELERY_TASK_ALWAYS_EAGER = True
CELERY_TASK_EAGER_PROPAGATES = True
EMAIL_DELIVERY_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["testserver", "127.0.0.1", "localhost"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
