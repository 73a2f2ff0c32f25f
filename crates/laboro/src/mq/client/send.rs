//! `laboro mq client send`: a command of the user's own, for workers that know it.

use super::super::args::ClientArgs;
use super::super::target::open;
use crate::exit::{Exit, usage};
use crate::output::{data, print, say};
use bytes::Bytes;
use laboro_clients::mq::{BrokerLink, Target};
use laboro_core::Name;
use laboro_dialects::rrmq::{Command, Envelope, Parts};
use laboro_net::Clock;
use serde_json::json;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

pub(super) async fn run(
    args: &ClientArgs,
    target: &Target,
    frames: &[OsString],
    untracked: bool,
) -> anyhow::Result<Exit> {
    if frames.iter().any(|frame| frame.is_empty()) {
        return Err(usage("an empty frame means the end of a message here; leave it out"));
    }
    let frames = frames.iter().map(|frame| Bytes::copy_from_slice(frame.as_bytes()));
    let id = Bytes::copy_from_slice(&1u64.to_le_bytes());
    let command = if untracked { Command::Exec } else { Command::TrackExec };
    let mut link = open(target, Clock::start()).await?;
    link.say(&Envelope::new(command, id.clone(), frames).to_message());
    if untracked {
        link.flush().await?;
        return Ok(Exit::Done);
    }
    match tokio::time::timeout(args.timeout, answer(&mut link, &id)).await {
        Ok(answer) => {
            show(args, &answer?)?;
            Ok(Exit::Done)
        }
        Err(_) => {
            say(format_args!("no answer in {:?}", args.timeout));
            Ok(Exit::SomeFailed)
        }
    }
}

async fn answer(link: &mut BrokerLink, id: &Bytes) -> anyhow::Result<Parts> {
    let mut messages = Vec::new();
    loop {
        link.hear(&mut messages).await?;
        for message in messages.drain(..) {
            let said = Envelope::parse(&message)?;
            match said.command {
                Command::Ping => link.say(&said.answer(Command::Pong, []).to_message()),
                Command::Response if said.id == *id => return Ok(said.args),
                _ => {}
            }
        }
    }
}

fn show(args: &ClientArgs, frames: &[Bytes]) -> anyhow::Result<()> {
    if args.words.json {
        let frames: Vec<String> = frames.iter().map(|f| Name::new(f).to_string()).collect();
        return Ok(print(json!({ "answer": frames }))?);
    }
    let mut out = data();
    for frame in frames {
        out.write_all(frame)?;
        if !frame.ends_with(b"\n") {
            out.write_all(b"\n")?;
        }
    }
    Ok(out.flush()?)
}
