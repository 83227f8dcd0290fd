"""What a server answers that is not what SGLang would: by name, each a function of the good answer's JSON.

``Faults.hostile`` names one; ``Faults.hostile_at`` is the measured request that it happens at (0: at every one).
"""

import asyncio
import json

from aiohttp import web


def _meta(**changes):
    return lambda body: {**body, "meta_info": {**body["meta_info"], **changes}}


def _without(*keys):
    return lambda body: {**body, "meta_info": {k: v for k, v in body["meta_info"].items() if k not in keys}}


ANSWERS = {
    "a list": lambda body: [body],
    "null": lambda _: None,
    "no meta": lambda body: {"text": body["text"]},
    "meta a list": lambda body: {**body, "meta_info": []},
    "completion null": _meta(completion_tokens=None),
    "completion text": _meta(completion_tokens="24"),
    "completion negative": _meta(completion_tokens=-1),
    "completion half": _meta(completion_tokens=1.5),
    "completion true": _meta(completion_tokens=True),
    "completion huge": _meta(completion_tokens=2**40),
    "prompt count wrong": _meta(prompt_tokens=1),
    "counts text": _meta(spec_verify_ct="3"),
    "histogram too long": _meta(spec_correct_drafts_histogram=[0] * 5000),
    "histogram text": _meta(spec_correct_drafts_histogram="0123"),
    "histogram halves": _meta(spec_correct_drafts_histogram=[0.5]),
    "histogram negative": _meta(spec_correct_drafts_histogram=[-1]),
    "histogram nested": _meta(spec_correct_drafts_histogram=[[1]]),
    "unfinished": _meta(finish_reason=None),
    "finish text": _meta(finish_reason="length"),
    "clock jumps back": _meta(first_token_latency=-3600.0),
    "clock jumps on": _meta(first_token_latency=3600.0),
    "clock text": _meta(first_token_latency="soon"),
    "no cached": _without("cached_tokens"),
    "ids text": lambda body: {**body, "output_ids": ["1"]},
    "ids negative": lambda body: {**body, "output_ids": [-1]},
    "ids huge": lambda body: {**body, "output_ids": [2**40]},
    "ids null": lambda body: {**body, "output_ids": None},
    "text null": lambda body: {**body, "text": None},
    "text number": lambda body: {**body, "text": 7},
}
BODIES = {
    "garbage": b"\x00\xff\xfe<html>",
    "empty": b"",
    "html": b"<html>502 Bad Gateway</html>",
    "truncated": b'{"text": "a", "output_ids": [1, 2',
    "half a pair": b'{"text": "\\ud83d", "output_ids": [], "meta_info": {}}',
    "NaN": b'{"text": "a", "output_ids": [], "meta_info": {"prompt_tokens": NaN}}',
    "deep": b"[" * 100_000,
    "long number": b'{"text": ' + b"9" * 10_000 + b"}",
    "brackets": b"[/red][bold]",
}


async def answer(kind, request, body):
    """The response that ``kind`` stands for, in place of ``body``."""
    if kind in ANSWERS:
        return web.Response(text=json.dumps(ANSWERS[kind](body)), content_type="application/json")
    if kind in BODIES:
        return web.Response(body=BODIES[kind], content_type="application/json")
    if kind == "odd charset":
        return web.Response(body=json.dumps(body).encode(), headers={"Content-Type": "application/json; charset=no"})
    if kind == "HTTP 500":
        return web.Response(status=500, text="[/] Traceback (most recent call last)")
    if kind == "redirect":
        return web.Response(status=302, headers={"Location": "/generate"})
    if kind == "closes":
        request.transport.abort()
        return web.Response()
    return await _slow(kind, request, json.dumps(body).encode())


async def _slow(kind, request, text):
    response = web.StreamResponse(headers={"Content-Length": str(len(text))})
    await response.prepare(request)
    if kind == "half then closes":
        await response.write(text[: len(text) // 2])
        request.transport.abort()
    for at in range(len(text)) if kind == "drips" else ():
        await response.write(text[at : at + 1])
        await asyncio.sleep(0.2)
    return response
