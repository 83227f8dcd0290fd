"""A stand-in for ``python -m sglang.launch_server``: the HTTP surface of SGLang 0.5.23, and its ways of going wrong.

On PYTHONPATH before the real package it is what the harness starts. ``FAKE_SGLANG`` holds JSON, arm -> faults ("*" for
every arm); see `Faults`. Answers are a function of the prompt, so greedy outputs are equal between arms.
"""

import argparse
import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from sglang import hostile  # of this stand-in
from sglang_specbench.arms import ARMS
from sglang_specbench.attestation import Attestation
from sglang_specbench.digest import weights_digest


@dataclass(kw_only=True)
class Faults:
    """What goes wrong. Counts are of measured requests (rids that do not begin with "warm-"), from 1."""

    start_s: float = 0.0  # seconds until /ready
    request_s: float = 0.002
    dies_at_start: str = ""  # last words
    never_ready: bool = False
    dies_at: int = 0  # killed outright at this request
    hangs_at: int = 0  # this request and all later ones are never answered
    prints_at: int = 0  # prints `line` at this request
    line: str = ""
    aborts_at: int = 0
    refuses_at: int = 0  # HTTP 400
    no_counts: bool = False
    broken_histogram: bool = False
    overcounts: bool = False  # more tokens than blocks can have given
    miscounts: bool = False  # one token more than came back
    retracts: bool = False
    foreign: bool = False  # somebody else sends a request while a cell runs
    no_metrics: bool = False
    eos_in_block: bool = False  # answers end inside their last block
    other_outputs: bool = False  # greedy outputs that are not the target's
    no_attestation: bool = False
    attests: dict = field(default_factory=dict)  # overrides of the attestation
    max_running: int = 0  # requests that the scheduler takes at once
    arguments: dict = field(default_factory=dict)  # overrides of what /server_info says of them
    downgrades: tuple = ()
    wrong_name: bool = False  # somebody else's server
    busy_flushes: int = 0  # /flush_cache answers 400 this often
    ignores_sigterm: bool = False
    child: bool = False  # a process in a group of its own, as SGLang's schedulers are not, but might be
    big_reply: int = 0  # bytes of text in an answer
    hostile: str = ""  # an answer that is not SGLang's: a name of `hostile`
    hostile_at: int = 1  # ... to this request
    info: dict = field(default_factory=dict)  # overrides of /server_info
    hangs: str = ""  # this route is never answered
    fails: str = ""  # this route answers HTTP 500
    stream: str = ""  # what is wrong with a stream: "cut", "error", "junk", "empty"


