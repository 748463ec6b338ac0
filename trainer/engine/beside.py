"""A process that reads texts and makes batches of them, a few ahead, while this one trains.

It is forked before there is a model, and so shares with this process the libraries that it needs.
What it makes is what would be made here, in the same order. It asks nobody but this process, over
pipes that are theirs alone: which part of a text is to be read.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import pickle
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import torch

from trainer.data.marks import Held, Mark
from trainer.data.shards import Leases, Shards
from trainer.families.base import Batch
from trainer.grant import Lease
from trainer.sources.base import SourceUnavailable
from trainer.swarm import orphans
from trainer.swarm.orphans import ProcessEnded

AHEAD = 4  # batches, made or in the making
END_S = 5.0
NAME = "the process that reads its texts"
Made = Iterator[tuple[Batch, Mark]]
Make = Callable[[str, Callable[[], int], Leases | None], Made]
log = logging.getLogger(__name__)


class Wanted(NamedTuple):
    """A batch of a stream: the stream's number and seed, and the batch's sequences."""

    stream: int
    seed: str
    size: int


class Beside:
    """`make` gives the batches of a seed; it runs in the other process, with leases of `shards`."""

    def __init__(self, make: Make, shards: Shards | None, num_threads: int = 1) -> None:
        self._shards, self._stream = shards, 0
        self._ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._wishes, wishes = _pipe()
        self._answers, answers = _pipe()
        with orphans.children_end_with_us():
            self._process = multiprocessing.get_context("fork").Process(
                target=_serve,
                args=(make, wishes, answers if shards is not None else None, num_threads),
                daemon=True,
            )
            self._process.start()
        for end in (wishes, answers):
            end.close()
        self._thread = threading.Thread(target=self._receive, name="texts", daemon=True)
        self._thread.start()

    def batches(self, seed: str, size: Callable[[], int]) -> Made:
        """From the beginning of a stream; `size` is asked for each batch, so many ahead.

        Raises what making them raises, and ProcessEnded.
        """
        self._stream += 1
        stream = self._stream
        for _ in range(AHEAD):
            self._want(Wanted(stream, seed, size()))
        while True:
            found = self._ready.get()
            if isinstance(found, ProcessEnded):
                self._ready.put(found)
                raise found
            number, made = found
            if number != stream:
                continue
            if isinstance(made, StopIteration):
                return
            if isinstance(made, Exception):
                raise made
            self._want(Wanted(stream, seed, size()))
            parts, mark = made
            yield Batch(**{name: torch.from_numpy(part) for name, part in parts.items()}), mark

    def _want(self, wanted: Wanted) -> None:
        with suppress(OSError):  # it has ended, as `_receive` will tell
            self._wishes.send(wanted)

    def close(self) -> None:
        """It asks for nothing any more."""
        self._process.kill()
        self._thread.join(END_S)

    def _receive(self) -> None:
        """On a thread of its own, so that it never waits for this process."""
        try:
            while True:
                for one in wait([self._wishes, self._answers]):
                    if one is self._wishes:
                        self._ready.put(self._wishes.recv())
                    else:
                        self._answers.send(self._answer(*self._answers.recv()))
        except (OSError, EOFError):
            self._process.join(END_S)
            words = orphans.how_it_ended(NAME, self._process.exitcode)
            self._ready.put(ProcessEnded(words))

    def _answer(self, question: str, *given: Any) -> Any:
        try:
            return getattr(self._shards, question)(*given)
        except Exception as error:
            return error


def _pipe() -> tuple[Connection, Connection]:
    return multiprocessing.Pipe()  # type: ignore[return-value]


class _Leases:
    """The other process's: it asks when a shard begins and when it ends, and not in between."""

    def __init__(self, answers: Connection) -> None:
        self._answers = answers
        self._held: dict[int, Held] = {}

    def rewind(self) -> None:
        self._ask("rewind")

    def begin(self, text: int) -> Held:
        self._held[text] = held = self._ask("begin", text)
        return held

    def held(self, text: int) -> Held:
        return self._held[text]

    def finish(self, text: int, lease: Lease) -> None:
        self._ask("finish", text, lease)

    def _ask(self, *question: Any) -> Any:
        self._answers.send(question)
        answer = self._answers.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


def _serve(make: Make, wishes: Connection, answers: Connection | None, num_threads: int) -> None:
    """The other process, until it is killed."""
    gc.freeze()  # what is shared stays so: nothing of it is looked at again
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if num_threads > 1 else "false"
    os.environ["RAYON_NUM_THREADS"] = str(num_threads)
    leases = _Leases(answers) if answers is not None else None
    stream, size = 0, 0
    made: Made = iter(())
    while True:
        wanted = wishes.recv()
        size = wanted.size
        if wanted.stream != stream:
            stream, made = wanted.stream, make(wanted.seed, lambda: size, leases)  # noqa: B023
        wishes.send((stream, _next(made)))


def _next(made: Made) -> Any:
    """The next batch, in what can be sent; or the error, which the log has all of."""
    try:
        batch, mark = next(made)
    except StopIteration as end:
        return end
    except SourceUnavailable as error:
        return error
    except Exception as error:
        log.warning("No batch was made: %s", error, exc_info=True)
        try:
            return pickle.loads(pickle.dumps(error))  # noqa: S301 - what the other side will do
        except Exception:
            return RuntimeError(f"{type(error).__name__}: {error}")
    return {name: part.numpy() for name, part in vars(batch).items() if part is not None}, mark
