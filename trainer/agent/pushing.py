"""`python -m trainer push`: a model folder into a repository of a hub.

The token is read from HF_TOKEN, and is in nothing that is written or said.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path

from trainer.launcher.place import Unusable

MOST_SAID = 200
MEANINGS = {
    401: "the hub does not know the token, or it has expired: set HUB_TOKEN to a valid one",
    403: "the token may not write there: choose a repository of its owner, or a token that may",
    404: "the hub has no such owner or repository, or it is not an address of a hub",
    409: "somebody else changed the repository meanwhile: push it again",
    413: "the hub takes no file of that size",
    429: "the hub was asked too often: push it again later",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="with the model, as export writes it")
    parser.add_argument("repository", help="OWNER/NAME")
    parser.add_argument("--hub", default="https://huggingface.co", help="its address")
    parser.add_argument("--private", action="store_true", help="where the repository is made anew")
    parser.add_argument("--message", default="Model", help="of the commit")
    parser.add_argument(
        "--report", type=Path, default=None, help="JSON file with what came of it, in words"
    )
    parser.set_defaults(act=push)


def push(given: argparse.Namespace) -> int:
    """Raises Unusable in words."""
    token = os.environ.get("HF_TOKEN", "")
    if not token:
        raise Unusable("No token is set: set HF_TOKEN.")
    try:
        address = upload(
            given.folder, given.repository, given.hub, token, given.private, given.message
        )
    except PushFailed as error:
        words = str(error).replace(token, "…")  # a hub may say what it was sent
        _tell(given.report, {"problem": words})
        raise Unusable(words) from None
    _tell(given.report, {"address": address})
    print(f"{address} has the model.")
    return 0


class PushFailed(Exception):
    """Why, in words."""


def upload(
    folder: Path, repository: str, hub: str, token: str, is_private: bool, message: str
) -> str:
    """The address of the repository, which has what `folder` has in one commit, or nothing new.

    Raises PushFailed.
    """
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils import disable_progress_bars

    constants.HF_HUB_DISABLE_XET = True  # large files go by git's LFS, as every hub has it
    disable_progress_bars()
    warnings.simplefilter("ignore")
    api = HfApi(endpoint=hub.rstrip("/"), token=token)
    try:
        if not api.repo_exists(repository):
            api.create_repo(repository, private=is_private, exist_ok=True)
        api.upload_folder(repo_id=repository, folder_path=folder, commit_message=message)
    except HfHubHTTPError as error:
        raise PushFailed(_in_words(hub, error)) from error
    except ValueError as error:  # a name that none may have, metadata that the hub refuses
        raise PushFailed(f"{hub} cannot take this: {_first_line(error)}") from error
    except Exception as error:
        if not _is_of_the_network(error):
            raise
        raise PushFailed(
            f"{hub} cannot be reached, or broke off: {_first_line(error)}. Push it again later."
        ) from error
    return f"{hub.rstrip('/')}/{repository}"


def _in_words(hub: str, error: object) -> str:
    answer = getattr(error, "response", None)
    status = getattr(answer, "status_code", 0)
    if status >= 500:
        return f"{hub} has a fault of its own ({status}): push it again later."
    means = MEANINGS.get(status, "")
    said = str(getattr(error, "server_message", "") or "")[:MOST_SAID]
    words = f"{hub} refused this ({status})"
    return f"{words}: {means or said or 'it did not say why'}." + (
        f" It said: {said}" if means and said else ""
    )


def _is_of_the_network(error: BaseException) -> bool:
    """Whichever library speaks HTTP for the hub's own."""
    return isinstance(error, OSError) or any(
        kind.__module__.split(".")[0].startswith("http") for kind in type(error).__mro__
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:MOST_SAID]


def _tell(report: Path | None, content: dict[str, str]) -> None:
    if report is not None:
        report.write_text(json.dumps(content), encoding="utf-8")
