from django.apps import AppConfig


class DevicesConfig(AppConfig):
    name = "webapp.devices"
    label = "devices"

    def ready(self) -> None:
        from webapp.devices import receivers  # noqa: F401  connects them
