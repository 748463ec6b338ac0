"""Classes of texts."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from unicodedata import normalize

from trainer.evaluation.finetuning import Item, Plan, scores_by_start
from trainer.evaluation.labelled import Split, labels_of
from trainer.evaluation.model import Evaluated
from trainer.evaluation.report import Report, Scores
from trainer.evaluation.results import Baseline, Result, Score
from trainer.text.tokenizer import STRANGE

MOST_FEATURES = 200_000


def evaluate(model: Evaluated, data: Split, plan: Plan, report: Report) -> Result:
    """The share of texts whose class is right, and the mean F1 of the classes. Raises ValueError.

    A text that is longer than the model reads counts by its beginning.
    """
    truth = [row.label for row in data.test]
    labels = labels_of([row.label for row in data.train], truth)
    number_of = {label: number for number, label in enumerate(labels)}
    cut = 0

    def item(text: str, label: str) -> Item:
        nonlocal cut
        ids = model.tokenizer.encode(text) or model.tokenizer.encode(STRANGE)
        cut += len(ids) > model.room
        return Item(model.frame(ids[: model.room]), [], [number_of[label]])

    train, test = ([item(*row) for row in part] for part in data[:2])

    def score(found: list[list[int]]) -> Scores:
        return scored(truth, [labels[number] for (number,) in found])

    rows = scores_by_start(model, train, test, len(labels), plan, report, score)
    counts = {
        "texts to learn from": len(train),
        "texts of the test": len(test),
        "classes": len(labels),
        "classes only the test has": len(set(truth) - {row.label for row in data.train}),
        "texts cut": cut,
        "rows without a text": data.left_out,
    }
    scores = [Score(name, tuple(row[name] for row in rows)) for name in rows[0]]
    baselines = (Baseline(name, scored(truth, given)) for name, given in guesses(data).items())
    return Result("classes", tuple(scores), tuple(baselines), counts)


def guesses(data: Split) -> dict[str, Sequence[str]]:
    """The most frequent class; and a linear model of the groups of up to four characters within
    words, weighed by TF-IDF, which needs no words and so reads every script."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    usual = Counter(row.label for row in data.train).most_common(1)[0][0]
    features = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True, max_features=MOST_FEATURES
    )
    learned = LogisticRegression(C=10, max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one that has not quite converged is a baseline, too
        learned.fit(
            features.fit_transform(normalize("NFC", row.text) for row in data.train),
            [row.label for row in data.train],
        )
    linear = learned.predict(features.transform(normalize("NFC", row.text) for row in data.test))
    return {
        f"all texts {usual}": [usual] * len(data.test),
        "TF-IDF of characters and logistic regression": [str(label) for label in linear],
    }


def scored(truth: Sequence[str], given: Sequence[str]) -> dict[str, float]:
    from sklearn.metrics import accuracy_score, f1_score

    return {
        "accuracy": float(accuracy_score(truth, given)),
        "macro_f1": float(f1_score(truth, given, average="macro", zero_division=0)),
    }
