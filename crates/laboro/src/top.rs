//! `laboro top`: what goes on at a hub, live on a full screen. Looks through the HTTP API like every other client,
//! once in a while and after every key that goes somewhere.

mod draw;
mod keyboard;
mod model;
mod news;

#[cfg(test)]
mod tests;

use crate::args::hub::Top;
use crate::exit::{Exit, usage};
use crate::hub_client::{Hub, look};
use crate::output::counted;
use crate::resolve::{Chosen, Which};
use keyboard::Keyboard;
use laboro_plan::parse_duration;
use model::{Model, Wish};
use ratatui::DefaultTerminal;
use std::io::IsTerminal;
use std::time::Duration;

pub(crate) fn run(args: &Top) -> anyhow::Result<Exit> {
    let every = parse_duration(&args.every).map_err(usage)?.max(SOONEST);
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(usage("`laboro top` needs a terminal; `laboro status` prints the same once"));
    }
    look(&args.place, async |hub| {
        // A hub that is not there is told of in plain words, not on a screen.
        let _: laboro_api::Me = hub.get("me").await?;
        let mut screen = Screen::open()?;
        watch(hub, &mut screen, every).await
    })
}

/// A person sees no more than this, and a hub has better things to do.
const SOONEST: Duration = Duration::from_millis(100);

/// The terminal as it was comes back, however this ends.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> std::io::Result<Screen> {
        ratatui::try_init().map(Screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

async fn watch(hub: &Hub, screen: &mut Screen, every: Duration) -> anyhow::Result<Exit> {
    let mut keys = Keyboard::listen()?;
    let mut model = Model::new(hub.address());
    loop {
        screen.0.draw(|frame| draw::screen(frame, &mut model))?;
        let wish = tokio::select! {
            key = keys.next() => match key {
                Some(key) => model.press(key),
                None => Wish::Leave,
            },
            news = news::look(hub, model.view.clone(), model.due(every)) => {
                model.hear(news);
                Wish::Nothing
            }
        };
        match wish {
            Wish::Nothing => {}
            Wish::Leave => return Ok(Exit::Done),
            Wish::Change(verb, job, task) => {
                let which = match task {
                    None => Which::Job,
                    Some(task) => Which::Ranges(vec![(task, task)]),
                };
                let said = match hub.change(&Chosen { job, which }, verb).await {
                    Ok(changed) => format!("{}: {}", verb.word(), counted(changed.tasks, "task")),
                    Err(error) => format!("{error:#}"),
                };
                model.say(said);
            }
            Wish::Tell(verb, worker) => {
                let said = match hub.tell_worker(worker, &verb).await {
                    Ok(()) => format!("worker {worker} {}", verb.told()),
                    Err(error) => format!("{error:#}"),
                };
                model.say(said);
            }
        }
    }
}
