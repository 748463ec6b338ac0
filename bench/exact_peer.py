"""A peer that takes exactly H micro-batches a round: `python -m bench.exact_peer FOLDER H OTHER`.

Prints {"samples", "bytes_in", "bytes_out"} of its own for each of ROUNDS averages with the peer of
the id OTHER.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from pathlib import Path

from bench.plain_loop import learning
from trainer.engine.ending import members_of
from trainer.engine.job import Job
from trainer.engine.learner import Learner
from trainer.engine.peer import swarm_peer
from trainer.strategies.base import norm_of
from trainer.swarm.peer import SwarmPeer, Unreachable
from trainer.swarm.verdict import Note, Verdict
from trainer.wire import Outcome, Role

ROUNDS = 2
ATTEMPTS = 60


def connect(job: Job) -> SwarmPeer:
    for _ in range(ATTEMPTS):
        try:
            return swarm_peer(job)
        except Unreachable:  # the other one is still starting
            time.sleep(1)
    raise TimeoutError("the other peer does not answer")


def average(peer: SwarmPeer, learner: Learner, other: str) -> Verdict:
    """Until the peer `other` has come; applies the mean."""
    offer, context = learner.offer(), learner.context
    assert offer is not None and peer.averager is not None
    note = Note(
        round=learner.round,
        role=Role.PEER,
        samples=context.samples,
        tokens=context.tokens,
        loss_sum=0.0,
        weight=offer.weight,
        norm=norm_of(offer.tensors),
        fingerprint=learner.fingerprint(),
    )
    for _ in range(ATTEMPTS):
        verdict, mean = peer.averager.run_round(offer.tensors, note, {other}, lambda activity: True)
        if verdict.outcome is Outcome.CLEAN and len(verdict.notes) == 2:
            learner.accept(mean, members_of(verdict, peer.peer_id))
            return verdict
    raise TimeoutError(f"no average: {verdict.reason}")


def play(folder: Path, num_batches: int, other: str) -> None:
    multiprocessing.set_start_method("fork", force=True)
    job, learner, batches = learning(folder)
    peer = connect(job)
    try:
        peer.average(learner.offer_shapes(), learner.state)
        for _ in range(ROUNDS):
            for _ in range(num_batches):
                learner.learn(next(batches))
            samples = learner.context.samples
            verdict = average(peer, learner, other)
            figures = {"bytes_in": verdict.bytes_in, "bytes_out": verdict.bytes_out}
            print(json.dumps({"samples": samples, **figures}), flush=True)
    finally:
        peer.close()


if __name__ == "__main__":
    play(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
