"""Tables 4 and 16: the configuration, from the recipes, and the decode rule."""

import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.paper import published
from harness.stats.contrast import relative
from harness.stats.estimate import Missing
from harness.stats.results import Results
from harness.stats.setting import Setting, printed
from harness.tables.build import lowest_concurrency
from harness.tables.table import Cell, Column, Row, Table, Text, words
from sglang_specbench.arms import DRAFTED, WINDOW

# the paper's quantity -> how this tree's recipe says it: keys of contract.toml, or of lilicorr/recipe.toml
RECIPE = {
    "Block size, of which drafted slots": "{window}, of which {drafted}",
    "Candidates retained per slot": "{lilicorr_candidate_topk}",
    "Dimension of the in and out vectors": "{lilicorr_factor_dim}",
    "Cosine scale": "{lilicorr_logit_scale}",
    "Scoring Transformer layers": "{lilicorr_num_layers}",
    "Hidden width, heads, feed-forward width": "{lilicorr_hidden_size}, {lilicorr_num_heads}, {feed_forward:g}",
    "Decay of the DFlash cross-entropy": "{beta}",
    "Weight of the distractor penalty": "{distractor}",
    "Weight of the reranker objective, Eq. (6)": "{gamma}",
    "Learning rate": "{learning_rate:g}",
    "Weight decay": "{weight_decay:g}",
    "Schedule": "{schedule}, {warm_up:.0%} warmup",
    "Gradient-norm clipping": "{clip:g}",
    "Global batch size, sequence length": "{batch}, {length}",
    "Anchor positions sampled per sequence": "{anchors}",
    "Epochs": "{epochs}",
    "Precision": "{precision}, fp32 master weights",
}


def table4(results: Results) -> Table:
    """Configuration as printed, and for a measured run the same rows from the recipes of this tree."""
    own = results.cells is not None
    columns = (Column(name="Symbol"), Column(name="Paper"), *([Column(name="This tree")] if own else []))
    rows = tuple(
        Row(
            label=line["quantity"],
            cells=(*words(line["symbol"], line["value"]), *([_recipe(line["quantity"])] if own else [])),
        )
        for line in published.rows("table04_configuration")
    )
    return Table(name="4", title="Table 4. Configuration", stub="Quantity", columns=columns, rows=rows)


def _recipe(quantity: str) -> Cell:
    """The tree's own value; a hole where its recipes do not say."""
    form = RECIPE.get(quantity)
    if form is None:
        return Cell(content=Missing("not a setting of the recipes here"))
    try:
        return Cell(content=Text(form.format(**_settings(), window=WINDOW, drafted=DRAFTED)))
    except KeyError as error:
        return Cell(content=Missing(f"contract.toml and lilicorr/recipe.toml have no key {error}"))


def _settings() -> dict[str, Any]:
    """Keys of the contract and of LiLiCorr's recipe, tables flattened; read as files, the package is not imported."""
    spec = find_spec("drafters")
    assert spec is not None
    folder = Path(next(iter(spec.submodule_search_locations or ())))
    found: dict[str, Any] = {}
    for path in (folder / "training" / "contract.toml", folder / "lilicorr" / "recipe.toml"):
        if path.is_file():
            table = tomllib.loads(path.read_text(encoding="utf-8"))
            found |= {k: v for k, v in table.items() if not isinstance(v, dict)}
            found |= {k: v for inner in table.values() if isinstance(inner, dict) for k, v in inner.items()}
    return found | {"feed_forward": found["lilicorr_mlp_ratio"] * found["lilicorr_hidden_size"]}


def table16(results: Results) -> Table:
    """LiLiCorr's greedy walk against the exact best path, greedy."""
    c = lowest_concurrency(results)
    sets = sorted(results.benchmarks(), key=lambda b: b != "speed-qualitative")  # the paper's order
    columns = (
        Column(name="greedy walk τ", decimals=3),
        Column(name="exact path τ", decimals=3),
        Column(name="Δ, %"),
    )
    present = set(results.settings())
    rows = tuple(
        Row(section=place.target, label=printed(place.benchmark), cells=_decode_rule(results, place))
        for target in results.targets()
        for b in sets
        if (place := Setting(target=target, arm="lilicorr", benchmark=b, temperature=0.0, concurrency=c))
        if place.of("lilicorr-exact") in present
    )
    title = "Table 16. Decode rule: exact path against the greedy walk, T = 0"
    return Table(name="16", title=title, stub="Benchmark", columns=columns if rows else (), rows=rows)


def _decode_rule(results: Results, setting: Setting) -> tuple[Cell, ...]:
    exact = setting.of("lilicorr-exact")
    walk = "tau_walk" if (setting, "tau_walk") in results.values else "tau"  # printed with a digit more
    change = results.values.get((exact, "tau_change_pct")) or relative(
        results, (exact, "tau"), results, (setting, "tau")
    )
    return (
        Cell(content=results.get(setting, walk), setting=setting, quantity=walk),
        Cell(content=results.get(exact, "tau"), setting=exact, quantity="tau"),
        Cell(content=change, setting=exact, quantity="tau_change_pct"),
    )
