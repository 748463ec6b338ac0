"""Our averager: one round in, one verdict out. Written for hivemind 1.1.12.

The class name is part of the names of its remote calls: all peers must run this class.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, AsyncIterator  # noqa: UP035 - hivemind reads this name

import torch
from hivemind.averaging.allreduce import AveragingMode
from hivemind.averaging.averager import DecentralizedAverager
from hivemind.averaging.control import AveragingStage, StepControl
from hivemind.averaging.group_info import GroupInfo
from hivemind.dht import DHT
from hivemind.p2p import P2PContext
from hivemind.proto import averaging_pb2
from hivemind.utils import MPFuture
from hivemind.utils.asyncio import enter_asynchronously

from trainer.recipe import Round
from trainer.swarm import clock, orphans, pace
from trainer.swarm.bandwidth import LinkMeter, share_out
from trainer.swarm.codec import Codec
from trainer.swarm.conclusion import Course, conclude, entries, reducing_speeds, void
from trainer.swarm.door import Door, GuardedCalls
from trainer.swarm.download import StateDownload
from trainer.swarm.farewell import Farewell
from trainer.swarm.judgement import Limits, judge
from trainer.swarm.linger import until_closed
from trainer.swarm.orphans import ProcessEnded
from trainer.swarm.probe import LinkProbe
from trainer.swarm.reduction import CheckedRunner
from trainer.swarm.verdict import Note, Verdict
from trainer.wire import Activity, Outcome

GROUP_BITS = 16
SILENCE_S = 10.0  # a member that sends nothing for so long is lost
SPARE_S = 2.0
Watch = Callable[[Activity], bool]


class RoundAverager(GuardedCalls, StateDownload, LinkProbe, Farewell, DecentralizedAverager):
    """Averages tensors of fixed shapes among peers of the same round; `begin` comes first."""

    def __init__(
        self,
        tensors: Sequence[torch.Tensor],
        dht: DHT,
        *,
        swarm_id: str,
        timing: Round,
        limits: Limits,
        coordinators: frozenset[str],
        client_mode: bool,
        door: Door,
        state_source: Callable[[], tuple[dict[str, int], list[torch.Tensor]]],
    ) -> None:
        pace.install()
        self._serving = multiprocessing.Value("i", 0)
        self._expected: set[str] = set()
        self.timing, self.limits, self.coordinators = timing, limits, coordinators
        self.door = door
        self.install_state(state_source)
        self.install_meter(LinkMeter())
        silence_s = min(SILENCE_S, timing.averaging_s / 3)
        with orphans.children_end_with_us():
            super().__init__(
                [torch.zeros(t.shape) for t in tensors],
                dht,
                prefix=swarm_id,
                start=False,
                min_matchmaking_time=timing.matchmaking_s,
                request_timeout=timing.matchmaking_s * 0.4,
                allreduce_timeout=timing.averaging_s + SPARE_S,
                next_chunk_timeout=silence_s,
                compression=Codec(timing.codec),
                client_mode=client_mode,
            )
            self.start()  # not run_in_background: that makes this process deaf to Ctrl-C

    def begin(self) -> None:
        """Once its process has come up. Raises ProcessEnded when that is watched and has died."""
        self.wait_until_ready(timeout=60)
        others = [name for name in self.coordinators if name != str(self.peer_id)]
        self._ask("_measure_link", names=others)

    def run_round(
        self, offer: Sequence[torch.Tensor], note: Note, others: Collection[str], watch: Watch
    ) -> tuple[Verdict, list[torch.Tensor]]:
        """Offers `offer`, waits for these `others` (or `matchmaking_s` for as many as come) and
        averages. The second result is the mean, to be used only if the verdict applies.

        `watch` is told the activity several times a second; False from it cancels the round.
        """
        began = time.monotonic()
        with self.get_tensors() as mine:
            for target, source in zip(mine, offer, strict=True):
                target.copy_(source)
        bits = format(note.round % 2**GROUP_BITS, f"0{GROUP_BITS}b")
        link = self._ask("_prepare", bits=bits, others=tuple(others))
        control = self.step(
            gather=note.model_copy(update=link).model_dump(mode="json"),
            weight=note.weight,
            scheduled_time=clock.now() + self.timing.matchmaking_s,
            timeout=self.timing.matchmaking_s + SPARE_S,
            allow_retries=False,
            wait=False,
        )
        report = self._await(control, watch)
        duration_s = time.monotonic() - began
        if isinstance(report, str):
            return Verdict(note.round, Outcome.FAILED, {}, reason=report, duration_s=duration_s), []
        with self.get_tensors() as mine:
            mean = [tensor.clone() for tensor in mine]
        return Verdict(note.round, duration_s=duration_s, **report), mean

    def _await(self, control: StepControl, watch: Watch) -> dict[str, Any] | str:
        """The report of `_average`, or why there is none."""
        longest_s = self.timing.matchmaking_s + self.timing.averaging_s + 2 * SPARE_S
        deadline = time.monotonic() + longest_s
        averaging = False
        while True:
            try:
                return control.result(timeout=0.25)
            except FutureTimeout:
                averaging = control.stage is AveragingStage.RUNNING_ALLREDUCE
                go_on = watch(Activity.AVERAGING if averaging else Activity.MATCHMAKING)
                if not go_on or time.monotonic() > deadline:
                    control.cancel()
                    return "left before it was done" if not go_on else "took too long"
            except ProcessEnded:
                raise
            except Exception as error:
                if averaging or "All-Reduce" in str(error):
                    return f"averaging failed: {error}"[:300]
                refusals = self._ask("_list_refusals")
                return "; ".join(["nobody came to average with", *refusals])[:300]

    def drain(self, timeout_s: float) -> None:
        """Waits until nobody of our last group still takes averages from us, or `timeout_s`.

        Also lets the DHT answer what the averaging process has asked it.
        """
        deadline = time.monotonic() + timeout_s
        while self._serving.value > 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)

    def _ask(self, method: str, **arguments: Any) -> Any:
        """Runs one of our methods in the averaging process."""
        future: MPFuture = MPFuture()
        self._outer_pipe.send((method, [], dict(future=future, **arguments)))
        return future.result(timeout=30)

    async def _prepare(self, future: MPFuture, bits: str, others: Collection[str]) -> None:
        """Only peers with the same bits meet: those of the same round. Tells of our link."""
        self._matchmaking.group_key_manager.group_bits = bits
        self._expected = set(others)
        self._matchmaking.target_group_size = len(others) + 1 if others else None
        self.door.refusals.clear()
        link = {"link_mbit_s": self._meter.speed(), "received": self._meter.senders()}
        future.set_result({name: value for name, value in link.items() if value})

    async def _list_refusals(self, future: MPFuture) -> None:
        """Between whom and us there was no passport that counts, since this round's attempt."""
        future.set_result(list(self.door.refusals.values()))

    async def rpc_join_group(
        self, request: averaging_pb2.JoinRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.MessageFromLeader]:
        """Somebody who was not expected takes nobody's place in the group."""
        name, matchmaking = str(context.remote_id), self._matchmaking
        same_round = request.group_key == matchmaking.group_key_manager.current_key
        if same_round and name not in self._expected and matchmaking.target_group_size:
            self._expected.add(name)
            matchmaking.target_group_size += 1
        async for message in until_closed(super().rpc_join_group(request, context)):
            yield message

    async def rpc_aggregate_part(
        self, stream: AsyncIterator[averaging_pb2.AveragingData], context: P2PContext
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        with self._serving.get_lock():
            self._serving.value += 1
        try:
            async for message in until_closed(super().rpc_aggregate_part(stream, context)):
                yield message
        finally:
            with self._serving.get_lock():
                self._serving.value -= 1

    async def _average(
        self, group_info: GroupInfo, min_vector_size: int, **options: Any
    ) -> dict[str, Any]:
        """Runs in the averaging process; returns the fields of a `Verdict`."""
        self.stop_measuring()
        contents = [self.serializer.loads(item) for item in group_info.gathered]
        names = [str(peer) for peer in group_info.peer_ids]
        notes = [self.serializer.loads(content) for _, _, content in contents]
        gathered = dict(zip(names, notes, strict=True))
        own_round = gathered[str(self.peer_id)]["round"]
        judgement = judge(gathered, own_round, self.limits, self.coordinators)
        senders = [mode == AveragingMode.CLIENT.value for _, mode, _ in contents]
        alone = self.coordinators if self.timing.averaged_by == "coordinator" else None
        speeds = reducing_speeds(judgement, senders, names, alone)
        if nothing := void(judgement, speeds, self.limits):
            return nothing
        runner = CheckedRunner(
            entries=entries(judgement, names),
            p2p=self._p2p,
            servicer_type=type(self),
            prefix=self.prefix,
            group_id=group_info.group_id,
            ordered_peer_ids=group_info.peer_ids,
            tensors=self._averaged_tensors,
            peer_fractions=share_out(self.total_size, speeds),
            **options,
        )
        async with enter_asynchronously(self.get_tensors()) as tensors:
            self._running_groups[group_info.group_id].set_result(runner)
            places = iter(tensors)
            async for average in runner:  # to its end: the reducers' reports come last
                next(places).copy_(average)
        runner.traffic.tell(self._meter)
        self.show_speed()
        full = [p for p, sends in zip(group_info.peer_ids, senders, strict=True) if not sends]
        self.measure_soon([peer for peer in full if peer != self.peer_id])
        course = Course(
            reports=list(runner.reports.values()),
            refused=runner.refused,
            failed_reducers={str(peer) for peer in runner.failed_reducers},
            failed_parts=runner.tensor_part_container.failed_size,
            problem=runner.problem,
            bytes_in=runner.traffic.bytes_in,
            bytes_out=runner.traffic.bytes_out,
        )
        return conclude(str(self.peer_id), names, judgement, runner.shares, course, self.limits)
