from django.apps import AppConfig


class DevicesConfig(AppConfig):
    name = "webapp.devices"
    label = "devices"
