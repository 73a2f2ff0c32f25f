"""Whether people who see little, or have no mouse, can use a page: axe-core looks at it in both of its colours, and Tab
goes to all that can be pressed, visibly."""

import os
import pathlib

MODULES = os.environ.get("LABORO_NODE_MODULES")
AXE = MODULES and (pathlib.Path(MODULES) / "axe-core/axe.min.js").read_text()
LOOK = """
return axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => violations.map(({id, impact, help, nodes}) =>
  `${impact} ${id}: ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`))
"""
REACHED = """
const one = document.activeElement;
if (one === document.body) return null;
const { outlineStyle, outlineWidth } = getComputedStyle(one);
one.dataset.reached = "";
return one.matches(":focus-visible") && outlineStyle !== "none" && outlineWidth !== "0px" ? "" : one.outerHTML.slice(0, 200);
"""
MISSED = """
const stops = [...document.querySelectorAll("main :is(a[href], button, input, select, textarea, summary, [tabindex='0'])")];
return stops.filter((one) => !one.disabled && one.getClientRects().length > 0 && !("reached" in one.dataset))
  .map((one) => one.outerHTML.slice(0, 200));
"""


def has_no_barrier(browser, page):
    """Nothing that axe-core knows to be wrong, be it ever so small."""
    if not AXE:
        return
    for scheme in ("light", "dark"):
        browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.run(AXE + "; return null")
        found = browser.run(LOOK)
        assert not found, (page, scheme, found)


def is_gone_through_by_tab(browser, page):
    """From the top of the page to its end, each stop with a frame around it."""
    browser.run("document.querySelectorAll('[data-reached]').forEach((one) => delete one.dataset.reached)")
    browser.run("document.activeElement.blur()")
    for _ in range(200):
        browser.press("\ue004")
        seen = browser.run(REACHED)
        if seen is None:
            break
        assert seen == "", (page, "the focus is not seen", seen)
    missed = browser.run(MISSED)
    assert not missed, (page, "not reached by Tab", missed)
