"""One peer's part in one collaboration, from its first look at the swarm to its leave."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Callable
from functools import partial

import torch

from trainer.data.survey import survey
from trainer.engine import checkpoint, texts
from trainer.engine.coordinator import CoordinatorLoop, resume
from trainer.engine.discretion import told
from trainer.engine.group_learner import GroupLearner
from trainer.engine.job import Job, Outbox, Wishes
from trainer.engine.learner import Learner
from trainer.engine.loop import RoundLoop
from trainer.engine.own_check import OwnCheck
from trainer.engine.personal import MAKING, make_personal
from trainer.engine.reading import Reading, reading_of
from trainer.engine.sizing import make_sizer, must_stream
from trainer.engine.status import Status
from trainer.swarm import clock, leftovers
from trainer.swarm.orphans import ProcessEnded
from trainer.swarm.peer import SwarmPeer, Unreachable
from trainer.text.tokenizer import Tokenizer
from trainer.wire import Activity, LeaveCause, Role, Wish

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
HELD_OUT_SAMPLES = 64
log = logging.getLogger(__name__)


def take_part(job: Job, outbox: Outbox, wishes: Wishes) -> LeaveCause:
    """Trains, or coordinates, until `wishes` says otherwise; returns why it left.

    Call it from the main thread of a process: hivemind's processes are forked from it, and die
    with it. It has ended all of them when it returns. `outbox.progress` is called from a thread of
    its own, `outbox.report` from the caller's.
    """
    multiprocessing.set_start_method("fork", force=True)
    torch.set_num_threads(job.num_threads)
    leftovers.reap()
    leftovers.sweep()
    clock.follow_site(job.clock_offset_s)
    job.folder.mkdir(parents=True, exist_ok=True)
    status = Status(outbox)
    status.start()
    try:
        return _take_part(job, outbox, wishes, status)
    except ProcessEnded as ended:
        log.warning("The engine stopped: %s", ended)
        status.set(Activity.LEAVING, str(ended))
        raise
    except Exception as error:
        log.exception("The engine stopped")
        status.set(Activity.LEAVING, f"the engine stopped: {told(error, job.recipe)}")
        return LeaveCause.FAILED
    finally:
        status.stop()


def _is_wanted(wishes: Wishes) -> bool:
    return wishes.current().wish not in (Wish.STOP, Wish.FINISH)


def _take_part(job: Job, outbox: Outbox, wishes: Wishes, status: Status) -> LeaveCause:
    if not _is_wanted(wishes):  # it was stopped while the libraries of the engine were loaded
        return wishes.current().cause or LeaveCause.STOPPED
    tokenizer = Tokenizer.of(job.recipe, job.tokenizer)
    with reading_of(job, tokenizer) as reading:
        return _with_model(job, outbox, wishes, status, tokenizer, reading)


def _with_model(
    job: Job,
    outbox: Outbox,
    wishes: Wishes,
    status: Status,
    tokenizer: Tokenizer,
    reading: Reading | None,
) -> LeaveCause:
    if job.num_processes > 1:
        learner: Learner = GroupLearner(
            job.recipe, tokenizer.pad, job.num_processes, job.folder, job.split, job.base
        )
    else:
        streams = must_stream(job.recipe)
        learner = Learner(job.recipe, tokenizer.pad, job.base, streams=streams)
    peer: SwarmPeer | None = None
    try:
        if job.role is Role.COORDINATOR:
            resume(learner, job.checkpoint_folder or job.folder)
        elif job.checkpoint is not None:
            _load(learner, job)
        peer = _connect(job, wishes, status)
        if peer is None:
            return wishes.current().cause or LeaveCause.STOPPED
        loop = _make_loop(job, learner, peer, status, outbox, wishes, tokenizer, reading)
        cause = loop.run()
        status.set(Activity.LEAVING, "saying goodbye to the swarm")
        peer.close()
        peer = None
        if cause is LeaveCause.FINISHED:
            _keep_personal(job, loop, tokenizer, wishes, status)
        return cause
    finally:
        if peer is not None:
            peer.close()
        learner.close()


def _load(learner: Learner, job: Job) -> None:
    """The site's newest checkpoint. Without it a newcomer takes all from the other peers."""
    assert job.checkpoint is not None
    try:
        learner.load(job.checkpoint)
    except checkpoint.BadCheckpoint as error:
        log.warning("%s; starting without it", error)


