"""What a file of `recipes/` says: texts, a tokenizer, a recipe, and what to evaluate it with."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from django.conf import settings
from pydantic import Field, ValidationError, model_validator

from trainer import catalogue
from trainer.parts import first_problem
from trainer.recipe import File, Part, Recipe, Text, Tokenizer
from trainer.tokenizing import Wanted
from webapp.core.errors import UserError
from webapp.evaluations.forms import MOST_SCORE

FOLDER = settings.BASE_DIR / "recipes"
# Stands for a file that is made only when the recipe is opened.
UNMADE = File(sha256="0" * 64, size_bytes=1, filename="unmade")


class PackageText(Part):
    """Documents of a package that is installed (`corpora`). One in twenty is held out."""

    kind: Literal["package"]
    name: str
    weight: float = Field(1.0, gt=0)


class Pairs(Part):
    """Byte-level pairs out of the first `documents` texts, within seconds."""

    kind: Literal["pairs"]
    size: int = Field(4096, ge=300, le=100_000)
    documents: int = Field(2000, ge=1)


class Unigram(Wanted):
    """Made by the site's job out of all texts, as the console does it."""

    kind: Literal["unigram"]

    def wanted(self) -> Wanted:
        return Wanted.model_validate(self.model_dump(exclude={"kind"}))


class Published(Part):
    """The `tokenizer.json` of a model of a hub, `name`, as it was at `revision`."""

    kind: Literal["hub"]
    name: str = Field(pattern=r"^[A-Za-z0-9._-]{1,96}/[A-Za-z0-9._-]{1,96}$")
    revision: str = Field(pattern=r"^[0-9a-f]{40}$")
    size: int = Field(ge=8, le=1_000_000)
    credit: str = Field(max_length=300)


class Baseline(Part):
    name: str = Field(min_length=1, max_length=80)
    score: float = Field(ge=0, le=MOST_SCORE)
    std: float | None = Field(None, ge=0, le=MOST_SCORE)
    source: str = Field(min_length=1, max_length=300)


class Task(Part):
    """`data`: "held-out" for the text that is held out, the name of labelled data of a package
    (`corpora`), or of what somebody puts into the site's folder for such. Or `dataset` and
    `columns`, of a hub, as an organiser writes them."""

    title: str = Field(min_length=1, max_length=80)
    kind: Literal["perplexity", "tags", "classes"]
    data: str = Field("", pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,100})?$")
    dataset: str = Field("", max_length=300)
    columns: str = Field("", max_length=200)
    every: int = Field(0, ge=0)
    starts: int = Field(3, ge=3, le=50)
    epochs: int = Field(5, ge=1, le=100)
    rate: float = Field(3e-4, gt=0, le=1)
    baselines: tuple[Baseline, ...] = ()

    @model_validator(mode="after")
    def names_its_data(self) -> Task:
        if bool(self.data) == bool(self.dataset):
            raise ValueError(f"{self.title} names data, or a dataset of a hub, and not both")
        return self


class Ready(Part):
    """`recipe` is a `Recipe` without what the other parts give it. `offline`: the parts that are
    others where no hub can be reached; of `recipe` single values, of the rest the whole part."""

    title: str = Field(min_length=1, max_length=80)
    summary: str = Field("", max_length=300)
    texts: tuple[Annotated[PackageText | Text, Field(discriminator="kind")], ...] = Field(
        min_length=1, max_length=32
    )
    tokenizer: Annotated[Pairs | Unigram | Published, Field(discriminator="kind")]
    recipe: dict[str, Any]
    tasks: tuple[Task, ...] = ()
    offline: dict[str, Any] | None = None

    @model_validator(mode="after")
    def makes_a_recipe(self) -> Ready:
        catalogue.check(self.outline())
        return self

    def outline(self) -> Recipe:
        """Its recipe but for the files that are made when it is opened. Raises ValueError."""
        texts = (
            Text(kind="site", file=UNMADE, weight=text.weight)
            if isinstance(text, PackageText)
            else text
            for text in self.texts
        )
        return self.made_of(UNMADE, self.tokenizer.size, tuple(texts), None)

    def made_of(
        self, tokenizer: File, size: int, texts: tuple[Text, ...], held_out: Text | None
    ) -> Recipe:
        """Raises ValueError."""
        return Recipe.model_validate(
            self.recipe
            | {
                "tokenizer": Tokenizer(file=tokenizer, vocab_size=size),
                "texts": texts,
                "held_out": held_out,
            }
        )

    @property
    def needs_a_hub(self) -> bool:
        kinds = {text.kind for text in self.texts}
        return self.tokenizer.kind == "hub" or "datasets" in kinds


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read(name: str, *, offline: bool = False) -> Ready:
    """Raises UserError: there is none of that name, or it is no recipe; says what is wrong."""
    if name not in names():
        raise UserError(f"There is no recipe called {name!r}.", f"There are: {', '.join(names())}.")
    path = FOLDER / f"{name}.toml"
    try:
        with path.open("rb") as file:
            said = tomllib.load(file)
        return Ready.model_validate(_offline(said) if offline else said)
    except ValidationError as error:
        raise UserError(f"{_told(path)} is no recipe: {first_problem(error)}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{_told(path)} is not TOML: {error}.") from error
    except OSError as error:
        raise UserError(f"{_told(path)} cannot be read: {error.strerror}.") from error


def _offline(said: dict[str, Any]) -> dict[str, Any]:
    changes = dict(said.get("offline") or {})
    recipe = _merged(said.get("recipe", {}), changes.pop("recipe", {}))
    return {**said, **changes, "recipe": recipe, "offline": None}


def _merged(values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Table by table, value by value."""
    merged = dict(values)
    for key, change in changes.items():
        before = merged.get(key)
        both = isinstance(change, dict) and isinstance(before, dict)
        merged[key] = _merged(before, change) if both else change  # type: ignore[arg-type]
    return merged


def _told(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
