"""The organiser's form: its choices come from the catalogue, its bounds from the recipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.text import slugify
from pydantic import ValidationError

from trainer import catalogue
from trainer.recipe import Base, Choice, Recipe, Round, Tokenizer
from webapp.accounts.models import User
from webapp.collaborations import drafts, services
from webapp.collaborations.chosen_texts import chosen_texts, file_of, keys_shown, site_text
from webapp.collaborations.dataset_field import DataSetsField
from webapp.collaborations.models import Collaboration
from webapp.collaborations.recipe_parts import PARTS
from webapp.collaborations.schema_fields import field_of, fields_of, values_of
from webapp.collaborations.sections import Section, sections_of
from webapp.collaborations.sizes import check_length, size_of
from webapp.collaborations.text_fields import AddressesField, WeightsField
from webapp.core.templatetags.ui import byte_size, number

FOLDERS = {"family": "families", "adapter": "adapters", "strategy": "strategies"}
TEXTS = ("texts", "text_url", "dataset", "own_texts")
NONE = ("", "None")
STEP_SAMPLES = 8  # of a local step, where the organiser does not say


class CollaborationForm(forms.Form):
    """`tokenizers` and `texts` are the site's files (`artifacts.selectors`), `bases` what it offers
    (`artifacts.bases`).

    With `draft` it changes that one; `initial` is then what it is now (`prefill`).
    After `is_valid()`, `recipe` is the checked recipe.
    """

    title = forms.CharField(max_length=80)
    slug = forms.SlugField(
        label="Short name",
        max_length=64,
        required=False,
        help_text="Part of its address. Left empty, it is made from the title.",
    )
    summary = forms.CharField(max_length=300, required=False)
    family = forms.ChoiceField(label="Model")
    base = forms.ChoiceField(
        label="Trained model to begin with",
        required=False,
        help_text="Where the model above is a trained one. Its tokenizer goes with it.",
    )
    adapter = forms.ChoiceField(
        required=False,
        help_text="What trains beside a trained model, which stays as it is. None: all of it does.",
    )
    strategy = forms.ChoiceField(label="Strategy")
    tokenizer = forms.ChoiceField(label="Tokenizer")
    texts = forms.MultipleChoiceField(label="Texts to train on", required=False)
    text_url = AddressesField(
        label="Texts at web addresses",
        required=False,
        help_text="One a line: lines of text or JSON, packed or not, Parquet, or a Wikipedia dump. "
        "Devices fetch them themselves.",
    )
    dataset = DataSetsField(
        label="Data sets of a Hugging Face hub",
        required=False,
        help_text="One a line: ORGANISATION/NAME, then configuration, split and column where they "
        "are not default, train and text. Devices read them as they train.",
    )
    own_texts = forms.BooleanField(
        label="Each volunteer's own texts",
        required=False,
        help_text="Volunteers name a file or folder on their computers. Its text stays there.",
    )
    weights = WeightsField(
        label="Shares of the texts",
        required=False,
        help_text="One number for each text in the order above, like 0.23 0.77. Empty: all alike.",
    )
    held_out = forms.ChoiceField(
        label="Held-out text", required=False, help_text="Never trained on; it measures progress."
    )
    sequence_length = forms.IntegerField(min_value=8, max_value=8192, initial=128)
    micro_batch = forms.IntegerField(
        min_value=1,
        max_value=4096,
        required=False,
        help_text="Sequences a device handles at once. Left empty, each device finds what takes it "
        "about a second; strategies that take a step after each (all but DeDLOC) then use 8.",
    )
    precision = field_of(Recipe, "precision")
    seed = forms.IntegerField(min_value=0, max_value=2**31 - 1, initial=0)
    is_large = forms.BooleanField(
        label="Larger than most machines hold",
        required=False,
        help_text="Only where you know that the volunteers' machines have the memory.",
    )

    def __init__(
        self,
        *args: Any,
        tokenizers: Any,
        texts: Any,
        bases: Mapping[str, tuple[str, Base]] | None = None,
        draft: Collaboration | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.draft, self.bases = draft, bases or {}
        self.artifacts: dict[str, Any] = {str(file.sha256): file for file in [*tokenizers, *texts]}
        self.recipe: Recipe | None = None
        titles = [(file.sha256, str(file)) for file in texts]
        shown = keys_shown(self.initial, [str(file.sha256) for file in texts])
        self.fields["weights"].keys = shown  # type: ignore[attr-defined]
        self._offer("tokenizer", [(file.sha256, str(file)) for file in tokenizers])
        self._offer("texts", titles)
        self._offer("held_out", [NONE, *titles])
        self._offer("base", [NONE, *((key, title) for key, (title, _) in self.bases.items())])
        for of, folder in FOLDERS.items():
            none = [] if self.fields[of].required else [NONE]
            self._offer(of, [*none, *catalogue.choices(folder)])
            for name, plugin in catalogue.plugins(folder).items():
                self.fields |= fields_of(plugin.Params, f"{of}__{name}")
        for part, model in PARTS.items():
            self.fields |= fields_of(model, part)

    def _offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField), f"{name} offers no choice"
        field.choices = choices

    def sections(self) -> list[Section]:
        """All fields in the order to show them."""
        return sections_of(self, FOLDERS, PARTS)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        slug = cleaned.get("slug") or slugify(cleaned.get("title", ""))[:64].strip("-")
        slug = slug.replace("_", "-").lower()
        if not slug or slug[0] == "-":
            self.add_error("slug", "Give a short name of letters a-z, digits and hyphens.")
        own = self.draft.pk if self.draft else 0
        if Collaboration.objects.filter(slug=slug).exclude(pk=own).exists():
            self.add_error("slug", f"There is a collaboration called {slug} already.")
        if not any(cleaned.get(name) or name in self.errors for name in TEXTS):
            self.add_error("texts", "Choose a text, say where one is, or tick their own.")
        if cleaned.get("held_out") and cleaned["held_out"] in cleaned.get("texts", []):
            self.add_error("held_out", "This text is trained on: choose another one.")
        self._check_rules(cleaned)
        if not self.errors:
            self._make_recipe(cleaned, slug)
        return cleaned

    def _check_rules(self, cleaned: dict[str, Any]) -> None:
        """Values that are each in range, and make no sense together."""
        if not cleaned.get("held_out"):
            for name in ("finish__held_out_loss", "finish__patience_rounds"):
                if cleaned.get(name):
                    self.add_error(name, "This rule needs a held-out text: choose one above.")
        matchmaking_s, deadline_s = (
            cleaned.get(f"round__{name}") or Round.model_fields[name].default
            for name in ("matchmaking_s", "deadline_s")
        )
        if matchmaking_s >= deadline_s:
            self.add_error(
                "round__matchmaking_s",
                f"Peers would look for each other for {matchmaking_s:g} s in rounds of at most "
                f"{deadline_s:g} s: make the deadline several times longer.",
            )

    def _check_size(self, recipe: Recipe) -> None:
        size = size_of(recipe)
        if size.is_too_large and not self.cleaned_data.get("is_large"):
            self.add_error(
                "is_large",
                f"This model has {number(size.parameters)} parameters: every device needs about "
                f"{byte_size(size.memory_bytes)} of memory and moves about "
                f"{byte_size(size.round_bytes)} a round, more than most machines can. "
                "Make it smaller, or tick this.",
            )

    def _make_recipe(self, cleaned: dict[str, Any], slug: str) -> None:
        try:
            recipe = self._recipe(cleaned, slug)
            catalogue.check(recipe)
            check_length(recipe)
            self._check_size(recipe)
        except forms.ValidationError as error:
            self.add_error("weights", error)
        except ValidationError as error:
            for problem in error.errors():
                place = "__".join(str(part) for part in problem["loc"])
                names = [place, *(f"{of}__{cleaned[of]}__{place}" for of in FOLDERS)]
                text = problem["msg"].removeprefix("Value error, ")
                self.add_error(next((one for one in names if one in self.fields), None), text)
        except ValueError as error:
            self.add_error(None, str(error))
        else:
            self.recipe = recipe

    def _recipe(self, cleaned: dict[str, Any], slug: str) -> Recipe:
        tokenizer = self.artifacts[cleaned["tokenizer"]]
        held_out = cleaned["held_out"]
        steps = catalogue.plugins("strategies")[cleaned["strategy"]].local
        return Recipe.model_validate(
            {
                "collaboration": slug,
                "tokenizer": Tokenizer(file=file_of(tokenizer), vocab_size=tokenizer.vocab_size),
                "texts": chosen_texts(cleaned, self.artifacts, self.initial.get("credits", {})),
                "held_out": site_text(self.artifacts[held_out]) if held_out else None,
                "base": self.bases[cleaned["base"]][1] if cleaned["base"] else None,
                **{of: self._choice(cleaned, of) for of in FOLDERS},
                **{part: values_of(cleaned, part) for part in PARTS},
                "micro_batch": cleaned["micro_batch"] or (STEP_SAMPLES if steps else None),
                "sequence_length": cleaned["sequence_length"],
                "precision": cleaned["precision"] or "fp32",
                "seed": cleaned["seed"],
            }
        )

    def _choice(self, cleaned: dict[str, Any], of: str) -> Choice | None:
        name = cleaned[of]
        return Choice(name=name, params=values_of(cleaned, f"{of}__{name}")) if name else None

    def differences(self) -> list[str]:
        """Labels of the fields whose value is not that of `initial`."""
        return list(dict.fromkeys(str(self[name].label) for name in self.changed_data))

    def save(self, *, by: User, seen: str = "") -> Collaboration:
        """Creates the draft or changes it. Raises UserError as the service does."""
        assert self.recipe is not None, "save() comes after is_valid()"
        title, summary = self.cleaned_data["title"], self.cleaned_data["summary"]
        if self.draft is None:
            return services.create(title=title, summary=summary, recipe=self.recipe, by=by)
        return drafts.change(
            self.draft,
            seen=seen,
            title=title,
            summary=summary,
            recipe=self.recipe,
            changed=self.differences(),
            by=by,
        )
