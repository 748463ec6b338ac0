"""`python -m trainer run | doctor | coordinate | simulate | plan | base | export |
tokenizer | data | evaluate | push`."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import get_args

from trainer import bases
from trainer.agent import exporting, looking, own_texts, pushing
from trainer.agent.placement import wait_for_place
from trainer.agent.seat import Seat, coordinator_seat, log_to, volunteer_seat
from trainer.agent.view import PlainView, RichView, View
from trainer.device import doctor
from trainer.evaluation import command as evaluation
from trainer.launcher import machine, web
from trainer.launcher.place import Unusable, data_folder
from trainer.parts import Precision
from trainer.planner import command as planner
from trainer.simulator.options import add_options
from trainer.text import command as tokenizer

NICE = 10
OWN_SESSION = Path("/proc/self/autogroup")


def main(words: list[str] | None = None) -> int:
    given = _parser().parse_args(words)
    try:
        return int(given.act(given))
    except (Unusable, web.Refusal) as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainer", description=__doc__)
    acts = parser.add_subparsers(required=True)
    run = acts.add_parser("run", help="take part in a collaboration")
    run.add_argument(
        "data",
        nargs="?",
        default="",
        metavar="TEXTS",
        help="file or folder of your own, for a collaboration that trains on such",
    )
    run.add_argument("--site", required=True, help="address of the site")
    run.add_argument(
        "--collaboration",
        default=None,
        help='default: the one this device enrolled for; "": the site gives it one',
    )
    run.add_argument("--home", type=Path, default=None, help="data folder")
    run.add_argument("--plain", action="store_true", help="print lines, for logs")
    run.add_argument("--yes", action="store_true", help="do not ask about doubtful findings")
    machine.add_options(run)
    run.add_argument("--port", type=int, default=0, help="where others may dial this device")
    run.set_defaults(act=_run)
    check = acts.add_parser("doctor", help="look at this machine, and say what to do")
    check.add_argument("--site", default="", help="address of the site")
    check.add_argument("--home", type=Path, default=None, help="data folder")
    check.set_defaults(act=_doctor)
    coordinate = acts.add_parser("coordinate", help="the site's own peer")
    coordinate.add_argument("--config", type=Path, required=True, help="JSON file, mode 0600")
    coordinate.set_defaults(act=_coordinate)
    rehearse = acts.add_parser("simulate", help="rehearse a run with made-up peers")
    add_options(rehearse)
    rehearse.set_defaults(act=_simulate)
    plan = acts.add_parser("plan", help="what training asks of a machine; does it fit?")
    planner.add_options(plan)
    base = acts.add_parser("base", help="describe a trained model, for recipes that begin with it")
    base.add_argument("folder", type=Path, help="with config.json and safetensors")
    place = base.add_mutually_exclusive_group()
    place.add_argument(
        "--at", default="", help="where devices find it: https://…, or ORG/NAME@REVISION of the hub"
    )
    place.add_argument("--site", action="store_true", help="its files are the site's")
    base.add_argument(
        "--precision", choices=get_args(Precision), default="fp32", help="where it is frozen"
    )
    base.set_defaults(act=_base)
    export = acts.add_parser("export", help="a checkpoint as a model folder that others load")
    exporting.add_options(export)
    pushing.add_options(acts.add_parser("push", help="a model folder into a repository of a hub"))
    tokenizer.add_options(acts.add_parser("tokenizer", help="make a tokenizer from texts"))
    looking.add_options(acts.add_parser("data", help="look at the batches a recipe makes"))
    evaluation.add_options(acts.add_parser("evaluate", help="what a model is worth"))
    return parser


def _home(given: argparse.Namespace) -> Path:
    return given.home.expanduser().absolute() if given.home else data_folder()


def _doctor(given: argparse.Namespace) -> int:
    found = [*doctor.examine(_home(given), given.site.rstrip("/")), doctor.check_precision()]
    print(*found, sep="\n")
    return int(any(finding.state is doctor.State.BAD for finding in found))


def _run(given: argparse.Namespace) -> int:
    if not machine.is_started_by_torchrun():
        return _agent(given)
    from trainer.engine import torchrun

    _give_way()

    def agent(size: int) -> int:
        given.processes = given.processes._replace(number=size)
        return _agent(given)

    return torchrun.take_part(agent)


def _agent(given: argparse.Namespace) -> int:
    site = given.site.rstrip("/")
    found = doctor.examine(_home(given), site)
    notable = [finding for finding in found if finding.state is not doctor.State.GOOD]
    print(*notable, sep="\n", end="\n" if notable else "", flush=True)
    if any(finding.state is doctor.State.BAD for finding in notable):
        return 1
    asks = bool(notable) and not given.yes and sys.stdin.isatty()
    if asks and input("Go on? [Y/n] ").strip().lower() in ("n", "no"):
        return 0
    seat = volunteer_seat(
        _home(given),
        site,
        given.collaboration,
        place=wait_for_place,
        threads=given.threads,
        port=given.port,
    )
    seat = replace(seat, num_processes=given.processes.number, split=given.processes.split)
    log_to(seat.log_file)
    agreed = own_texts.agree(seat, given.data, asks=not given.yes and sys.stdin.isatty())
    if agreed is None:
        print("Nothing was sent; start it again at any time.")
        return 0
    seat = agreed
    title = f"Potluck: {seat.slug} at {site}"
    plain = given.plain or not sys.stdout.isatty()
    view: View = (PlainView if plain else RichView)(title, seat.log_file)
    return _session(seat, view, modest=True)


def _coordinate(given: argparse.Namespace) -> int:
    seat = coordinator_seat(given.config)
    label = f"[{seat.slug}] "
    log_to(None, label)
    doctor.check_open_files()
    return _session(seat, PlainView("Coordinator", None, label=label), modest=False)


def _simulate(given: argparse.Namespace) -> int:
    from trainer.simulator.command import simulate

    return simulate(given)


def _base(given: argparse.Namespace) -> int:
    here: bases.Kind = "site" if given.site else "local"
    kind = bases.kind_of(given.at) if given.at else here
    try:
        found = bases.describe(given.folder, kind, given.at, given.precision)
    except OSError as error:
        raise Unusable(f"{given.folder} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise Unusable(f"This is no base: {error}.") from error
    print(found.written())
    return 0


def _session(seat: Seat, view: View, *, modest: bool) -> int:
    os.environ.setdefault("OMP_NUM_THREADS", str(seat.num_threads))
    from trainer.agent.main import START_AGAIN, Session

    if modest:
        _give_way()
    view.open()
    try:
        code = Session(seat, view).run()
    finally:
        view.close()
    if code == START_AGAIN:
        _start_again(["--yes"] if modest else [])
    return code


def _give_way() -> None:
    """Other programs of this machine go first.

    Linux can share its cores out between terminals' sessions before niceness counts; then a
    session that is the agent's own needs it, too. Somebody's terminal is left as it is.
    """
    with suppress(OSError):
        os.nice(max(0, NICE - os.nice(0)))
    if os.getsid(0) == os.getpid() and OWN_SESSION.exists():
        with suppress(OSError):
            OWN_SESSION.write_text(str(NICE))


def _start_again(words: list[str]) -> None:
    """This process becomes a new agent, so that all its memory goes back to the system.

    It takes no open file along: torch keeps shared memory as long as a socket of its is open.
    """
    old = sys.orig_argv[1:]
    words = [*old, *(word for word in words if word not in old)]
    for path in Path("/dev/fd").iterdir():
        if int(path.name) > sys.stderr.fileno():
            with suppress(OSError):  # the one that listed them
                os.set_inheritable(int(path.name), False)
    os.execv(sys.executable, [sys.executable, *words])  # noqa: S606
