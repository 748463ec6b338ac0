from django.apps import AppConfig


class CreditConfig(AppConfig):
    name = "webapp.credit"
    label = "credit"
