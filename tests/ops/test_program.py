"""A supervised program: restarts, back-off, whole groups, and what a killed one leaves."""

from __future__ import annotations

import asyncio
import sys

import psutil
import pytest

from webapp.ops.program import Program

DEADLINE_S = 20.0
SLEEPS = "import time; time.sleep(600)"
WITH_CHILD = (
    "import subprocess, sys, time; "
    f"child = subprocess.Popen([sys.executable, '-c', {SLEEPS!r}]); "
    "print('child', child.pid, flush=True); time.sleep(600)"
)
DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('deaf', flush=True); time.sleep(600)"
)


def make(tmp_path, code, **options):
    return Program("thing", [sys.executable, "-c", code], log=tmp_path / "thing.log", **options)


async def until(condition, what):
    async with asyncio.timeout(DEADLINE_S):
        while not (found := condition()):
            await asyncio.sleep(0.02)
    return found


def lines(tmp_path):
    path = tmp_path / "thing.log"
    return path.read_text().splitlines() if path.exists() else []


def child_pid(tmp_path):
    found = [line.split()[-1] for line in lines(tmp_path) if "child" in line]
    return int(found[-1]) if found else 0


@pytest.mark.parametrize("is_site", [True, False])
async def test_the_sites_keys_are_the_sites_alone(tmp_path, monkeypatch, is_site):
    monkeypatch.setenv("HUB_TOKEN", "canary")
    monkeypatch.setenv("SECRET_KEY", "canary")
    code = "import os; print('child', list(os.environ.values()).count('canary'))"
    program = make(tmp_path, code, is_site=is_site, again=lambda code: False)
    await program.keep_running(asyncio.Event())
    assert child_pid(tmp_path) == 2 * is_site


async def test_a_program_that_ends_is_started_again_after_a_growing_delay(tmp_path):
    program = make(tmp_path, "print('hello')")
    stopping = asyncio.Event()
    keeping = asyncio.create_task(program.keep_running(stopping))
    await until(lambda: program.restarts >= 2, "two restarts")
    stopping.set()
    await keeping
    delays = [line.split("again in ")[1] for line in lines(tmp_path) if "again in" in line]
    assert delays[:2] == ["0.5 s", "1.0 s"]
    assert any(line.endswith("hello") for line in lines(tmp_path))


async def test_a_program_whose_end_is_final_is_not_started_again(tmp_path):
    program = make(tmp_path, "pass", again=lambda code: code != 0)
    await asyncio.wait_for(program.keep_running(asyncio.Event()), DEADLINE_S)
    assert program.restarts == 0


async def test_stopping_a_program_ends_what_it_started(tmp_path):
    program = make(tmp_path, WITH_CHILD)
    stopping = asyncio.Event()
    keeping = asyncio.create_task(program.keep_running(stopping))
    child = psutil.Process(await until(lambda: child_pid(tmp_path), "child"))
    stopping.set()
    await program.stop()
    await keeping
    await until(lambda: not alive(child), "end of the child")


async def test_a_program_that_ignores_sigterm_is_killed(tmp_path):
    program = make(tmp_path, DEAF, stop_s=0.5)
    stopping = asyncio.Event()
    keeping = asyncio.create_task(program.keep_running(stopping))
    await until(lambda: any("deaf" in line for line in lines(tmp_path)), "its first line")
    stopping.set()
    await program.stop()
    await asyncio.wait_for(keeping, DEADLINE_S)
    assert any("killed" in line for line in lines(tmp_path))


async def test_a_killed_program_is_replaced_although_another_process_holds_its_output(tmp_path):
    detached = WITH_CHILD.replace("])", "], start_new_session=True)", 1)
    program = make(tmp_path, detached)
    stopping = asyncio.Event()
    keeping = asyncio.create_task(program.keep_running(stopping))
    first = await until(lambda: child_pid(tmp_path), "child")
    psutil.Process(first).parent().kill()
    second = await until(lambda: child_pid(tmp_path) not in (0, first) and child_pid(tmp_path), "")
    stopping.set()
    await program.stop()
    for pid in (first, second):
        psutil.Process(pid).kill()
    await asyncio.wait_for(keeping, DEADLINE_S)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells children of their parent's death")
async def test_a_supervisor_killed_with_minus_9_leaves_no_program(tmp_path):
    supervisor = (
        "import asyncio, sys; from pathlib import Path; from webapp.ops.program import Program; "
        f"command = [sys.executable, '-c', {('print(1, flush=True);' + SLEEPS)!r}]; "
        f"program = Program('thing', command, log=Path({str(tmp_path / 'thing.log')!r})); "
        "asyncio.run(program.keep_running(asyncio.Event()))"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", supervisor)
    await until(lambda: lines(tmp_path), "its first line")
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.kill()
    await process.wait()
    await until(lambda: not any(map(alive, children)), "end of the children")


def alive(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
