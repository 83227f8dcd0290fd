"""Interactive charts as Vega-Lite specifications, built with Altair. Each takes a frame and returns a chart.

No chart carries its own script or colours of text: the site's pages embed the specifications, one shared bundle draws
them, and `charts.js` gives them the page's colours.
"""

import math
from collections.abc import Sequence

import altair as alt
import pandas as pd

from harness.gate.changes import Change
from plots import style

alt.data_transformers.disable_max_rows()
WIDE = "container"
VERDICTS = {"regression": "#d1242f", "invalid": "#d1242f", "inconclusive": "#c98a00", "ok": "#2da160", "": "#8b949e"}
NUMBER = {"speedup": ".3f", "tau": ".3f", "throughput": ".1f"}
AXES = {"speedup": "speedup over AR", "tau": "tau (tokens a block)", "throughput": "tokens/s"}


def arm_colour(arms: Sequence[str], legend: bool = True) -> alt.Color:
    """The figures' colours for ``arms``, by title."""
    names = list(dict.fromkeys(arms))
    scale = alt.Scale(domain=[style.title(a) for a in names], range=[style.screen_colour(a) for a in names])
    shown = alt.Legend(orient="bottom", columns=2, title=None) if legend else None
    return alt.Color("title:N", scale=scale, legend=shown)


def bars(frame: pd.DataFrame, arms: Sequence[str], quantity: str, reach: float) -> alt.LayerChart:
    """A bar an arm with its interval, up to ``reach``; columns set, arm, title, value, low, high, reason."""
    order = [style.title(a) for a in arms]
    height = 16 * len(order) + 6
    base = alt.Chart(frame).encode(
        y=alt.Y("title:N", sort=order, title=None),
        tooltip=[
            "title:N",
            "set:N",
            *(alt.Tooltip(f"{k}:Q", format=NUMBER[quantity]) for k in ("value", "low", "high")),
        ],
    )
    bar = base.mark_bar(size=11).encode(
        x=alt.X("value:Q", title=AXES[quantity], scale=alt.Scale(domain=[0, reach])),
        color=arm_colour(arms, legend=False),
    )
    doubt = base.mark_rule(strokeWidth=1.4).encode(x="low:Q", x2="high:Q")
    missing = base.transform_filter("datum.reason != ''").mark_text(align="left", dx=4, fontStyle="italic")
    absent = missing.encode(x=alt.datum(0), text=alt.value("no number"), tooltip=["title:N", "set:N", "reason:N"])
    return alt.layer(bar, doubt, absent).properties(width=WIDE, height=height)


def tradeoff(points: pd.DataFrame, lines: pd.DataFrame) -> alt.LayerChart:
    """Tau against block time with intervals; grey lines of equal speed, named at their ends.

    ``points``: arm, title, block, block_low, block_high, tau, tau_low, tau_high, speed; ``lines``: speed, block, tau.
    """
    arms = list(points.arm)
    x = alt.X("block:Q", title="block time, ms (less is better)", scale=alt.Scale(zero=False, nice=False, padding=30))
    y = alt.Y(
        "tau:Q", title="tau, tokens a block (more is better)", scale=alt.Scale(zero=False, nice=False, padding=18)
    )
    tips = [
        alt.Tooltip("title:N", title="arm"),
        *(
            alt.Tooltip(f"{k}:Q", format=".2f")
            for k in ("tau", "tau_low", "tau_high", "block", "block_low", "block_high")
        ),
        alt.Tooltip("speed:Q", format=".1f", title="tokens/s"),
    ]
    iso = alt.Chart(lines).mark_line(strokeWidth=1, opacity=0.45, color="#8b949e", clip=True)
    iso = iso.encode(x=x, y=y, detail="speed:N", order="block:Q")
    ends = lines.loc[lines.groupby("speed").block.idxmax()]
    named = alt.Chart(ends).mark_text(align="right", dy=-5, fontSize=10, opacity=0.75)
    named = named.encode(x=x, y=y, text=alt.Text("label:N"))
    base = alt.Chart(points).encode(color=arm_colour(arms, legend=False), tooltip=tips)
    across = base.mark_rule(opacity=0.7).encode(x=alt.X("block_low:Q"), x2="block_high:Q", y=y)
    up = base.mark_rule(opacity=0.7).encode(y=alt.Y("tau_low:Q"), y2="tau_high:Q", x=x)
    dots = base.mark_circle(size=90, opacity=1).encode(x=x, y=y)
    names = alt.Chart(points).mark_text(align="left", dx=8, dy=-7, fontSize=12).encode(x=x, y=y, text="title:N")
    return alt.layer(iso, named, across, up, dots, names).properties(width=WIDE, height=340)


