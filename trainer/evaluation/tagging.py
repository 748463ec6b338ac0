"""Tags of words: named entities, parts of speech and the like."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from unicodedata import normalize

from trainer.evaluation.finetuning import Item, Plan, scores_by_start
from trainer.evaluation.labelled import Sentence, Split, are_spans, labels_of
from trainer.evaluation.model import Evaluated
from trainer.evaluation.report import Report, Scores
from trainer.evaluation.results import Baseline, Result, Score
from trainer.text.tokenizer import STRANGE

Tags = list[list[str]]  # of the words of each sentence


def evaluate(model: Evaluated, data: Split, plan: Plan, report: Report) -> Result:
    """F1 of spans where the tags mark some (IOB), and the share of words whose tag is right.

    The label of a word is on its first piece. Raises ValueError.
    """
    truth = [list(sentence.tags) for sentence in data.test]
    labels = labels_of(_flat(s.tags for s in data.train), _flat(truth))
    in_spans = are_spans(labels)
    number_of = {label: number for number, label in enumerate(labels)}
    train = [item for s in data.train for item in items(model, s, number_of)]
    parts = [list(items(model, sentence, number_of)) for sentence in data.test]
    test = list(chain.from_iterable(parts))

    def score(found: list[list[int]]) -> Scores:
        given = iter(found)
        tags = [[labels[n] for _ in part for n in next(given)] for part in parts]
        return scored(truth, tags, in_spans)

    rows = scores_by_start(model, train, test, len(labels), plan, report, score)
    baselines = [
        Baseline(name, scored(truth, tags, in_spans)) for name, tags in guesses(data).items()
    ]
    unlearned = set(_flat(truth)) - set(_flat(s.tags for s in data.train))
    counts = {
        "sentences to learn from": len(data.train),
        "sentences of the test": len(data.test),
        "words of the test": sum(map(len, truth)),
        "tags": len(labels),
        "tags only the test has": len(unlearned),
        "rows without a word": data.left_out,
    }
    scores = [Score(name, tuple(row[name] for row in rows)) for name in rows[0]]
    return Result("tags", tuple(scores), tuple(baselines), counts)


def items(model: Evaluated, sentence: Sentence, number_of: dict[str, int]) -> Iterator[Item]:
    """Pieces of whole words that fit the model; each word is in one of them."""
    start = model.frame([-1]).index(-1)
    ids: list[int] = []
    places: list[int] = []
    labels: list[int] = []
    for word, tag in zip(sentence.words, sentence.tags, strict=True):
        pieces = model.tokenizer.encode(word) or model.tokenizer.encode(STRANGE)
        pieces = pieces[: model.room]
        if len(ids) + len(pieces) > model.room:
            yield Item(model.frame(ids), places, labels)
            ids, places, labels = [], [], []
        places.append(start + len(ids))
        labels.append(number_of[tag])
        ids += pieces
    yield Item(model.frame(ids), places, labels)


def guesses(data: Split) -> dict[str, Tags]:
    """The most frequent tag for all words; and for each word, however it is spelt in Unicode, the
    one that it has most often."""
    usual = Counter(_flat(s.tags for s in data.train)).most_common(1)[0][0]
    seen: dict[str, Counter[str]] = {}
    for sentence in data.train:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            seen.setdefault(normalize("NFC", word), Counter())[tag] += 1
    own = {word: tags.most_common(1)[0][0] for word, tags in seen.items()}
    return {
        f"all words {usual}": [[usual] * len(s.words) for s in data.test],
        "each word's most frequent tag": [
            [own.get(normalize("NFC", word), usual) for word in s.words] for s in data.test
        ],
    }


def scored(truth: Tags, tags: Tags, in_spans: bool) -> dict[str, float]:
    """As conlleval counts spans, which is what seqeval does unless told otherwise."""
    pairs = list(zip(_flat(truth), _flat(tags), strict=True))
    found = {"word_accuracy": sum(a == b for a, b in pairs) / len(pairs)}
    if not in_spans:
        return found
    from seqeval.metrics import f1_score

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where no span is found, F1 is 0, as it should be
        return {"span_f1": float(f1_score(truth, tags))} | found


def _flat(rows: Iterable[Iterable[str]]) -> list[str]:
    return list(chain.from_iterable(rows))
