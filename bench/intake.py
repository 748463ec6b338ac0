"""Reports stored per CPU-second of a web process, by websocket into SQLite: none lost or doubled.

Twenty agents send receipts of the same rounds; one in ten is sent twice, and neighbours swap
places. Compared with a consumer that writes each report by itself.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any
from uuid import uuid4

from bench.stage import Web, site, web_process

NUM_AGENTS = 20
NUM_REPORTS = 1000
NUM_NAIVE_REPORTS = 100
GOAL = 2000.0


def messages(count: int, rng: random.Random) -> list[str]:
    """Numbered receipts as text, with repeats and swaps."""
    from trainer.wire import Receipt, Report, VerdictSummary

    texts = []
    for seq in range(1, count + 1):
        verdict = VerdictSummary(
            round=seq, outcome="clean", members=NUM_AGENTS, samples=640, tokens=64_000, loss=4.5
        )
        body = Receipt(
            round=seq, samples=32, tokens=3200, accepted=True, compute_s=3.0, verdict=verdict
        )
        texts.append(Report(seq=seq, at=time.time(), body=body).model_dump_json())
    for place in range(0, count - 1, 10):
        texts[place], texts[place + 1] = texts[place + 1], texts[place]
    return [text for text in texts for _ in range(1 + (rng.random() < 0.1))]


async def deliver(socket: Any, texts: list[str], last_seq: int) -> None:
    """Sends all and reads until the last number is acknowledged."""
    from trainer.wire import Ack, read_from_site

    async def send() -> None:
        for text in texts:
            await socket.send(text)

    sending = asyncio.create_task(send())
    while True:
        message = read_from_site(await socket.recv())
        if isinstance(message, Ack) and message.seq == last_seq:
            break
    await sending


async def reports_per_cpu_s(web: Web, sockets: list[Any], count: int) -> float:
    rng = random.Random(0)
    texts = [messages(count, rng) for _ in sockets]
    cpu_s = web.cpu_s()
    await asyncio.gather(
        *(deliver(socket, each, count) for socket, each in zip(sockets, texts, strict=True))
    )
    return count * len(sockets) / (web.cpu_s() - cpu_s)


async def measure_site(tokens: list[str]) -> float:
    from websockets.asyncio.client import connect

    from trainer.wire import WIRE_VERSION, Hello

    with web_process() as web:
        sockets = []
        for token in tokens:
            socket = await connect(
                f"ws://127.0.0.1:{web.port}/ws/device/",
                additional_headers={"Authorization": f"Bearer {token}"},
            )
            hello = Hello(
                version=WIRE_VERSION,
                agent_version="bench",
                session=uuid4().hex,
                collaboration="bench",
            )
            await socket.send(hello.model_dump_json())
            await socket.recv()
            sockets.append(socket)
        return await reports_per_cpu_s(web, sockets, NUM_REPORTS)


async def measure_naive(sessions: list[Any]) -> float:
    from websockets.asyncio.client import connect

    with web_process("bench.naive:application") as web:
        sockets = [
            await connect(f"ws://127.0.0.1:{web.port}/agent/{session}/") for session in sessions
        ]
        return await reports_per_cpu_s(web, sockets, NUM_NAIVE_REPORTS)


def main() -> dict[str, Any]:
    with site():
        from django.db.models import Sum

        from tests.factories import make_collaboration, make_device, make_session, make_user
        from webapp.credit.models import HourlyCredit, Receipt

        collaboration = make_collaboration("bench", state="running")
        tokens = [make_device(make_user())[1] for _ in range(NUM_AGENTS)]
        ours = asyncio.run(measure_site(tokens))
        sent = NUM_AGENTS * NUM_REPORTS
        stored = Receipt.objects.count()
        credited = HourlyCredit.objects.aggregate(sum=Sum("rounds", default=0))["sum"]
        devices = [make_device(make_user())[0] for _ in range(NUM_AGENTS)]
        sessions = [make_session(device, collaboration).pk for device in devices]
        naive = asyncio.run(measure_naive(sessions))
    return {
        "value": round(ours),
        "unit": "reports per CPU-second",
        "goal": f">= {GOAL:.0f}, none lost, none doubled",
        "met": ours >= GOAL and stored == credited == sent,
        "compared_with": {
            "one_insert_per_report": round(naive),
            "sent": sent,
            "stored": stored,
            "credited": credited,
        },
    }
