"""A run of which the truth is known: arms over prompt sets of the synthetic server."""

from harness.load_results import load_results
from tests import synthetic_run as synthetic


def run(folder, arms=("ar", "dflash", "dspark", "lilicorr"), sets=("gsm8k", "math500"), **options):
    """Write a run folder and return it; ``options``: prompts, temperatures, repeats, concurrency."""
    cells = [
        synthetic.cell("Qwen3-8B", arm, name, t, prompts=options.get("prompts", 40), repeat=r, concurrency=c)
        for arm in arms
        for name in sets
        for t in options.get("temperatures", (0.0,))
        for r in range(options.get("repeats", 2))
        for c in options.get("concurrency", (1,))
    ]
    return synthetic.write(folder, synthetic.run(cells))


def results(folder, **options):
    return load_results(str(run(folder, **options)))
