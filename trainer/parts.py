"""What recipes are made of: choices, files by their hash, and a trained model to begin from."""

from __future__ import annotations

import hashlib
import re
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from trainer.wire import Sha256


def first_problem(error: ValidationError) -> str:
    """What is wrong first with what a person wrote, and where, in one line."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    pattern = first.get("ctx", {}).get("pattern", "")
    words = IN_WORDS.get(pattern) or first["msg"].removeprefix("Value error, ")
    return f"{place}: {words}" if place else words


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Choice(Part):
    """A plug-in by its file name, with its parameters (checked by `catalogue.check`)."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")
    params: dict[str, int | float | str | bool] = {}


class File(Part):
    """Content-addressed: any peer fetches it from the site by its hash and checks it."""

    sha256: Sha256
    size_bytes: int = Field(ge=1)
    filename: str = Field(pattern=r"^[A-Za-z0-9._-]{1,120}$")


# Begins a name, and what may follow: no "..", which would be another place, and no option.
PLAIN = "[A-Za-z0-9_][A-Za-z0-9._-]"
NAME_AT_HUB = rf"^{PLAIN}{{0,95}}(/{PLAIN}{{0,95}})?$"
WORD_AT_HUB = rf"^{PLAIN}{{0,119}}$"
COMMIT = r"^([0-9a-f]{40})?$"
SIGNS = "letters, digits, dots, dashes and underscores, the first no dot or dash"
# What a person reads instead of a pattern.
IN_WORDS = {
    NAME_AT_HUB: f"as org/name or name, each at most 96 {SIGNS}",
    WORD_AT_HUB: f"at most 120 {SIGNS}",
    COMMIT: "40 hex digits (0-9, a-f)",
}


class DataSet(Part):
    """Of a hub, by its name there. `column` has the text; "": text, a chat or an instruction.

    `revision`: a commit of its Parquet files, which stay so for ever; "": as they are when read.
    """

    name: str = Field(pattern=NAME_AT_HUB)
    config: str = Field("default", pattern=WORD_AT_HUB)
    split: str = Field("train", pattern=WORD_AT_HUB)
    column: str = Field("", max_length=120)
    revision: str = Field("", pattern=COMMIT)

    @classmethod
    def called(cls, word: str, **more: str) -> DataSet:
        """From NAME or NAME@REVISION. Raises ValidationError."""
        name, at, revision = word.partition("@")
        return cls(name=name, revision=revision or at, **more)

    @property
    def word(self) -> str:
        """As `called` takes it."""
        return f"{self.name}@{self.revision}" if self.revision else self.name


class Special(Part):
    """Tokens with a role, by their names in the tokenizer; "" where it has none for it."""

    pad: str = Field("<pad>", min_length=1, max_length=60)
    end: str = Field("[SEP]", min_length=1, max_length=60)
    start: str = Field("[CLS]", max_length=60)
    unknown: str = Field("<unk>", max_length=60)
    mask: str = Field("[MASK]", max_length=60)


