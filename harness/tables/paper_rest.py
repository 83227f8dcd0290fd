"""Tables 4 and 16: the configuration, as the drafters that ran say it, and the decode rule."""

from typing import Any

from harness.paper import published
from harness.stats import block_width
from harness.stats.contrast import relative
from harness.stats.estimate import Missing
from harness.stats.results import Results
from harness.stats.setting import Setting, printed
from harness.tables.build import lowest_concurrency, title_of
from harness.tables.table import Column, Table, TableCell, TableRow, Text, words

NOTHING = "this drafter has no provenance.json: how it was trained is not known"
# the paper's quantity -> how a drafter's contract or recipe says it
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


DRAFTER = {  # what a checkpoint says of itself beside its recipe -> the key of its provenance.json
    "Optimiser steps": "steps",
    "Seed": "seed",
    "Digest of the corpus": "corpus_digest",
    "Commit of the trainer": "commit",
    "Parameters of the head": "head_parameters",
}


def table4(results: Results) -> Table:
    """Configuration as printed, and for a measured run what each of its drafters says of its own training."""
    drafters = _drafters(results)
    columns = (Column(name="Symbol"), Column(name="Paper"), *(Column(group="As trained", name=n) for n in drafters))
    rows = [
        TableRow(
            label=line["quantity"],
            cells=(*words(line["symbol"], line["value"]), *(_said(line["quantity"], d) for d in drafters.values())),
        )
        for line in published.rows("table04_configuration")
    ]
    for quantity, key in DRAFTER.items() if drafters else ():
        rows.append(TableRow(label=quantity, cells=(*words("", ""), *(_own(d, key) for d in drafters.values()))))
    return Table(name="4", title="Table 4. Configuration", stub="Quantity", columns=columns, rows=tuple(rows))


def _drafters(results: Results) -> dict[str, dict[str, Any]]:
    """Target and title of the arm that first loads it -> provenance, for each drafter of a measured run."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    names: dict[str, dict[str, Any]] = {}
    if results.cells is None:
        return names
    for cell in results.cells.itertuples():
        key = (str(cell.target), str(cell.draft_digest))
        if cell.draft_digest and key not in found:
            said = dict(getattr(cell, "provenance", None) or {})
            found[key] = said and {**said, "window": block_width.window(cell)}
            names[f"{cell.target} {title_of(results, str(cell.arm))}"] = found[key]
    return names


def _said(quantity: str, provenance: dict[str, Any]) -> TableCell:
    """What the drafter's contract and recipe say; a hole where they do not."""
    form = RECIPE.get(quantity)
    if form is None:
        return TableCell(content=Missing("not a setting of the recipes here"))
    if not provenance:
        return TableCell(content=Missing(NOTHING))
    try:
        window = provenance["window"]
        return TableCell(content=Text(form.format(**_settings(provenance), window=window, drafted=window - 1)))
    except (KeyError, ValueError, TypeError) as error:
        return TableCell(content=Missing(f"the drafter's provenance.json does not say it ({error})"))


def _own(provenance: dict[str, Any], key: str) -> TableCell:
    value = provenance.get(key)
    if value is None or value == "":
        return TableCell(content=Missing(f"the drafter's provenance.json has no {key}" if provenance else NOTHING))
    return TableCell(content=Text(f"{value:,}" if isinstance(value, int) and key != "seed" else str(value)[:16]))


def _settings(provenance: dict[str, Any]) -> dict[str, Any]:
    """Keys of the contract and of the recipe, tables flattened."""
    found: dict[str, Any] = {}
    for table in (provenance.get("contract") or {}, provenance.get("recipe") or {}):
        found |= {k: v for k, v in table.items() if not isinstance(v, dict)}
        found |= {k: v for inner in table.values() if isinstance(inner, dict) for k, v in inner.items()}
    if {"lilicorr_mlp_ratio", "lilicorr_hidden_size"} <= found.keys():
        found["feed_forward"] = found["lilicorr_mlp_ratio"] * found["lilicorr_hidden_size"]
    return found


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
        TableRow(section=place.target, label=printed(place.benchmark), cells=_decode_rule(results, place))
        for target in results.targets()
        for b in sets
        if (place := Setting(target=target, arm="lilicorr", benchmark=b, temperature=0.0, concurrency=c))
        if place.of("lilicorr-exact") in present
    )
    title = "Table 16. Decode rule: exact path against the greedy walk, T = 0"
    return Table(name="16", title=title, stub="Benchmark", columns=columns if rows else (), rows=rows)


def _decode_rule(results: Results, setting: Setting) -> tuple[TableCell, ...]:
    exact = setting.of("lilicorr-exact")
    walk = "tau_walk" if (setting, "tau_walk") in results.values else "tau"  # printed with a digit more
    change = results.values.get((exact, "tau_change_pct")) or relative(
        results, (exact, "tau"), results, (setting, "tau")
    )
    return (
        TableCell(content=results.get(setting, walk), setting=setting, quantity=walk),
        TableCell(content=results.get(exact, "tau"), setting=exact, quantity="tau"),
        TableCell(content=change, setting=exact, quantity="tau_change_pct"),
    )
