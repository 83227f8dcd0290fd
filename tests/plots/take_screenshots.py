"""Take the pictures under docs/dashboard: ``python -m tests.plots.take_screenshots`` (needs Chromium).

Synthetic runs: one like the demo, one in which two arms died, and a night's run after a history of 200.
"""

import math
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from harness.gate.history import Entry, Point
from harness.load_results import load_results
from harness.store import run as store
from plots.dashboard.site import Sources, build
from tests import synthetic_run as synthetic

OUT = Path("docs/dashboard")
ARMS = ("ar", "dflash", "dflash2", "domino", "dspark", "lilicorr", "lilicorr-conv", "lilicorr-exact")
SPEED = {"ar": 149.0, "dflash": 4.09, "dflash2": 4.44, "domino": 4.30, "dspark": 4.29, "lilicorr": 4.53}
TAU = {"dflash": 5.59, "dflash2": 6.27, "domino": 6.30, "dspark": 6.40, "lilicorr": 6.44}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
# file, site, page, width, height, scheme
SHOTS = [
    ("demo-1280-light", "demo", "index", 1280, 1500, "light"),
    ("demo-1280-dark", "demo", "index", 1280, 1500, "dark"),
    ("demo-390-light", "demo", "index", 390, 1500, "light"),
    ("runs-200-1280-light", "nightly", "history", 1280, 1500, "light"),
    ("runs-200-1280-dark", "nightly", "index", 1280, 1600, "dark"),
    ("runs-200-390-dark", "nightly", "history", 390, 1500, "dark"),
    ("failed-1280-light", "failed", "health", 1280, 1200, "light"),
    ("failed-390-dark", "failed", "index", 390, 1500, "dark"),
    ("arm-1280-light", "nightly", "arm-lilicorr", 1280, 1500, "light"),
]


def main():
    OUT.mkdir(exist_ok=True)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sources = {
            "demo": made(folder / "demo", demo_cells(), "cpu"),
            "failed": made(folder / "failed", demo_cells(), "cpu", dead=("ar", "lilicorr")),
            "nightly": replace(made(folder / "2026-11-30", night_cells(), "NVIDIA H200"), history=nights(200)),
        }
        for name, source in sources.items():
            build(source, folder / "site" / name)
        shoot(folder / "site")


def demo_cells():
    return [
        synthetic.cell("mini", arm, "mini", t, prompts=6, concurrency=c, device="cpu", replica=replica)
        for arm in ARMS for t in (0.0, 1.0) for c in (1, 4) for replica in ((0, 1) if arm == "ar" else (0,))
    ]  # fmt: skip


def night_cells():
    return [
        synthetic.cell("Qwen3-8B", arm, name, t, prompts=40, repeat=r)
        for arm in SPEED for name in ("gsm8k", "math500", "humaneval", "mt-bench") for t in (0.0, 1.0) for r in (0, 1)
    ]  # fmt: skip


def made(folder, cells, device, dead=()):
    seen = {"device_name": device, "sglang": "0.5.23", "specbench": "0.1.0", "load": 1.02, "cores": 16}
    found = []
    for header, rows in synthetic.run(cells):
        own = replace(header, started_at="2026-11-30T02:00:00+00:00", environment={**header.environment, **seen})
        ended = synthetic.failed(
            replace(own, log_tail="RuntimeError: out of memory"), "oom", "the server ran out of memory"
        )
        found.append(ended if own.cell.arm in dead else (own, rows))
    synthetic.write(folder, found)
    results = load_results(str(folder))
    results.unaudited = {"domino": "unaudited", "dspark": "inconclusive"}
    return Sources(history=[], results=results, rows=store.load(folder).rows)


def nights(n):
    """LiLiCorr is 4 % slower for a month, and the gate saw it."""
    rng, first = np.random.default_rng(0), datetime(2026, 5, 14, 2, tzinfo=UTC)
    entries = []
    for i in range(n):
        slow = 133 <= i < 165
        points = []
        for arm, speed in SPEED.items():
            drop = math.log(0.96) if arm == "lilicorr" and slow else 0.0
            metric = "throughput" if arm == "ar" else "speedup"
            numbers = [(metric, speed * math.exp(drop + 0.003 * rng.standard_normal()))]
            numbers += [("tau", TAU[arm] * math.exp(drop / 4 + 0.001 * rng.standard_normal()))] if arm != "ar" else []
            points += [Point(target="Qwen3-8B", arm=arm, metric=m, setting="pooled", value=v) for m, v in numbers]
        day = first + timedelta(days=i)
        verdict = "regression" if 133 <= i < 136 else "inconclusive" if i in (40, 77, 150) else "ok"
        entries.append(
            Entry(
                run=f"{day:%Y-%m-%d}", time=day.isoformat(), commit=f"{rng.integers(2**28):07x}",
                device_name="NVIDIA H200", versions={"sglang": "0.5.23", "driver": "580.95" if i < 133 else "585.12"},
                noise=0.003, verdict=verdict, points=tuple(points),
            )
        )  # fmt: skip
    return entries


def shoot(site):
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name, which, page, width, height, scheme in SHOTS:
            tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            tab.goto((site / which / f"{page}.html").as_uri())
            tab.wait_for_timeout(2500)
            path = OUT / f"{name}.png"
            tab.screenshot(path=path)
            tab.close()
            Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