def swarm_peer(job: Job, is_wanted: Callable[[], bool] = lambda: True) -> SwarmPeer:
    """The place of this job in its swarm. Raises Unreachable when nobody answers."""
    return SwarmPeer(
        job.recipe,
        job.folder,
        passport=job.passport,
        authority=job.authority,
        bootstrap=job.bootstrap,
        client_mode=job.role is Role.SENDER,
        listen_address=job.listen_address,
        announce_host=job.announce_host,
        is_coordinator=job.role is Role.COORDINATOR,
        revocations=job.revocations,
        is_wanted=is_wanted,
    )


def _connect(job: Job, wishes: Wishes, status: Status) -> SwarmPeer | None:
    """None when it is no longer wanted before anybody answered."""
    is_wanted = partial(_is_wanted, wishes)
    pause_s = FIRST_PAUSE_S
    while is_wanted():
        status.set(Activity.STARTING, "joining the swarm")
        try:
            return swarm_peer(job, is_wanted)
        except Unreachable as error:
            log.info("%s: %s", error, error.__cause__)
            status.set(Activity.WAITING, f"{error}; trying again")
        clock.sleep_while(is_wanted, pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
    return None


def _own_check(job: Job, learner: Learner, tokenizer: Tokenizer) -> OwnCheck | None:
    """None where the volunteer has no text of their own, or too little; a group has none, either,
    because its processes hold the model together."""
    path, objective = job.own_text(), learner.family.objective
    if path is None or job.tell_own is None or job.num_processes > 1:
        return None
    found = texts.own_batches(job.recipe, path, tokenizer, objective, HELD_OUT_SAMPLES)
    return OwnCheck(learner, found, job.tell_own, is_shared=job.shares_own) if found else None


def _own_samples(job: Job, learner: Learner, tokenizer: Tokenizer) -> int:
    """Those that a pass over the volunteer's own texts has; 0 where rounds do not go by passes."""
    path = job.own_text()
    if path is None or not learner.strategy.most_passes:
        return 0
    objective = learner.family.objective
    return survey(path, tokenizer, objective, job.recipe.sequence_length).samples


def _keep_personal(
    job: Job, loop: RoundLoop, tokenizer: Tokenizer, wishes: Wishes, status: Status
) -> None:
    """The collaboration is over: what fails here costs the volunteer's own model and nothing else.

    For that they have to have texts, some of them held out.
    """
    path, check = job.own_text(), loop.own_check
    if path is None or check is None or job.tell_own is None:
        return
    status.set(Activity.LEAVING, MAKING)
    recipe, rows = job.recipe, job.recipe.micro_batch or texts.ROWS
    objective, learner = loop.learner.family.objective, loop.learner
    try:
        batches = texts.own_training_batches(
            recipe, path, tokenizer, objective, str(recipe.seed), rows
        )
        made = make_personal(
            learner, batches, check.batches, job.folder, lambda: wishes.current().wish != Wish.STOP
        )
    except Exception:
        log.exception("No model of one's own was made")
        return
    if made is not None:
        job.tell_own(made)


def _make_loop(
    job: Job,
    learner: Learner,
    peer: SwarmPeer,
    status: Status,
    outbox: Outbox,
    wishes: Wishes,
    tokenizer: Tokenizer,
    reading: Reading | None,
) -> RoundLoop:
    objective = learner.family.objective
    sizer = make_sizer(learner, job.folder)
    if job.shards is not None:
        job.shards.heed(peer.heard_at)
    common = {
        "recipe": job.recipe,
        "role": job.role,
        "learner": learner,
        "peer": peer,
        "status": status,
        "outbox": outbox,
        "wishes": wishes,
        "sizer": sizer,
    }
    if reading is not None:
        own_check = _own_check(job, learner, tokenizer)
        own_samples = _own_samples(job, learner, tokenizer)
        return RoundLoop(
            batches=lambda: reading.batches(peer.peer_id, lambda: sizer.batch),
            delivery=reading.delivery,
            own_check=own_check,
            own_samples=own_samples,
            **common,  # type: ignore[arg-type]
        )
    held_out = (
        texts.held_out_batches(job.recipe, job.held_out, tokenizer, objective, HELD_OUT_SAMPLES)
        if job.held_out
        else []
    )
    folder = job.checkpoint_folder or job.folder
    return CoordinatorLoop(
        folder=folder,
        held_out=held_out,
        heard_at=job.heard_at,
        batches=lambda: iter(()),
        **common,  # type: ignore[arg-type]
    )
