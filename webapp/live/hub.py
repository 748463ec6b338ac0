"""Everything live in this web process: boards, viewers, agents; one frame a second to all.

What a browser gets on `/ws/c/<slug>/`
--------------------------------------
The first message is a snapshot, the same document as `GET /api/v1/collaborations/<slug>`:

    {"kind": "snapshot", "seq": 812, "at": 1764439408.2,      # site time, seconds
     "slug": "demo", "title": "Demo", "state": "running", "state_reason": "",
     "round": 57,                 # the one being trained now
     "loss": 3.41,                # of that round so far, mean per target token; null: none yet
     "samples": 400, "target": 512, "samples_per_s": 88.2,
     "peers": 3,                  # training peers in step (within one round), senders included
     "senders": 1, "behind": 1, "online": 4, "coordinators": 1, "expired": 0,
     "members": [{"id": "9f2c01ab", "name": "ada", "role": "peer", "activity": "training",
                  "reason": "", "round": 57, "in_round": true, "samples": 120,
                  "samples_per_s": 30.1, "loss": 3.4}],       # the 100 fastest of `online`
     "last_round": {"round": 56, "outcome": "clean", "members": 3, "samples": 520,
                    "tokens": 65000, "loss": 3.45, "held_out_loss": null, "duration_s": 6.1,
                    "num_lost": 0, "reason": "", "at": 1764439402.0},          # or null
     "effort": {"participants": 4, "sessions": 9, "compute_s": 4210.0, "mean_session_s": 600.1,
                "longest_session_s": 3000.0, "samples": 30000, "rounds": 56}}

Then one frame a second: `{"kind": "frame", "seq": 813, "at": …}` and those of the keys above that
changed (replace them whole), plus, only where there is news,

     "new_rounds": [<like last_round>],     # put into the curve by `round`; one may come twice
     "new_events": [{"id": 71, "at": …, "what": "joined", "who": "ada", "text": "…"}]  # oldest first

`seq` grows by one per frame. A viewer that reads too slowly skips frames and is sent a snapshot
instead. A frame whose `seq` is not the last one plus one: fetch the snapshot and the history.
No frame for 5 s: what is shown is stale. Close codes: 4404 no such collaboration, 4403 wrong
origin, 1012 the site restarts; come back after a random delay that grows.

What a browser gets on `/ws/me/`
--------------------------------
On every change, and at least every 10 s, the whole private state:

    {"kind": "me", "seq": 5, "at": …, "devices": [{"device": "<uuid>", "collaboration": "demo",
     "activity": "training", "reason": "", "round": 57, "samples": 120, "samples_per_s": 30.1}]}

A device that is not in the list is offline. Close code 4401: not logged in (any more).
"""