class Fake:
    def __init__(self, args, config, faults):
        self.args, self.config, self.faults = args, config, faults
        self.began = time.monotonic()
        self.measured = 0
        self.counted = dict.fromkeys(("num_requests", "generation_tokens", "spec_verify_calls"), 0)
        self.speculative = bool(args.speculative_algorithm)
        self.window = args.speculative_num_draft_tokens

    @web.middleware
    async def routes(self, request, handler):
        if self.faults.hangs and request.path.startswith(self.faults.hangs):
            await asyncio.sleep(3600)
        if self.faults.fails and request.path.startswith(self.faults.fails):
            return web.Response(status=500, text="[/red] boom")
        return await handler(request)

    async def ready(self, _):
        late = self.faults.never_ready or time.monotonic() - self.began < self.faults.start_s
        return web.Response(status=503 if late else 200)

    async def info(self, _):
        running = self.faults.max_running or self.args.max_running_requests
        body = {
            "served_model_name": "somebody else's" if self.faults.wrong_name else self.args.served_model_name,
            "version": "0.5.23",
            "internal_states": [{"effective_max_running_requests_per_dp": running}],
            "dtype": self.args.dtype,
            "device": self.config["device"],
            "random_seed": self.args.random_seed,
            "context_length": self.args.context_length,
            "max_running_requests": self.args.max_running_requests,
            "speculative_algorithm": self.args.speculative_algorithm or None,
            "served_model_path": None,
            **self.faults.arguments,
        }
        if not self.faults.no_attestation:
            body["specbench"] = self.attestation()
            runtime = {"downgrades": list(self.faults.downgrades), "verification": "exact", "threads": 1}
            body["internal_states"][0]["specbench"] = runtime
        return web.json_response(body | self.faults.info)

    def attestation(self):
        arm, draft = ARMS[self.config["arm"]], self.config["draft"]
        made = Attestation(
            plugin_version=__import__("sglang_specbench").__version__,
            sglang_version="0.5.23",
            arm=arm.name,
            proposal=self.config["proposal"],
            device=self.config["device"],
            dtype=self.args.dtype,
            draft_model=arm.architectures[0] if arm.architectures else "",
            window=self.window if self.speculative else 1,
            drafted=self.window - 1 if self.speculative else 0,
            seed=self.args.random_seed,
            target_digest=weights_digest(Path(self.config["target"])),
            draft_digest=weights_digest(Path(draft)) if draft else "",
            threads=1,
            patches=dict.fromkeys(arm.patches, "applied"),
        )
        return made.to_json() | self.faults.attests

    async def metrics(self, _):
        if self.faults.no_metrics:
            return web.Response(status=404)
        labels = f'{{model_name="{self.args.served_model_name}"}}'
        lines = [f"sglang:{name}_total{labels} {float(n)}" for name, n in self.counted.items() if n]
        return web.Response(text="# HELP sglang:x\n" + "\n".join(lines) + "\n")

    def count(self, meta):
        n = 2 if self.faults.foreign and self.measured == 2 else 1  # somebody else's request
        self.counted["num_requests"] += n
        self.counted["generation_tokens"] += n * meta["completion_tokens"]
        self.counted["spec_verify_calls"] += n * meta.get("spec_verify_ct", 0)

    async def flush(self, _):
        if self.faults.busy_flushes > 0:
            self.faults.busy_flushes -= 1
            return web.Response(status=400, text="Flush cache failed.")
        return web.Response(text="Cache flushed.")

    async def freeze(self, _):
        return web.Response(text="Garbage collection frozen.")

    async def generate(self, request):
        body = await request.json()
        faults, n = self.faults, 0
        if not body["rid"].startswith("warm-"):
            self.measured += 1
            n = self.measured
        if n and n == faults.prints_at:
            print(faults.line, flush=True)
        if n and n == faults.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if faults.hangs_at and n >= faults.hangs_at:
            await asyncio.sleep(3600)
        if n and n == faults.refuses_at:
            return web.json_response({"error": {"message": "the input is too long"}}, status=400)
        await asyncio.sleep(faults.request_s)
        if faults.hostile and n and n == faults.hostile_at:
            return await hostile.answer(faults.hostile, request, self.answer(body, aborted=False))
        answer = self.answer(body, aborted=bool(n) and n == faults.aborts_at)
        return await self.streamed(request, answer) if body.get("stream") else web.json_response(answer)

    async def streamed(self, request, answer):
        """The answer in events of five tokens more each, as SGLang sends them: each with all there is so far."""
        response, wrong = web.StreamResponse(headers={"Content-Type": "text/event-stream"}), self.faults.stream
        await response.prepare(request)
        total = len(answer["output_ids"])
        for n in [] if wrong == "empty" else [*range(1, total, 5), total]:
            meta = {**answer["meta_info"], "completion_tokens": n if n < total else total + int(self.faults.miscounts)}
            if n < total:
                meta["finish_reason"] = None
            event = {**answer, "output_ids": answer["output_ids"][:n], "meta_info": meta}
            if wrong == "error" and n > 1:
                event = {"error": {"message": "[/red] out of memory", "code": 500}}
            text = "junk\n\n" if wrong == "junk" else f"data: {json.dumps(event)}\n\n"
            await response.write(text[:40].encode())
            await response.write(text[40:].encode())
            await asyncio.sleep(0.001)
            if wrong == "cut" and n > 1:
                return response
        await response.write(b"data: [DONE]\n\n")
        return response

    def answer(self, body, aborted):
        sampling, faults = body["sampling_params"], self.faults
        total = sampling["max_new_tokens"]
        salt = "other" if faults.other_outputs else ""
        seed = hashlib.sha256(f"{body['input_ids']}{salt}".encode()).digest()
        if sampling["temperature"] > 0:
            seed = hashlib.sha256(seed + str(self.args.random_seed).encode() + os.urandom(1)).digest()
        blocks, correct, histogram = self.blocks(total, seed)
        ids = [4 + seed[i % 32] for i in range(total)]
        ids += [1] * (40 if faults.overcounts else 0)
        finish = {"type": "length", "length": total}
        if faults.eos_in_block and not sampling["ignore_eos"]:
            ids = ids[:-2]
            finish = {"type": "stop", "matched": 1}
        if aborted:
            finish = {"type": "abort", "message": "out of patience", "status_code": 503}
        meta = {
            "id": body["rid"],
            "finish_reason": finish,
            "prompt_tokens": len(body["input_ids"]),
            "completion_tokens": len(ids) + int(faults.miscounts),
            "cached_tokens": 0,
            "num_retractions": int(faults.retracts),
            "e2e_latency": faults.request_s,
            "first_token_latency": faults.request_s / 4,
        }
        if self.speculative and not faults.no_counts and blocks:
            meta |= {
                "spec_verify_ct": blocks,
                "spec_num_correct_drafts": correct,
                "spec_num_proposed_drafts": blocks * (self.window - 1),
                "spec_accept_length": len(ids) / blocks,
                "spec_correct_drafts_histogram": histogram[:-1] if faults.broken_histogram else histogram,
            }
        self.count(meta)
        return {"text": f"answer {seed.hex()[:8]}" + "x" * faults.big_reply, "output_ids": ids, "meta_info": meta}

    def blocks(self, total, seed):
        """Blocks that commit 1..8 tokens until ``total`` is reached; the last one is kept whole."""
        histogram, emitted, i = [0] * self.window, 1, 0
        while emitted < total:
            accepted = seed[i % 32] % min(8, self.window)
            histogram[accepted] += 1
            emitted += accepted + 1
            i += 1
        while histogram and not histogram[-1]:
            histogram.pop()
        return i, sum(k * n for k, n in enumerate(histogram)), histogram


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--random-seed", type=int)
    parser.add_argument("--dtype")
    parser.add_argument("--context-length", type=int)
    parser.add_argument("--max-running-requests", type=int)
    parser.add_argument("--speculative-algorithm", default="")
    parser.add_argument("--speculative-num-draft-tokens", type=int, default=16)
    args, _ = parser.parse_known_args()
    config = json.loads(os.environ["SPECBENCH_CONFIG"])
    table = json.loads(os.environ.get("FAKE_SGLANG", "{}"))
    faults = Faults(**{**table.get("*", {}), **table.get(config["arm"], {})})
    if faults.dies_at_start:
        sys.exit(faults.dies_at_start)
    if faults.child:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], process_group=0)
    fake = Fake(args, config, faults)
    app = web.Application(middlewares=[fake.routes])
    app.add_routes(
        [
            web.get("/ready", fake.ready),
            web.get("/server_info", fake.info),
            web.get("/metrics/", fake.metrics),
            web.post("/flush_cache", fake.flush),
            web.post("/freeze_gc", fake.freeze),
            web.post("/generate", fake.generate),
        ]
    )
    print("The server is fired up and ready to roll!", flush=True)
    if faults.ignores_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    web.run_app(
        app,
        host="127.0.0.1",
        port=args.port,
        print=None,
        shutdown_timeout=0.1,
        handle_signals=not faults.ignores_sigterm,
    )


if __name__ == "__main__":
    main()
