"""How the HTTP API says no: one JSON shape, one table of status codes."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ObjectDoesNotExist, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.deprecation import MiddlewareMixin
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, Throttled, ValidationError
from pydantic import Field

from webapp.core.errors import UserError
from webapp.devices.selectors import NO_SUCH_DEVICE, START_ANEW

STATUS = {
    "unknown": 404,
    "used": 410,
    "expired": 410,
    "forbidden": 403,
    "revoked": 403,
    "banned": 403,
    "update": 426,
    "wait": 409,
}
WAIT_S = 2
CALLS = "/api/v1/openapi.json"
KINDS = {400: "invalid", 404: "unknown", 405: "method", 413: "too_large", 422: "invalid"}
NEXT_STEPS = {
    400: f"Send a JSON document that fits {CALLS}.",
    403: "Ask an organiser of this site.",
    404: f"Look at /api/v1/collaborations for what there is, and at {CALLS} for the calls.",
    405: f"Look at the Allow header of this answer, and at {CALLS}.",
    409: "Look at the collaboration's page for its present state.",
    413: "Send a smaller document.",
    422: f"Correct what is named; {CALLS} has the bounds.",
}


class Problem(Schema):
    """`error` says what happened, `next_step` what to do; `kind` is a word for programs."""

    error: str = Field(max_length=1000)
    next_step: str = Field("", max_length=1000)
    kind: str = Field("", max_length=20)


def problems(*codes: int) -> dict[int, type[Problem]]:
    """The refusals an operation may answer with; every one may also be too fast or malformed."""
    return dict.fromkeys((*codes, 400, 413, 422, 429), Problem)


def told(status: int, error: str, *, next_step: str = "", kind: str = "") -> Problem:
    return Problem(
        error=error,
        next_step=next_step or NEXT_STEPS.get(status, ""),
        kind=kind or KINDS.get(status, ""),
    )


class JsonProblems(MiddlewareMixin):
    """Under /api/v1/ also an unknown path and a wrong method are told in JSON."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        is_json = response.get("Content-Type", "").startswith("application/json")
        if not request.path.startswith("/api/v1/") or is_json:
            return response
        if response.status_code == 404:
            error = f"There is no call {request.path[:200]}."
        elif response.status_code == 405:
            error = f"{request.path[:200]} does not take {request.method}."
        else:
            return response
        problem = told(response.status_code, error)
        answer = JsonResponse(problem.dict(), status=response.status_code)
        if "Allow" in response:
            answer["Allow"] = response["Allow"]
        return answer


def handle_problems(api: NinjaAPI) -> None:
    """Registers how each exception is told."""

    def say(request: HttpRequest, status: int, error: str, **more: str) -> HttpResponse:
        return api.create_response(request, told(status, error, **more), status=status)

    def user_error(request: HttpRequest, error: UserError) -> HttpResponse:
        status = STATUS.get(error.kind, 409)
        answer = say(request, status, error.message, next_step=error.next_step, kind=error.kind)
        if error.kind == "wait":
            answer["Retry-After"] = str(WAIT_S)
        return answer

    def throttled(request: HttpRequest, error: Throttled) -> HttpResponse:
        wait_s = error.wait or 1
        answer = say(
            request, 429, "Too many requests.", next_step=f"Ask again in {wait_s} s.", kind="wait"
        )
        answer["Retry-After"] = str(wait_s)
        return answer

    def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
        where = "; ".join(f"{_place(one['loc'])}: {one['msg']}" for one in error.errors[:5])
        return say(request, 422, f"The request does not fit: {where}"[:1000], kind="invalid")

    def unauthorised(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
        answer = say(
            request,
            401,
            NO_SUCH_DEVICE,
            next_step=START_ANEW,
            kind="unknown",
        )
        answer["WWW-Authenticate"] = "Bearer"
        return answer

    def plain(request: HttpRequest, error: HttpError) -> HttpResponse:
        first = error.__cause__ if isinstance(error.__cause__, HttpError) else error
        return say(request, first.status_code, str(first))

    table: dict[type[Exception], Any] = {
        UserError: user_error,
        Throttled: throttled,
        ValidationError: invalid,
        AuthenticationError: unauthorised,
        HttpError: plain,
        RequestDataTooBig: lambda request, error: say(request, 413, "The request is too large."),
        ObjectDoesNotExist: lambda request, error: say(
            request, 404, "There is no such thing here.", kind="unknown"
        ),
        Http404: lambda request, error: say(
            request, 404, "There is no such thing here.", kind="unknown"
        ),
    }
    for exception, handler in table.items():
        api.add_exception_handler(exception, handler)


def _place(location: tuple[Any, ...]) -> str:
    return ".".join(str(part) for part in location[1:]) or str(location[0])
