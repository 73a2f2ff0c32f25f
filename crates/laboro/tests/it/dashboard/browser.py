"""The dashboard in a real browser, against a real hub with real workers: what a person sees and presses.

Arguments: the address of the hub, the directory of the test, the program. The hub's directory is `hub` below it.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

from reach import has_no_barrier, is_gone_through_by_tab
from webdriver import Browser

address, place, laboro = sys.argv[1:4]
place = pathlib.Path(place)
SCRIPT = "<script>alert(1)</script>"


def command(*words):
    environment = {**os.environ, "LABORO_DIR": str(place / "hub")}
    ran = subprocess.run([laboro, *words], env=environment, cwd=place, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def submit(name, line, *values):
    said = command("submit", "--json", "--name", name, "--", "sh", "-c", line, ":::", *(values or ["x"]))
    return json.loads(said.splitlines()[0])["job"]


def token(role):
    return re.search(r'token = "(.*)"', command("access", "--role", role)).group(1)


def sees(words, selector="main"):
    browser.until(f"{words!r} is seen", lambda: words in browser.text(selector))


def nobody_comes_in_without_a_token():
    browser.open(address)
    sees("Sign in")
    has_no_barrier(browser, "sign in")
    browser.type("input[name=token]", "laboro_wrong_token")
    browser.click("button[type=submit]")
    sees("does not know this token")
    browser.go("#/jobs")
    sees("Sign in")
    browser.go("#token=laboro_wrong_token")
    sees("it was revoked, has expired, or belongs to another hub")
    browser.go("#/jobs")


def a_token_signs_in_and_is_kept_for_this_tab_only():
    browser.type("input[name=token]", token("admin"))
    browser.click("button[type=submit]")
    sees("Jobs", "h1")
    assert browser.run("return document.cookie") == ""
    assert browser.run("return Object.keys(localStorage).join()") == ""
    browser.open(address)
    browser.until("the page is live", lambda: "live" in browser.text("#link"))


def a_job_progresses_while_somebody_looks():
    job = submit("steady", 'while [ ! -e "go-{}" ]; do sleep 0.02; done; echo done {}', "1", "2", "3", "4")
    browser.go(f"#/jobs/{job}")
    sees("steady")
    sees("sleep 0.02")
    sees("0 of 4")
    sees("running")
    loaded = browser.run("return performance.getEntriesByType('navigation').length + ' ' + performance.timeOrigin")
    for number in range(1, 4):
        (place / f"go-{number}").touch()
        sees(f"{number} of 4")
    (place / "go-4").touch()
    sees("100%")
    browser.until("it is done", lambda: browser.text("h1 .badge") == "done")
    assert loaded.split()[1] == browser.run("return String(performance.timeOrigin)"), "the page was loaded anew"
    browser.go("#/jobs?name=no-such-job")
    sees("no such jobs")
    browser.go("#/jobs?name=steady")
    sees("steady", "tbody")
    browser.go(f"#/jobs/{job}")
    browser.until("the charts are drawn", lambda: browser.run(
        "return document.querySelectorAll('.timeline rect').length === 4 && document.querySelectorAll('.chart').length > 2"))


def hold_release_and_cancel_do_what_they_say():
    job = submit("patient", 'while [ ! -e never ]; do sleep 0.05; done', *map(str, range(20)))
    browser.go(f"#/jobs/{job}")
    browser.until("it runs", lambda: browser.text("h1 .badge") == "running")
    browser.click("[data-do=hold]")
    browser.until("it is held", lambda: browser.text("h1 .badge") == "held")
    browser.click("[data-do=release]")
    browser.until("it goes on", lambda: browser.text("h1 .badge") == "running")
    browser.click("[data-do=cancel]")
    sees("will not start", "dialog")
    has_no_barrier(browser, "dialog")
    browser.click("dialog button[value=yes]")
    browser.until("it is cancelled", lambda: browser.text("h1 .badge") == "cancelled")


def what_failed_says_why_and_can_be_retried():
    script = """
        test -e fixed && exit
        test {} = two || while [ ! -e fail ]; do sleep 0.02; done
        echo "the part {} is missing" >&2
        exit 3
    """
    job = submit("brittle", script, "one", "two")
    browser.go(f"#/jobs/{job}")
    sees("the part two is missing")
    # It comes before the other one, in the part of the page that was the other's.
    (place / "fail").touch()
    browser.until("it failed", lambda: browser.text("h1 .badge") == "failed")
    sees("exit code 3")
    sees("the part one is missing")
    sees("the part two is missing")
    (place / "fixed").touch()
    browser.click("[data-do=retry]")
    browser.until("it is done", lambda: browser.text("h1 .badge") == "done")


def an_output_is_followed_as_it_comes():
    job = submit("talker", 'echo first; while [ ! -e say ]; do sleep 0.02; done; echo second; while [ ! -e end ]; do sleep 0.02; done')
    browser.go(f"#/jobs/{job}/tasks/1")
    sees("first", ".output")
    assert "second" not in browser.text(".output")
    (place / "say").touch()
    sees("second", ".output")
    sees("sh -c")
    (place / "end").touch()
    sees("the end")


def a_task_that_does_not_run_says_why():
    (place / "greedy.toml").write_text(
        '[job]\nname = "greedy"\n[[task]]\nname = "big"\nslots = 999\ncommand = "true"\n')
    job = json.loads(command("submit", "--json", "greedy.toml").splitlines()[0])["job"]
    browser.go(f"#/jobs/{job}/tasks/1")
    sees("Why it does not run")
    command("cancel", str(job))


def resources_in_use_have_cards():
    # Memory and things, of two workers together; what nobody uses is there too.
    needs = ["--resource", "cards=0.5", "--resource", "licences=3", "--memory", "256M"]
    command("submit", *needs, "--", "sh", "-c", "while [ ! -e free ]; do sleep 0.02; done")
    browser.go("#/")
    cards = """return Object.fromEntries(Array.from(document.querySelectorAll(".card"),
        (card) => [card.querySelector(".card-title").textContent, card.querySelector("strong").textContent]))"""

    def show(**wanted):
        browser.until(f"{wanted} is shown", lambda: wanted.items() <= browser.run(cards).items())

    show(cards="0.5 / 4", licences="3 / 400", Memory="256 MiB")
    top = command("status")
    assert "cards 0.5/4" in top and "licences 3/400" in top, top
    (place / "free").touch()
    show(cards="0 / 4", licences="0 / 400")


def names_are_text_everywhere():
    (place / "names.toml").write_text(
        f'[job]\nname = "{SCRIPT}"\n[[task]]\nname = "{SCRIPT}"\ncommand = "echo \'{SCRIPT}\'; echo \'{SCRIPT}\' >&2; exit 1"\n'
        f'[[task]]\nname = "next"\nafter = ["{SCRIPT}"]\ncommand = "true"\n')
    job = json.loads(command("submit", "--json", "names.toml").splitlines()[0])["job"]
    for page in ["#/", "#/jobs", f"#/jobs/{job}", f"#/jobs/{job}/tasks", f"#/jobs/{job}/tasks/1"]:
        browser.go(page)
        sees(SCRIPT)
    sees(SCRIPT, ".output")
    browser.go(f"#/jobs/{job}/graph")
    browser.until("the name is in the graph", lambda: SCRIPT[:15] in browser.run(
        "return document.querySelector('.graph svg')?.textContent ?? ''"))
    browser.go("#/workers")
    sees("<b>bold</b>")
    assert browser.run("return document.querySelectorAll('main script, main b > b, td b').length") == 0
    return job


def an_array_in_the_graph_has_the_colour_of_what_its_elements_do():
    (place / "row.toml").write_text(
        '[job]\nname = "row"\n[[task]]\nname = "many"\nforeach = ["1", "2", "3", "4", "5", "6"]\n'
        'command = "while [ ! -e row-{} ]; do sleep 0.02; done; [ {} != 3 ]"\n'
        '[[task]]\nname = "each"\nforeach = ["1", "2", "3"]\nafter = "many"\ncommand = "true {}"\n')
    job = json.loads(command("submit", "--json", "row.toml").splitlines()[0])["job"]
    browser.go(f"#/jobs/{job}/graph")

    def node(name, state, words):
        browser.until(f"{name} is {state}: {words}", lambda: browser.run(
            "return [...document.querySelectorAll('.graph a')].some((node) => "
            "node.querySelector(`.node.state-${arguments[1]}`) && node.ariaLabel.startsWith(`${arguments[0]}: ${arguments[2]}`))",
            name, state, words))

    # How many are said to run is left open: a worker may have been given some ahead.
    node("many", "running", "0 of 6, ")
    node("each", "waiting", "0 of 3")
    for number in (1, 2):
        (place / f"row-{number}").touch()
    node("many", "running", "2 of 6, ")
    (place / "row-3").touch()
    node("many", "failed", "3 of 6, 1 failed, ")
    pieces = browser.run("return [...document.querySelectorAll('.node .piece')].map((one) => one.classList[1])")
    assert [pieces[0], pieces[-1]] == ["state-done", "state-failed"] and "state-running" in pieces, pieces
    for number in (4, 5, 6):
        (place / f"row-{number}").touch()
    node("many", "failed", "6 of 6, 1 failed")
    node("each", "blocked", "0 of 3")


def every_page_shows_something_and_no_trouble(job):
    pages = {"overview": "#/", "jobs": "#/jobs", "job": f"#/jobs/{job}", "tasks": f"#/jobs/{job}/tasks",
             "graph": f"#/jobs/{job}/graph", "task": f"#/jobs/{job}/tasks/2", "workers": "#/workers",
             "worker": "#/workers/1", "doors": "#/doors", "brokers": "#/brokers"}
    for name, page in pages.items():
        browser.go(page)
        browser.until(f"{name} is there", lambda: len(browser.text("main")) > 40)
        browser.until(f"{name} is drawn", lambda: browser.run(
            "return [...document.querySelectorAll('main .panel')].every((one) => one.innerText.length > 5)"))
        assert browser.run("return document.querySelector('.trouble')") is None or name == "task", browser.text()
        has_no_barrier(browser, name)


def pools_are_paused_resumed_and_removed():
    command("pool", "add", "nights", "--kind", "command", "-j", "1", "--list", "true", "--cancel", "true", "--", "false")
    browser.go("#/workers")
    sees("nights")
    browser.click("[data-do=pause-pool]")
    sees("paused")
    browser.click("[data-do=resume-pool]")
    sees("active")
    browser.click("[data-do=remove-pool]")
    browser.click("dialog button[value=yes]")
    browser.until("it is gone", lambda: "nights" not in browser.text("main"))


def workers_are_ejected_pardoned_and_drained():
    browser.go("#/workers/1")
    sees("Its tasks")
    browser.click("[data-do=eject]")
    browser.type("dialog input[name=line]", "smells of smoke")
    browser.click("dialog button[value=yes]")
    # It is sent away, and why is still to be read.
    sees("smells of smoke")
    browser.until("it has gone", lambda: "smells of smoke" in browser.text("main"))
    browser.click("[data-do=pardon]")
    browser.until("it is forgiven", lambda: "smells of smoke" not in browser.text("main"))
    browser.go("#/workers/0")
    sees("Its tasks")
    browser.click("[data-do=drain]")
    # One that has nothing to do goes home at once.
    browser.until("it drains", lambda: browser.text("h1 .badge") in ("draining", "away"))


def the_keyboard_goes_everywhere():
    browser.go("#/")
    sees("Newest jobs")
    browser.press("gw")
    sees("Workers", "h1")
    browser.press("gj")
    sees("Jobs", "h1")
    browser.until("there are rows", lambda: browser.run("return document.querySelectorAll('tbody tr').length > 2"))
    browser.press("jj\ue007")
    browser.until("the second job is open", lambda: re.search(r"#/jobs/\d+$", browser.run("return location.hash")))


def everything_is_reached_without_a_mouse(job):
    # Of a job that is over: nothing is drawn anew meanwhile.
    for page in ["#/", "#/jobs", f"#/jobs/{job}", f"#/jobs/{job}/tasks", f"#/jobs/{job}/graph", f"#/jobs/{job}/tasks/1",
                 "#/workers", "#/doors"]:
        browser.go(page)
        browser.until(f"{page} is there", lambda: len(browser.text("main")) > 40)
        browser.until(f"{page} is drawn", lambda: browser.run(
            "return [...document.querySelectorAll('main .panel')].every((one) => one.innerText.length > 5)"))
        is_gone_through_by_tab(browser, page)


def who_may_only_watch_gets_no_buttons(job):
    browser.open(f"{address}/#token={token('watch')}")
    browser.until("it is signed in", lambda: "Overview" in browser.text("#nav"))
    assert "token=" not in browser.run("return location.href")
    browser.go(f"#/jobs/{job}")
    sees("Timeline")
    assert browser.run("return document.querySelectorAll('main [data-do=cancel], main [data-do=pause]').length") == 0
    browser.go("#/doors")
    sees("Only an admin")
    browser.click("#leave")
    sees("Sign in")
    assert browser.run("return sessionStorage.length") == 0


def nothing_went_wrong_and_nobody_else_was_asked():
    bad = [line["message"] for line in browser.log("browser") if line["level"] in ("SEVERE", "WARNING")]
    # The browser itself remarks on the token that was wrong on purpose.
    bad = [line for line in bad if "/api/v1/me" not in line or "401" not in line]
    assert not bad, bad
    asked = set()
    for entry in browser.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.add(message["params"]["request"]["url"])
    strangers = [url for url in asked if not url.startswith((address, "data:", "chrome", "about:"))]
    assert len(asked) > 20 and not strangers, strangers


browser = Browser()
try:
    nobody_comes_in_without_a_token()
    a_token_signs_in_and_is_kept_for_this_tab_only()
    a_job_progresses_while_somebody_looks()
    hold_release_and_cancel_do_what_they_say()
    what_failed_says_why_and_can_be_retried()
    an_output_is_followed_as_it_comes()
    a_task_that_does_not_run_says_why()
    resources_in_use_have_cards()
    named = names_are_text_everywhere()
    an_array_in_the_graph_has_the_colour_of_what_its_elements_do()
    every_page_shows_something_and_no_trouble(named)
    pools_are_paused_resumed_and_removed()
    workers_are_ejected_pardoned_and_drained()
    the_keyboard_goes_everywhere()
    everything_is_reached_without_a_mouse(named)
    who_may_only_watch_gets_no_buttons(named)
    nothing_went_wrong_and_nobody_else_was_asked()
    print("good")
finally:
    browser.close()
