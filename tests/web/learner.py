"""A device that learns of texts round by round, as a process: `python -m tests.web.learner`

takes a folder with `facts.json`. For each line that it hears it tells which ids its next round was
of, in order, and begins another one, that it may be killed in.
"""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from trainer.agent.join import Api
from trainer.agent.ledger import FILENAME
from trainer.agent.shards import ShardHolder
from trainer.engine.job import Job
from trainer.engine.reading import reading_of
from trainer.recipe import Recipe
from trainer.text.tokenizer import Tokenizer
from trainer.wire import Role

BATCHES, ROWS = 8, 4


class Grant(NamedTuple):
    recipe: Recipe
    recipe_sha256: str


def main(folder: Path) -> None:
    facts = json.loads((folder / "facts.json").read_text())
    recipe = Recipe.model_validate_json(facts["recipe"])
    api = Api(facts["site"], facts["token"])
    holder = ShardHolder(
        api, recipe.collaboration, Grant(recipe, recipe.sha256()), folder / FILENAME
    )
    given = {"recipe": recipe, "role": Role.PEER, "folder": folder, "shards": holder}
    given["texts"] = (Path(facts["text"]),)
    job = Job(**dict.fromkeys(Job.__dataclass_fields__) | given)
    with reading_of(job, Tokenizer(Path(facts["tokenizer"]), facts["vocab_size"])) as reading:
        assert reading is not None
        batches = reading.batches("me", lambda: ROWS)
        begun = next(batches)
        for _ in sys.stdin:
            gathered = [begun, *islice(batches, BATCHES)]
            learned = [batch.ids.flatten().tolist() for batch in gathered]
            reading.delivery.keep(reading.delivery.mark)
            begun = next(batches)
            print(json.dumps(learned), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
