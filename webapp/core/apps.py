from django.apps import AppConfig


class CoreConfig(AppConfig):
    name = "webapp.core"
    label = "core"

    def ready(self) -> None:
        from webapp.core import checks, mail  # noqa: F401  registers checks and the mail job
