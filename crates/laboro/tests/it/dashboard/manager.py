"""The dashboard of a manager in a real browser: its link signs in, and the job is seen as far as it is.

Arguments: the link, and what the page of the job is to show.
"""

import sys

from webdriver import Browser

link, words = sys.argv[1:3]
browser = Browser()
try:
    browser.open(link)
    browser.until("the page is live", lambda: "live" in browser.text("#link"))
    assert "token" not in browser.run("return location.href")
    browser.go("#/jobs/1")
    browser.until(f"{words!r} is seen", lambda: words in browser.text("main"))
    browser.go("#/workers")
    browser.until("the runner is seen", lambda: "r1@127.0.0.1" in browser.text("main"))
finally:
    browser.close()
