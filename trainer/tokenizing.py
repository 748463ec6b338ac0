"""What can be asked of a tokenizer: its size, what it is for, and how texts are written before."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trainer.parts import Part

Purpose = Literal["albert", "causal", "encoder-decoder"]
PURPOSES: dict[Purpose, str] = {
    "albert": "ALBERT and other masked models: [CLS], [SEP] and [MASK]",
    "causal": "models that predict the next token: <s> and </s>",
    "encoder-decoder": "T5 and its like: </s> and 100 sentinels",
}

# One of these stands for what is hidden, by the kind of a model's objective.
HIDING = {"masked": ("[MASK]", "<extra_id_0>"), "spans": ("<extra_id_0>",)}
MADE_FOR = {"masked": "ALBERT", "spans": "T5"}

StepName = Literal["clean", "nfkc", "spaces", "nukta", "vowels", "visarga", "danda", "accents"]
# In the order in which they are done.
STEPS: dict[StepName, str] = {
    "clean": "control and invisible characters go, all blanks become spaces; ZWJ and ZWNJ stay",
    "nfkc": "one of several Unicode spellings of a character (NFKC)",
    "spaces": "one space where several are, none at the ends",
    "nukta": "Bengali ড় ঢ় য় as letter and nukta",
    "vowels": "Bengali ো and ৌ as one sign each",
    "visarga": "a colon after a Bengali letter is a visarga",
    "danda": "৷, and | after Bengali, are a danda; two are a double danda",
    "accents": "accents of Latin and Greek letters go; every other script's marks stay",
}


class Wanted(Part):
    """`without`: steps of the normal form that are left out. Special tokens count as tokens."""

    size: int = Field(32_000, ge=256, le=500_000)
    purpose: Purpose = "albert"
    without: tuple[StepName, ...] = ()
