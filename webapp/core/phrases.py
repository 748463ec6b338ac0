"""Words that Python and the pages' scripts both put around figures: one source, translated once.

`{n}` is a figure, `{unit}` an SI prefix with its unit. The page carries them as JSON.
"""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

PHRASES = {
    "nothing": _("–"),
    "second": _("{n} s"),
    "minute": _("{n} min"),
    "hour": _("{n} h"),
    "day": _("{n} d"),
    "now": _("just now"),
    "ago": _("{span} ago"),
    "per_s": _("{n} /s"),
    "per_min": _("{n} /min"),
    "percent": _("{n} %"),
    "bytes": _("{n} {unit}B"),
    # the live page
    "stale": _("Connection lost: the numbers are from {at}. Trying again by itself."),
    "updated": _("updated {ago}"),
    "waiting": _("waiting for the first numbers"),
    "not_shown": _("{n} points ≤ 0 not shown"),
    "one_not_shown": _("1 point ≤ 0 not shown"),
    "none_positive": _("No value is above 0, so a logarithmic axis has nothing to show."),
    "bad_points": _("{n} values are no numbers and are left out"),
    "no_points": _("The first point arrives after the first round."),
    "no_points_eta": _("The first point arrives after the first round, in about {span}."),
    "train_loss": _("training"),
    "held_out_loss": _("held-out"),
    "round": _("round"),
    "loss": _("loss"),
    "curve": _("Loss from {first} at round {from} to {last} at round {to}."),
    "progress": _("{done} of {target} samples"),
    "progress_eta": _("{done} of {target} samples, about {span} left"),
    "peers_none": _("nobody is here right now"),
    "peers_one": _("training alone"),
    "peers_short": _("too few for a round"),
    "peers_behind": _("{n} only sending"),
    "peers_catching_up": _("{n} catching up"),
    "sender": _("only sends"),
    "peers_all": _("all reachable"),
    "no_change": _("no change yet"),
    "loss_change": _("{change} over the last {n} rounds"),
    "held_out_is": _("held-out {loss}"),
    "per_peer": _("{n} per peer"),
    "of_rounds": _("of {total}"),
    "next_round": _("next: round {n}"),
    "outcome_clean": _("complete"),
    "outcome_alone": _("one peer"),
    "outcome_partial": _("partial: a part failed and was not applied"),
    "outcome_failed": _("failed"),
    "outcome_undone": _("undone: back to earlier parameters"),
    "mark": _("Round {round}: {outcome}, {peers}, {samples} samples"),
    "mark_alone": _("Round {round}: one peer, {samples} samples"),
    "one_peer": _("1 peer"),
    "so_many_peers": _("{n} peers"),
    "chosen_peers": _("{n} of {asked} chosen peers"),
    "strip": _(
        "The last {n} rounds: {clean} complete, {alone} by one peer, {partial} partial, "
        "{failed} failed."
    ),
    "last_round": _("Round {round}: {outcome}. {peers}, {samples} samples, averaged in {span}."),
    "last_round_alone": _("Round {round}: one peer. {samples} samples, averaged in {span}."),
    "no_round": _("No round has finished yet."),
    "checkpoint_last": _("The last one is of round {round}, written {ago}."),
    "checkpoint_late": _(
        "Last checkpoint {ago}, of round {round}: the rounds since then are kept only by the "
        "peers. The coordinator keeps trying."
    ),
    "checkpoint_never": _(
        "No checkpoint yet, and several were due: the rounds are kept only by the peers. "
        "The coordinator keeps trying."
    ),
    "download": _("Download"),
    "adapter": _("Adapter"),
    "nobody": _("Nobody is training right now. Your computer could be the first."),
    "no_events": _("Nothing has happened yet. Joins, leaves and finished rounds appear here."),
    "you": _("you"),
    # the state of a collaboration, and why
    "state_draft": _("Draft"),
    "state_open": _("Open"),
    "state_running": _("Training"),
    "state_alone": _("Training alone"),
    "state_nobody": _("Waiting for volunteers"),
    "state_short": _("Waiting for volunteers"),
    "state_paused": _("Paused"),
    "state_finished": _("Finished"),
    "state_failed": _("Failed"),
    "why_draft": _("only organisers see it"),
    "why_open": _("the first round begins when enough volunteers are here"),
    "why_running": _("everybody's samples go into one model"),
    "why_alone": _("one peer is here; it trains on and others may join at any time"),
    "why_short": _("a round needs the results of {least} devices; those here keep what they have"),
    "why_nobody": _("nobody is lending a computer right now; the model waits unchanged"),
    "why_paused": _("by the organiser; agents wait and go on by themselves"),
    "why_finished": _("training is over; the model and its checkpoints stay"),
    "why_failed": _("the site gave up"),
    # theme, join, me
    "theme_auto": _("Theme: as the system. Switch to light."),
    "theme_light": _("Theme: light. Switch to dark."),
    "theme_dark": _("Theme: dark. Switch to the system's."),
    "copied": _("Copied"),
    "seen": _("We see {device}: {activity}."),
    "launcher_enrolled": _(
        "{device} has started and is enrolled. It is getting ready; the first start downloads "
        "about 450 MB."
    ),
    "launcher_again": _(
        "This computer is enrolled already, as {device}, and goes on under that name."
    ),
    "launcher_elsewhere": _(
        "This computer is enrolled already, by another account, and goes on for that one. To lend "
        "it in your name too, start the launcher with another --home."
    ),
    "launcher_expired": _("The code of this launcher has expired. Make a new launcher."),
    "launcher_gone": _("This launcher was withdrawn. Make a new one."),
    "offline": _("offline"),
    "samples": _("samples"),
    "tokens": _("tokens"),
    # what an agent does
    "starting": _("starting"),
    "catching_up": _("catching up"),
    "training": _("training"),
    "evaluating": _("evaluating"),
    "matchmaking": _("looking for its group"),
    "averaging": _("averaging"),
    "waiting_activity": _("waiting"),
    "paused": _("paused"),
    "leaving": _("leaving"),
}
