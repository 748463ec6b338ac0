from django.apps import AppConfig


class LiveConfig(AppConfig):
    name = "webapp.live"
    label = "live"

    def ready(self) -> None:
        from webapp.live import receivers  # noqa: F401  connects them
