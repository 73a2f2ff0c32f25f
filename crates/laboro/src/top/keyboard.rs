//! Keys, read by a thread of their own, since a terminal is read by waiting. The thread looks now and then whether it
//! is still wanted, and is waited for.

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;

/// What a person wants, as far as a key can say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Letter(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Open,
    Back,
    Next,
    /// The screen has another size.
    Resized,
    Leave,
}

pub(super) struct Keyboard {
    keys: mpsc::Receiver<Key>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Typed faster than drawn.
const WAITING_MAX: usize = 64;
const LOOK: Duration = Duration::from_millis(100);

impl Keyboard {
    pub(super) fn listen() -> std::io::Result<Keyboard> {
        let (to, keys) = mpsc::channel(WAITING_MAX);
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name("laboro-keys".into()).spawn(move || {
            while !told.load(Ordering::Relaxed) {
                let event = match event::poll(LOOK) {
                    Ok(false) => continue,
                    Ok(true) => event::read(),
                    Err(error) => Err(error),
                };
                // A terminal that is gone says nothing any more.
                let Ok(event) = event else { break };
                if let Some(key) = meant(&event)
                    && to.blocking_send(key).is_err()
                {
                    break;
                }
            }
        })?;
        Ok(Keyboard { keys, is_over, thread: Some(thread) })
    }

    /// `None`: there is no terminal any more.
    pub(super) async fn next(&mut self) -> Option<Key> {
        self.keys.recv().await
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.keys.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn meant(event: &Event) -> Option<Key> {
    let key = match event {
        Event::Resize(..) => return Some(Key::Resized),
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        _ => return None,
    };
    Some(match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Leave,
        KeyCode::Char('q') => Key::Leave,
        KeyCode::Char('k') | KeyCode::Up => Key::Up,
        KeyCode::Char('j') | KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Enter | KeyCode::Right => Key::Open,
        KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => Key::Back,
        KeyCode::Tab => Key::Next,
        KeyCode::Char(letter) => Key::Letter(letter),
        _ => return None,
    })
}
