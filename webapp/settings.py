"""One settings file. Every value is read from the environment, with a default for one machine.

`PRODUCTION=true` turns on HTTPS-only cookies and HSTS and refuses generated secrets.
docs/operations.md lists the variables; a test keeps the list complete.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import environ
from csp.constants import NONCE, SELF
from django.core.exceptions import ImproperlyConfigured

from webapp.core import environment
from webapp.core.secret import kept_secret

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

# ------------------------------------------------------------------ the site
PRODUCTION = environment.switch("PRODUCTION")
DEBUG = environment.switch("DEBUG")
DATA_DIR = environment.folder("DATA_DIR", BASE_DIR / "var")
HTTP_HOST = env.str("HTTP_HOST", default="127.0.0.1")
HTTP_PORT = environment.port("HTTP_PORT", 8000)
SITE_URL = environment.site_url("SITE_URL", f"http://127.0.0.1:{HTTP_PORT}")
SITE_NAME = env.str("SITE_NAME", default="Potluck")
SWARM_HOST = env.str("SWARM_HOST", default="127.0.0.1")
SWARM_FIRST_PORT = environment.port("SWARM_FIRST_PORT", 31330)
HUB_URL = env.str("HUB_URL", default="https://huggingface.co").rstrip("/")
HUB_TOKEN = env.str("HUB_TOKEN", default="")
LAB_MINUTES = environment.whole_number("LAB_MINUTES", 30, low=1, high=1440)
LAB_MEMORY_MB = environment.whole_number("LAB_MEMORY_MB", 3000, low=500, high=10**6)
TORCH_CPU_INDEX = env.str("TORCH_CPU_INDEX", default="https://download.pytorch.org/whl/cpu")

if PRODUCTION and not env.str("SECRET_KEY", default=""):
    raise ImproperlyConfigured("PRODUCTION=true needs SECRET_KEY: 50 random characters or more.")
SECRET_KEY = env.str("SECRET_KEY", default="") or kept_secret(DATA_DIR / "secret_key")
AUTHORITY_KEY_FILE = Path(env.str("AUTHORITY_KEY_FILE", default=str(DATA_DIR / "authority.pem")))

_host = SITE_URL.split("//", 1)[1].split("/")[0].rsplit(":", 1)[0]
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=sorted({_host, "127.0.0.1", "localhost"}))
CSRF_TRUSTED_ORIGINS = [SITE_URL]

# ------------------------------------------------------------------ Django
OUR_APPS = (
    "core accounts audit devices collaborations credit artifacts shards held_out live lab "
    "tokenizers evaluations registry launcher swarm ops pages"
)
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.github",
    "allauth.socialaccount.providers.google",
    *(f"webapp.{name}" for name in OUR_APPS.split()),
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "webapp.api.problems.JsonProblems",
]
ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "webapp.pages.context.site",
            ]
        },
    }
]
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# ------------------------------------------------------------------ database, broker, files
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",  # Django's DEFERRED gives "database is locked" under load
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
    "PRAGMA journal_size_limit=27103364; PRAGMA temp_store=MEMORY",
}
_database = environment.database("DATABASE_URL", f"sqlite:///{DATA_DIR}/potluck.sqlite3")
DATABASES = {"default": _database}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = SQLITE_OPTIONS
else:
    DATABASES["default"] |= {"CONN_MAX_AGE": 0, "OPTIONS": {"pool": {"min_size": 1, "max_size": 8}}}

# A unix socket's path must stay under 108 bytes, so it cannot live in DATA_DIR.
_place = hashlib.sha256(str(DATA_DIR).encode()).hexdigest()[:8]
RUN_DIR = Path(env.str("RUN_DIR", default=f"/tmp/potluck-{os.getuid()}-{_place}"))  # noqa: S108
VALKEY_URL = environment.valkey_url("VALKEY_URL")
VALKEY_SOCKET = RUN_DIR / "valkey.sock"
_valkey = VALKEY_URL or f"unix://{VALKEY_SOCKET}"
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": _valkey}
}
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [_valkey]},
    }
}
CELERY_BROKER_URL = VALKEY_URL or f"redis+socket://{VALKEY_SOCKET}?virtual_host=0"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
ARTIFACTS_DIR = DATA_DIR / "artifacts"
MEDIA_ROOT = DATA_DIR / "media"
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "webapp.core.finders.PackageFinder",
]
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

# ------------------------------------------------------------------ accounts
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_REDIRECT_URL = "/me/"
LOGIN_URL = "/accounts/login/"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_ADAPTER = "webapp.accounts.adapter.AccountAdapter"
ACCOUNT_EMAIL_SUBJECT_PREFIX = f"[{SITE_NAME}] "
ACCOUNT_FORMS = {"signup": "webapp.accounts.forms.SignupForm"}
ACCOUNT_EMAIL_VERIFICATION = env.str("EMAIL_VERIFICATION", default="mandatory")
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if SITE_URL.startswith("https") else "http"
ALLAUTH_TRUSTED_PROXY_COUNT = environment.whole_number("TRUSTED_PROXY_COUNT", 0, low=0, high=20)
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
SOCIALACCOUNT_PROVIDERS = {
    provider: {
        "APPS": [{"client_id": env.str(f"{prefix}_ID"), "secret": env.str(f"{prefix}_SECRET")}]
    }
    for provider, prefix in (("github", "GITHUB_LOGIN"), ("google", "GOOGLE_LOGIN"))
    if env.str(f"{prefix}_ID", default="")
}
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="potluck@localhost")
EMAIL_CONFIG = environment.email("EMAIL_URL", "filemail:///")
EMAIL_BACKEND = "webapp.core.mail.QueuedBackend"
EMAIL_DELIVERY_BACKEND = EMAIL_CONFIG["EMAIL_BACKEND"]
EMAIL_TIMEOUT = 20
EMAIL_HOST = EMAIL_CONFIG.get("EMAIL_HOST") or "localhost"
EMAIL_PORT = EMAIL_CONFIG.get("EMAIL_PORT") or 25
EMAIL_HOST_USER = EMAIL_CONFIG.get("EMAIL_HOST_USER") or ""
EMAIL_HOST_PASSWORD = EMAIL_CONFIG.get("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_TLS = EMAIL_CONFIG.get("EMAIL_USE_TLS", False)
EMAIL_FILE_PATH = DATA_DIR / "mail"

# ------------------------------------------------------------------ security
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, "'unsafe-inline'"],  # plotly injects its styles
        "img-src": [SELF, "data:", "blob:"],
        "connect-src": [SELF],
        "frame-ancestors": ["'none'"],
        "form-action": [SELF],
        "base-uri": [SELF],
        "object-src": ["'none'"],
    }
}
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if PRODUCTION:
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^ping$"]
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = True
    if ALLAUTH_TRUSTED_PROXY_COUNT:
        SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": environment.level("LOG_LEVEL")},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},  # scanners ask for other hosts
        "httpx": {"level": "WARNING"},
    },
}
