"""Plots are valid, self-contained SVG, equal for equal numbers, and hold what they are given."""

import re
import xml.etree.ElementTree as ET

import pytest

from seal.report.plots import Point, confusion, cue_uplift, label_shift, learning_curve, mismatch

POINTS = [
    Point("r0", 0, (0.1, 0.05, 0.2), (0.1, 0.0, 0.2)),
    Point("r1", 800, (0.3, 0.2, 0.4)),
    Point("r2", 1600, (0.4, 0.3, 0.5)),
]
BRANCH = [*POINTS[:2], Point("b<2>", 1600, (0.2, 0.1, 0.3))]
PLOTS = {
    "curve": lambda: learning_curve([POINTS, BRANCH]),
    "labels": lambda: label_shift([("r0", {"argument_mismatch": 0.3, "made_up": 0.1}), ("r1", {})]),
    "mismatch": lambda: mismatch([("r0", POINTS[0].strict, None), ("r1", (0.3, 0.2, 0.4), (0.6, 0.5, 0.7))]),
    "uplift": lambda: cue_uplift([("tool.param: <b> & 'c'", (0.2, 0.1, 0.3)), ("t: none", (0.0, -0.1, 0.1))]),
    "empty": lambda: cue_uplift([]),
    "confusion": lambda: confusion(["a<b", "c"], {("a<b", "a<b"): 1200, ("a<b", "c"): 3, ("c", "c"): 7}),
    "no confusion": lambda: confusion([], {}),
    "nothing fails": lambda: label_shift([("r0", {})]),
    "one round": lambda: learning_curve([POINTS[:1]]),
}


def _text(svg):
    return " ".join(element.text or "" for element in ET.fromstring(svg).iter())


@pytest.mark.parametrize("name", PLOTS)
def test_the_same_numbers_give_the_same_well_formed_svg(name):
    svg = PLOTS[name]()
    assert svg == PLOTS[name]()
    assert ET.fromstring(svg).tag.endswith("svg")
    assert svg.startswith("<svg") and "<metadata" not in svg and "<script" not in svg
    assert "http" not in svg.replace("http://www.w3.org/", "")  # only namespaces


def test_ids_of_different_plots_do_not_meet_and_references_resolve():
    found = [PLOTS[name]() for name in ("curve", "labels", "mismatch", "uplift")]
    ids = [{e.get("id") for e in ET.fromstring(svg).iter() if e.get("id")} for svg in found]
    assert sum(map(len, ids)) == len(set().union(*ids))
    for svg, own in zip(found, ids, strict=True):
        uses = re.findall(r'href="#([^"]+)"', svg) + re.findall(r"url\(#([^)]+)\)", svg)
        assert set(uses) <= own
    assert "href" in found[0]


def test_text_is_kept_and_escaped():
    assert "b<2>" in _text(PLOTS["curve"]()) and "r2" in _text(PLOTS["curve"]())
    assert "tool.param: <b> & 'c'" in _text(PLOTS["uplift"]())
    assert "argument_mismatch" in _text(PLOTS["labels"]()) and "made_up" in _text(PLOTS["labels"]())
    assert {"interface off", "interface on"} <= {e.text for e in ET.fromstring(PLOTS["mismatch"]()).iter()}