def series(frame: pd.DataFrame, changes: Sequence[Change], floor: float, by_date: bool) -> alt.LayerChart:
    """One number over the runs: noise band around its last level, a dot a run coloured by its gate's verdict, and a
    rule where the level changed. ``floor``: standard deviation of the log between A/A allocations, 0 if not measured.
    """
    frame = frame.assign(index=range(1, len(frame) + 1), verdict=frame.verdict.replace("", "not judged"))
    start = changes[-1].at if changes else 0
    level = math.exp(sum(math.log(v) for v in frame.value.iloc[start:]) / len(frame.value.iloc[start:]))
    x = alt.X("time:T", title=None, axis=alt.Axis(format="%d %b %y", labelAngle=0, tickCount=4, labelFlush=True))
    if not by_date:
        x = alt.X("index:Q", title="run", axis=alt.Axis(tickMinStep=1), scale=alt.Scale(nice=False))
    metric = frame.metric.iloc[0]
    y = alt.Y("value:Q", title=AXES.get(metric, metric), scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4))
    tips = [
        "run:N", alt.Tooltip("time:T", title="date", format="%Y-%m-%d %H:%M"), "commit:N", "device:N", "sglang:N",
        alt.Tooltip("verdict:N", title="gate"), alt.Tooltip("value:Q", format=".4g"),
    ]  # fmt: skip
    domain = ["not judged", *(v for v in VERDICTS if v)]
    colours = [VERDICTS["" if v == "not judged" else v] for v in domain]
    base = alt.Chart(frame).encode(x=x, y=y)
    layers: list[alt.Chart] = []
    if floor:
        band = pd.DataFrame({"low": [level * math.exp(-2 * floor)], "high": [level * math.exp(2 * floor)]})
        layers.append(alt.Chart(band).mark_rect(opacity=0.18, color="#8b949e").encode(y="low:Q", y2="high:Q"))
    layers += [
        base.mark_line(opacity=0.55, color=style.screen_colour(frame.arm.iloc[0])),
        base.mark_circle(size=42, opacity=1).encode(
            tooltip=tips, color=alt.Color("verdict:N", scale=alt.Scale(domain=domain, range=colours), legend=None)
        ),
    ]
    if changes:
        field = "time:T" if by_date else "index:Q"
        marks = frame.iloc[[c.at for c in changes]].assign(change=[f"{math.expm1(c.size):+.1%}" for c in changes])
        rule = alt.Chart(marks).mark_rule(strokeDash=[4, 3], size=1.5).encode(x=field, tooltip=["change:N", "run:N"])
        label = (
            alt.Chart(marks)
            .mark_text(align="left", dx=4, baseline="top")
            .encode(x=field, y=alt.value(2), text="change:N")
        )
        layers += [rule, label]
    return alt.layer(*layers).properties(width=WIDE, height=130)


def runs(frame: pd.DataFrame, arms: Sequence[str]) -> alt.Chart:
    """One metric of several arms over the runs."""
    metric = frame.metric.iloc[0]
    chart = alt.Chart(frame).mark_line(point=alt.OverlayMarkDef(size=12), strokeWidth=1.2)
    chart = chart.encode(
        x=alt.X("time:T", title=None, axis=alt.Axis(format="%d %b %y", tickCount=4)),
        y=alt.Y("value:Q", title=AXES.get(metric, metric), scale=alt.Scale(zero=False)),
        color=arm_colour(arms),
        tooltip=["title:N", "run:N", "commit:N", "sglang:N", alt.Tooltip("value:Q", format=".4g")],
    )
    return chart.properties(width=WIDE, height=200)


def concurrency(frame: pd.DataFrame, arms: Sequence[str]) -> alt.LayerChart:
    """Speedup against concurrency, from `Results.frame` with titles."""
    values = sorted(set(frame.concurrency))
    base = alt.Chart(frame).encode(
        x=alt.X(
            "concurrency:Q",
            title="concurrency (requests in flight)",
            scale=alt.Scale(type="log", base=2),
            axis=alt.Axis(values=values),
        ),
        color=arm_colour(arms),
    )
    tips = ["title:N", "concurrency:Q", *(alt.Tooltip(f"{k}:Q", format=".3f") for k in ("value", "low", "high"))]
    line = base.mark_line(point=True).encode(
        y=alt.Y("value:Q", title=AXES["speedup"], scale=alt.Scale(zero=False)), tooltip=tips
    )
    area = base.mark_area(opacity=0.12).encode(y="low:Q", y2="high:Q")
    return alt.layer(area, line).properties(width=WIDE, height=240)


def survival(frame: pd.DataFrame, arms: Sequence[str]) -> alt.Chart:
    """Share of blocks that accept slot i, from `Results.frame` of a1..a15 with titles."""
    frame = frame.assign(slot=frame.quantity.str[1:].astype(int))
    chart = alt.Chart(frame).mark_line(point=True)
    chart = chart.encode(
        x=alt.X("slot:Q", title="drafted slot", axis=alt.Axis(tickMinStep=1)),
        y=alt.Y("value:Q", title="share of blocks that accept it", axis=alt.Axis(format=".0%")),
        color=arm_colour(arms),
        tooltip=["title:N", "slot:Q", alt.Tooltip("value:Q", format=".1%")],
    )
    return chart.properties(width=WIDE, height=240)