class Matrix(Part):
    """`count` weights of a base's layers under one name, each of `inputs` x `outputs` values."""

    name: str = Field(pattern=r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$", max_length=120)
    count: int = Field(ge=1)
    inputs: int = Field(ge=1)
    outputs: int = Field(ge=1)


class Stack(Part):
    """The layers of a base, each of which reads what the one before it made.

    `place` is what comes before a layer's number in the names of its weights, `layers` how many
    values each has, and `after` the weights between the last one and the scores: all by the names
    that they have in the files.
    """

    place: str = Field(pattern=r"^\w+(\.\w+)*$", max_length=120)
    layers: tuple[int, ...] = Field(min_length=1, max_length=1000)
    after: tuple[str, ...] = Field((), max_length=50)
    after_values: int = Field(0, ge=0)


PLACES = {
    "site": r"^$",
    "http": r"^https?://\S+$",
    "hub": r"^[\w.-]+/[\w.-]+(@[\w./-]+)?$",
    "local": r"^.*\S.*$",
}
# What a base may consist of; nothing that holds code, and no pickle.
BASE_FILE = re.compile(r"^(generation_)?config\.json$|^\w[\w.-]*\.safetensors(\.index\.json)?$")


Precision = Literal["fp32", "bf16", "int8", "nf4"]


class Base(Part):
    """A trained model to begin from: a folder of `transformers`, each file by its hash.

    `place` says where the files are: nothing for the site; the folder's address (http); ORG/NAME or
    ORG/NAME@REVISION (hub); a folder on each device (local). What the weights are, `bases.describe`
    reads from the files. Weights that do not train are held in `precision`; in 8 or 4 bits those of
    the layers' matrices alone, which needs a library that not every device has. No `stack`: its
    layers share their weights, or cannot be told apart.
    """

    kind: Literal["site", "http", "hub", "local"]
    place: str = Field("", max_length=500)
    files: tuple[File, ...] = Field(min_length=2, max_length=200)
    parameters: int = Field(ge=1)
    matrices: tuple[Matrix, ...] = Field((), max_length=200)
    special: Special = Special()
    precision: Precision = "fp32"
    stack: Stack | None = None

    @model_validator(mode="after")
    def is_whole(self) -> Base:
        if not re.match(PLACES[self.kind], self.place):
            raise ValueError(f"a base of kind {self.kind!r} cannot be at {self.place!r}")
        names = [file.filename for file in self.files]
        if strange := [name for name in names if not BASE_FILE.match(name)]:
            raise ValueError(
                f"{strange[0]} may not be part of a base: only config.json and safetensors are"
            )
        if "config.json" not in names or len(set(names)) < len(names):
            raise ValueError("a base has one config.json, and each file once")
        return self

    def written(self) -> str:
        """As the site keeps it: the same base is the same text."""
        return self.model_dump_json(indent=1)

    @property
    def sha256(self) -> str:
        """Of its content, wherever that is."""
        lines = sorted(f"{file.filename} {file.sha256}\n" for file in self.files)
        return hashlib.sha256("".join(lines).encode()).hexdigest()


class Tokenizer(Part):
    file: File
    vocab_size: int = Field(ge=8, le=1_000_000)


NAMES_USER = "it has a name or a password in it, for everybody who may see the recipe"


def names_user(url: str) -> bool:
    """Whether a name or password stands before its host. Raises ValueError for what is no URL."""
    return "@" in urlsplit(url).netloc


class Text(Part):
    """Where text comes from. `site`: a file of the site by hash; `http`: a URL; `local`: a path;
    `datasets`: a data set of a hub by its name.

    One document a line (JSONL with a `text` key, or plain text), packed with gzip, bzip2, xz or
    zstd or not; Parquet; or a MediaWiki dump: told by the first bytes. `private`: each volunteer's
    own, which never leaves the device; it may look as `trainer/sources/formats.py` says.
    """

    kind: Literal["site", "http", "datasets", "local", "private"]
    file: File | None = None
    dataset: DataSet | None = None
    url: str = Field("", max_length=500, pattern=r"^(https?://.+)?$")
    path: str = Field("", max_length=500)
    weight: float = Field(1.0, gt=0)
    credit: str = Field("", max_length=300, description="Whose text this is, and its licence.")

    @model_validator(mode="after")
    def names_one_place(self) -> Text:
        places = {
            "site": self.file,
            "http": self.url,
            "datasets": self.dataset,
            "local": self.path,
        }
        if self.kind == "private":
            if any(places.values()):
                raise ValueError("a private text is where each volunteer says: name no place")
        elif not places[self.kind]:
            raise ValueError(f"text of kind {self.kind!r} does not say where it is")
        if names_user(self.url):
            raise ValueError(f"url: {NAMES_USER}")
        return self

    @property
    def is_on_device(self) -> bool:
        """Whether each device has its own: such a text is not shared out."""
        return self.kind in ("local", "private")
