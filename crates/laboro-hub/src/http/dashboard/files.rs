//! The files of the dashboard, by name: a list, so that only what is meant to be served is.

macro_rules! files {
    ($($name:literal)*) => {
        &[$(($name, include_bytes!(concat!("../../../dashboard/", $name)))),*]
    };
}

pub(super) const FILES: &[(&str, &[u8])] = files! {
    "index.html"
    "style.css"
    "icon.svg"
    "app.js"
    "api.js"
    "charts.js"
    "dialog.js"
    "dom.js"
    "events.js"
    "format.js"
    "graph-layout.js"
    "keys.js"
    "output.js"
    "parts.js"
    "samples.js"
    "theme.js"
    "timeline.js"
    "workers.js"
    "pages/brokers.js"
    "pages/doors.js"
    "pages/graph.js"
    "pages/job.js"
    "pages/jobs.js"
    "pages/overview.js"
    "pages/pools.js"
    "pages/signin.js"
    "pages/task.js"
    "pages/tasks.js"
    "pages/worker.js"
    "pages/workers.js"
};
