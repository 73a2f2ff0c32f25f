//! Looking at a hub in other ways than lists: a page about a job, a full screen, a link for a browser.

use super::place::Place;
use crate::rig::until;

#[test]
fn a_report_is_one_page_that_needs_nothing_else() {
    let place = Place::new();
    let job = place.out(&[
        "submit",
        "-q",
        "--name",
        "<script>alert(1)</script>",
        "--array",
        "1-8",
        "--",
        "x",
    ]);
    place.worker("w", 8).work_off(&[3]);
    place.prints(1, 3, "", "what went wrong & why\n");
    let page = || {
        place.out(&["report", &job, "-o", "page.html"]);
        place.rig.read("page.html")
    };
    until("the hub has noted all of it", || page().contains("90% within"));
    let page = page();
    assert_eq!(page.matches("<svg").count(), 3, "{page}");
    for words in ["&lt;script&gt;alert(1)", "exit code 3", "what went wrong &amp; why", ">w</td>"] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    for bad in ["<script", "http://", "https://", "src=", "href="] {
        assert!(!page.contains(bad), "{bad} is in {page}");
    }
    place.run(&["report", "99"]).expect(4).says("there is no job 99");
}

#[test]
fn a_report_goes_to_standard_output_if_no_file_is_named() {
    let place = Place::new();
    place.rig.write("two.toml", "[[task]]\nname = \"a\"\ncommand = \"x\"\n");
    let job = place.out(&["submit", "-q", "two.toml"]);
    place.worker("w", 1).work_off(&[1]);
    let page = place.out(&["report", &job]);
    assert!(page.contains("exit code 3") && page.ends_with("</html>"), "{page}");
}

#[test]
fn a_link_to_the_dashboard_has_the_token_where_browsers_keep_it() {
    let place = Place::new();
    let link = place.out(&["dashboard"]);
    assert!(link.starts_with("https://127.0.0.1:") && link.contains("/#token=laboro_"), "{link}");
}
