from django.apps import AppConfig


class HeldOutConfig(AppConfig):
    name = "webapp.held_out"
    label = "held_out"
