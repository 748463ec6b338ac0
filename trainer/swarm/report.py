"""What a reducer tells each member after its last average: whose parts it did not get or take.

Every member hears every reducer, so all who finish a round know the same. The report of one
reducer is made once, when its last part is done, and is the same for everybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from hivemind.proto import averaging_pb2, runtime_pb2
from pydantic import Field

from trainer.swarm.codec import Fault
from trainer.wire import Count, Message

FORM = "report"  # where a part names its codec


class Failure(Message):
    """`parts` of that sender entered averages before; without a `fault` it went silent."""

    parts: Count
    fault: Fault | None = None


class ReducerReport(Message):
    """`failed` by the sender's place in the group; `yours` is why the receiver was refused."""

    failed: dict[Annotated[int, Field(ge=0)], Failure] = Field({}, max_length=1024)
    yours: Fault | None = None


def as_message(report: ReducerReport) -> averaging_pb2.AveragingData:
    content = runtime_pb2.Tensor(buffer=report.model_dump_json().encode(), dtype=FORM)
    return averaging_pb2.AveragingData(code=averaging_pb2.AVERAGED_PART, tensor_part=content)


def read_report(message: averaging_pb2.AveragingData) -> ReducerReport | None:
    """None when it is a part. Raises ValueError when it is a malformed report."""
    if message.tensor_part.dtype != FORM:
        return None
    return ReducerReport.model_validate_json(message.tensor_part.buffer)


def sum_up(
    reports: Sequence[ReducerReport], names: Sequence[str], weights: Mapping[str, float]
) -> tuple[set[str], dict[str, str], bool]:
    """Who went silent, who was refused and why, and whether a refused offer moved any average.

    `names` in the group's order; an offer of weight 0 moves nothing.
    """
    silent: set[str] = set()
    refused: dict[str, str] = {}
    for report in reports:
        for place, failure in sorted(report.failed.items()):
            if place < len(names) and failure.fault:
                refused.setdefault(names[place], failure.fault.value)
            elif place < len(names):
                silent.add(names[place])
    untouched = {
        name
        for name in refused
        if all(_parts_taken(report, names.index(name)) == 0 for report in reports)
    }
    moved = any(weights.get(name, 0.0) > 0 for name in refused.keys() - untouched)
    return silent - refused.keys(), refused, moved


def _parts_taken(report: ReducerReport, place: int) -> int:
    """1 where the reducer had nothing against it: then it took all."""
    return report.failed[place].parts if place in report.failed else 1
