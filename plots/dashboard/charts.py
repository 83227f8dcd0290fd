"""Interactive charts as Vega-Lite specifications, built with Altair. Each takes a frame and returns a chart.

No chart carries its own script: the site's pages embed the specifications, and one shared bundle draws them.
"""

import math

import altair as alt
import pandas as pd

from harness.gate.changes import Change
from plots import style

alt.data_transformers.disable_max_rows()
WIDE = "container"
FILTERS = ("target", "arm", "set", "temperature", "device")


def arm_colour(frame: pd.DataFrame) -> alt.Color:
    """The figures' colours for the arms in ``frame``."""
    arms = sorted(frame.arm.unique())
    scale = alt.Scale(domain=arms, range=[style.colour(a) for a in arms])
    return alt.Color("arm:N", scale=scale, legend=alt.Legend(orient="bottom", columns=4))


def explorer(history: pd.DataFrame, metric: str) -> alt.Chart:
    """Every number of ``metric`` over the runs, with one drop-down filter per `FILTERS` entry."""
    frame = history[history.metric == metric]
    chart = alt.Chart(frame).mark_line(point=True, opacity=0.8)
    chart = chart.encode(
        x=alt.X("time:T", title=None),
        y=alt.Y("value:Q", title=metric, scale=alt.Scale(zero=False)),
        color=arm_colour(frame),
        detail=["setting:N", "target:N", "device:N"],
        tooltip=["run:N", "time:T", "commit:N", "target:N", "arm:N", "setting:N", alt.Tooltip("value:Q", format=".4g")],
    )
    for name in FILTERS:
        options = sorted(frame[name].astype(str).unique())
        menu = alt.binding_select(options=[None, *options], labels=["all", *options], name=f"{name} ")
        chosen = alt.selection_point(fields=[name], bind=menu, name=f"by_{name}")
        chart = chart.add_params(chosen).transform_filter(chosen)
    return chart.properties(width=WIDE, height=280)


def series(frame: pd.DataFrame, changes: list[Change]) -> alt.LayerChart:
    """One series over the runs: noise band around its last level, dots with hover values, change points as rules."""
    frame = frame.assign(index=range(len(frame)))
    start = changes[-1].at if changes else 0
    level, noise = frame.value.iloc[start:].mean(), float(frame.noise.fillna(0).median())
    band = pd.DataFrame({"low": [level * (1 - 2 * noise)], "high": [level * (1 + 2 * noise)]})
    tooltip = ["run:N", "time:T", "commit:N", "verdict:N", alt.Tooltip("value:Q", format=".4g")]
    x = alt.X("index:Q", title="run", axis=alt.Axis(tickMinStep=1))
    base = alt.Chart(frame).encode(x=x, y=alt.Y("value:Q", title=frame.metric.iloc[0], scale=alt.Scale(zero=False)))
    layers = [
        alt.Chart(band).mark_rect(opacity=0.15).encode(y="low:Q", y2="high:Q"),
        base.mark_line(opacity=0.5),
        base.mark_circle(size=45).encode(tooltip=tooltip, color=arm_colour(frame).legend(None)),
    ]
    if changes:
        marks = pd.DataFrame([{"index": c.at - 0.5, "change": f"{math.expm1(c.size):+.2%} from here"} for c in changes])
        layers.append(alt.Chart(marks).mark_rule(strokeDash=[4, 3], size=2).encode(x="index:Q", tooltip="change:N"))
    return alt.layer(*layers).properties(width=WIDE, height=180)


def concurrency(frame: pd.DataFrame) -> alt.Chart:
    """Speedup against concurrency, from `Results.frame`; one panel per set, tier and temperature."""
    frame = frame.assign(panel=frame.benchmark + " " + frame.tier + " T=" + frame.temperature.astype(str))
    base = alt.Chart(frame).encode(
        x=alt.X(
            "concurrency:Q", scale=alt.Scale(type="log", base=2), axis=alt.Axis(values=sorted(set(frame.concurrency)))
        ),
        color=arm_colour(frame),
    )
    line = base.mark_line(point=True).encode(
        y=alt.Y("value:Q", title="speedup over AR", scale=alt.Scale(zero=False)),
        tooltip=["arm:N", "concurrency:Q", *(alt.Tooltip(f"{k}:Q", format=".3f") for k in ("value", "low", "high"))],
    )
    area = base.mark_area(opacity=0.12).encode(y="low:Q", y2="high:Q")
    return alt.layer(area, line).properties(width=230, height=170).facet(alt.Facet("panel:N", title=None), columns=3)


def survival(frame: pd.DataFrame) -> alt.Chart:
    """Share of blocks that accept slot i, from `Results.frame` of a1..a15."""
    frame = frame.assign(
        slot=frame.quantity.str[1:].astype(int), panel=frame.benchmark + " T=" + frame.temperature.astype(str)
    )
    chart = (
        alt.Chart(frame)
        .mark_line(point=True)
        .encode(
            x=alt.X("slot:Q", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y("value:Q", title="P(slot accepted)"),
            color=arm_colour(frame),
            tooltip=["arm:N", "slot:Q", alt.Tooltip("value:Q", format=".3f")],
        )
    )
    return chart.properties(width=230, height=170).facet(alt.Facet("panel:N", title=None), columns=3)


def overview(table: pd.DataFrame) -> alt.LayerChart:
    """Arms x sets: the last value written in, the colour its change against the baseline."""
    reach = max(float(table.change.abs().max()), 0.01)
    base = alt.Chart(table).encode(
        x=alt.X("set:N", title=None, axis=alt.Axis(labelAngle=-30)), y=alt.Y("arm:N", title=None)
    )
    tooltip = ["target:N", "arm:N", "set:N", "temperature:N", alt.Tooltip("value:Q", format=".3f"),
               alt.Tooltip("baseline:Q", format=".3f"), alt.Tooltip("change:Q", format="+.2%")]  # fmt: skip
    cells = base.mark_rect().encode(
        color=alt.Color(
            "change:Q",
            title="against baseline",
            scale=alt.Scale(scheme="purpleorange", domain=[reach, -reach]),
            legend=alt.Legend(format="+.1%", orient="bottom"),
        ),
        tooltip=tooltip,
    )
    text = base.mark_text(color="black").encode(text=alt.Text("value:Q", format=".2f"), tooltip=tooltip)
    return alt.layer(cells, text).properties(width=WIDE, height=26 * table.arm.nunique())
