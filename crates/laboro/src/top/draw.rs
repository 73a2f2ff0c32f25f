//! The screen: what stands where, at 80 columns and 24 lines or more. Everything that comes from elsewhere goes
//! through `safe` first.

use super::model::{Model, View};
use crate::output::{bytes, counted, safe};
use crate::view::{ago, between, called, now_ms, time_of_job};
use laboro_api::{Counts, Fleet, Job, JobState, Standing, Task, TaskState, Worker};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, Wrap};

pub(super) fn screen(frame: &mut Frame<'_>, model: &mut Model) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(3), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(title(model), head);
    match model.view.clone() {
        View::Overview => overview(frame, body, model),
        View::Jobs => {
            let jobs = model.jobs.clone();
            job_table(frame, body, model, &jobs, " jobs, newest first ");
        }
        View::Workers => workers(frame, body, model),
        View::Job(_, state) => job(frame, body, model, state),
        View::Task(..) => task(frame, body, model),
    }
    frame.render_widget(bottom(model), foot);
}

fn title(model: &Model) -> Line<'_> {
    let tab = |name: &'static str, is_here: bool| match is_here {
        true => Span::styled(name, Style::new().add_modifier(Modifier::REVERSED)),
        false => Span::raw(name),
    };
    let is_job = matches!(model.view, View::Jobs | View::Job(..) | View::Task(..));
    Line::from(vec![
        " laboro ".bold(),
        tab(" 1 overview ", model.view == View::Overview),
        tab(" 2 jobs ", is_job),
        tab(" 3 workers ", model.view == View::Workers),
        Span::raw("  "),
        Span::from(safe(&model.hub)).dim(),
    ])
}

fn bottom(model: &Model) -> Line<'_> {
    if let Some((_, words)) = &model.asks {
        return Line::from(format!(" {words} y: yes, other keys: no")).bold().red();
    }
    if let Some((words, _)) = &model.said {
        return Line::from(format!(" {}", safe(words.lines().next().unwrap_or("")))).yellow();
    }
    let keys = match model.view {
        View::Overview | View::Jobs => {
            " q quit  ↑↓ move  Enter open  h hold  r release  t retry  c cancel  Tab next"
        }
        View::Workers => " q quit  ↑↓ move  d drain  s stop  e eject  p pardon  l lift  Tab next",
        View::Job(..) => {
            " Esc back  ↑↓ move  Enter open  f filter  h hold  r release  t retry  c cancel"
        }
        View::Task(..) => " Esc back  ↑↓ scroll  h hold  r release  t retry  c cancel  q quit",
    };
    Line::from(keys).dim()
}

fn overview(frame: &mut Frame<'_>, area: Rect, model: &mut Model) {
    let warnings = model.overview.seen.warnings.len().min(3) as u16;
    let [facts, charts, warned, jobs] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(6),
        Constraint::Length(warnings),
        Constraint::Min(4),
    ])
    .areas(area);
    let sum = |of: fn(&Counts) -> u64| -> u64 {
        model.overview.groups.groups.iter().map(|group| of(&group.counts)).sum()
    };
    let fleet = &model.overview.seen.workers;
    let first = Line::from(vec![
        count("running", sum(|c| c.running), Color::Blue),
        count("ready", sum(|c| c.ready + c.delayed), Color::Cyan),
        count("waiting", sum(|c| c.waiting + c.blocked + c.held), Color::Gray),
        count("done", sum(|c| c.done), Color::Green),
        count("failed", sum(|c| c.failed), Color::Red),
    ]);
    let second = Line::from(format!(
        " {}, {} of {} slots in use{}{}{}{}{}{}",
        counted(fleet.connected, "worker"),
        fleet.slots_used,
        fleet.slots,
        in_use(fleet),
        some(", reserved: ", fleet.reserved),
        some(", dispatched ahead: ", fleet.slots_ahead),
        some(", on hold: ", fleet.on_hold),
        some(", ejected: ", fleet.ejected),
        some(", disconnected: ", fleet.away),
    ));
    frame.render_widget(Paragraph::new(vec![first, second]), facts);
    let [speed, queue] =
        Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(charts);
    let samples = &model.overview.past.seconds;
    let wide = usize::from(speed.width.saturating_sub(2));
    let lately = &samples[samples.len().saturating_sub(wide)..];
    let ended: Vec<u64> = lately.iter().map(|sample| sample.done + sample.failed).collect();
    let queued: Vec<u64> = lately.iter().map(|sample| sample.queued + sample.running).collect();
    let now = |values: &[u64]| values.last().copied().unwrap_or(0);
    let titles =
        (format!(" ended: {}/s ", now(&ended)), format!(" ready and running: {} ", now(&queued)));
    let spark = |title: String, color| {
        Sparkline::default().block(Block::bordered().title(title)).style(Style::new().fg(color))
    };
    frame.render_widget(spark(titles.0, Color::Green).data(&ended), speed);
    frame.render_widget(spark(titles.1, Color::Blue).data(&queued), queue);
    let words = model.overview.seen.warnings.iter().take(3);
    let words: Vec<Line<'_>> =
        words.map(|warning| Line::from(format!(" ! {}", safe(&warning.words))).yellow()).collect();
    frame.render_widget(Paragraph::new(words), warned);
    let newest = model.overview.jobs.clone();
    job_table(frame, jobs, model, &newest, " newest jobs ");
}

fn some(words: &str, count: u64) -> String {
    if count == 0 { String::new() } else { format!("{words}{count}") }
}

fn count(word: &'static str, count: u64, color: Color) -> Span<'static> {
    Span::styled(format!(" {count} {word} "), Style::new().fg(color))
}

fn job_table(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &mut Model,
    jobs: &[Job],
    title: &'static str,
) {
    let now = now_ms();
    let is_narrow = is_narrow(area);
    let bar_wide = if is_narrow { 4 } else { 16 };
    let rows = jobs.iter().map(|job| {
        let took = time_of_job(job, now);
        Row::new([
            Cell::from(job.job.to_string()),
            Cell::from(safe(&job.name.to_string())),
            Cell::from(job.state.word()).fg(color_of_job(job.state)),
            Cell::from(bar(&job.counts, bar_wide.into())),
            Cell::from(format!("{}/{}", job.counts.finished(), job.tasks)),
            Cell::from(job.counts.failed.to_string()),
            Cell::from(took),
        ])
    });
    let widths = [
        Constraint::Length(if is_narrow { 5 } else { 6 }),
        Constraint::Min(10),
        Constraint::Length(9),
        Constraint::Length(bar_wide),
        Constraint::Length(if is_narrow { 9 } else { 15 }),
        Constraint::Length(if is_narrow { 6 } else { 7 }),
        Constraint::Length(8),
    ];
    let heads = ["job", "name", "state", "", "finished", "failed", "took"];
    table(frame, area, model, title.to_owned(), Table::new(rows, widths), &heads);
}

/// Room for what matters, not for everything.
fn is_narrow(area: Rect) -> bool {
    area.width < 80
}

fn table(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &mut Model,
    title: String,
    table: Table<'_>,
    heads: &[&'static str],
) {
    let heads = Row::new(heads.iter().map(|head| Cell::from(*head))).dim();
    let table = table
        .header(heads)
        .block(Block::bordered().title(title))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, &mut model.rows);
}

/// Done, failed, running and the rest, side by side.
fn bar(counts: &Counts, wide: u64) -> Line<'static> {
    let total = counts.total().max(1);
    let mut left = wide;
    let mut part = |count: u64, color: Color| {
        let share = (count * wide).div_ceil(total).min(left);
        let share = if count == 0 { 0 } else { share };
        left -= share;
        Span::styled("█".repeat(share as usize), Style::new().fg(color))
    };
    let parts = [
        part(counts.failed, Color::Red),
        part(counts.running, Color::Blue),
        part(counts.done, Color::Green),
    ];
    let [failed, running, done] = parts;
    let rest = Span::styled("░".repeat(left as usize), Style::new().fg(Color::DarkGray));
    Line::from(vec![done, failed, running, rest])
}

fn job(frame: &mut Frame<'_>, area: Rect, model: &mut Model, state: Option<TaskState>) {
    let Some(news) = model.job.take() else {
        frame.render_widget(Paragraph::new(" looking…"), area);
        return;
    };
    let [facts, list] = Layout::vertical([Constraint::Length(4), Constraint::Min(3)]).areas(area);
    let (job, past) = (&news.job, &news.past);
    let is_narrow = is_narrow(area);
    let bar_wide = if is_narrow { 12 } else { 40 };
    let name = safe(&job.name.to_string());
    let mut lines = vec![
        Line::from(vec![
            Span::from(format!(" {} ", job.job)).dim(),
            Span::from(name).bold(),
            Span::styled(format!(" {} ", job.state.word()), color_of_job(job.state)),
            Span::from(format!(" in {}", safe(&job.group.to_string()))).dim(),
        ]),
        Line::from(
            [vec![Span::raw(" ")], bar(&job.counts, bar_wide).spans, counts_words(&job.counts)]
                .concat(),
        ),
    ];
    if past.durations.count > 0 {
        let ms = |ms| between(0, ms);
        let durations = &past.durations;
        let words = format!(
            " half within {}, 90% within {}, longest {}{}",
            ms(durations.p50_ms),
            ms(durations.p90_ms),
            ms(durations.max_ms),
            time_left(job, &past.rate)
        );
        lines.push(Line::from(words));
    }
    frame.render_widget(Paragraph::new(lines), facts);
    let now = now_ms();
    let rows = news.tasks.iter().map(|task| task_row(task, now));
    let widths = [
        Constraint::Length(if is_narrow { 6 } else { 9 }),
        Constraint::Min(8),
        Constraint::Length(9),
        Constraint::Length(if is_narrow { 7 } else { 9 }),
        Constraint::Length(8),
        Constraint::Length(if is_narrow { 12 } else { 16 }),
    ];
    let which = state.map_or("all", TaskState::word);
    let title = format!(" tasks: {which} ");
    let heads = ["task", "name", "state", "worker", "took", "how"];
    table(frame, list, model, title, Table::new(rows, widths), &heads);
    model.job = Some(news);
}

fn counts_words(counts: &Counts) -> Vec<Span<'static>> {
    vec![
        Span::from(format!(" {} done", counts.done)).green(),
        Span::from(format!(" {} running", counts.running)).blue(),
        Span::from(format!(" {} failed", counts.failed)).red(),
        Span::from(format!(" {} to go", counts.unfinished())),
    ]
}

fn time_left(job: &Job, rate: &laboro_api::Rate) -> String {
    let steps = rate.done.len().min(10);
    let ended: u64 = (rate.done.iter().rev().zip(rate.failed.iter().rev()).take(steps))
        .map(|(&done, &failed)| u64::from(done) + u64::from(failed))
        .sum();
    let left = job.counts.unfinished();
    if job.ended_ms.is_some() || ended == 0 || left == 0 {
        return String::new();
    }
    let ms = left.saturating_mul(rate.width_ms.saturating_mul(steps as u64)) / ended;
    format!(", about {} left", between(0, ms))
}

fn task_row(task: &Task, now: u64) -> Row<'static> {
    let last = task.attempts.last();
    let took = last.map(|one| between(one.started_ms, one.ended_ms.unwrap_or(now)));
    let how = last.and_then(|one| one.outcome).map(|outcome| outcome.to_string());
    Row::new([
        Cell::from(task.task.to_string()),
        Cell::from(safe(&called(task))),
        Cell::from(task.state.word()).fg(color_of_task(task.state)),
        Cell::from(last.map_or(String::new(), |one| format!("#{}", one.worker))),
        Cell::from(took.unwrap_or_default()),
        Cell::from(how.unwrap_or_default()),
    ])
}

fn task(frame: &mut Frame<'_>, area: Rect, model: &mut Model) {
    let Some(news) = &model.task else {
        frame.render_widget(Paragraph::new(" looking…"), area);
        return;
    };
    let task = &news.task;
    let last = task.attempts.last();
    let mut lines = vec![Line::from(vec![
        Span::from(format!(" {}/{} ", task.job, task.task)).dim(),
        Span::from(safe(&called(task))).bold(),
        Span::styled(format!(" {} ", task.state.word()), color_of_task(task.state)),
        Span::from(format!("{} failed, {} lost", task.failed_attempts, task.lost_attempts)).dim(),
    ])];
    if let Some(attempt) = last {
        let end = attempt.ended_ms.unwrap_or_else(now_ms);
        let how = attempt.outcome.map_or_else(|| "runs".to_owned(), |outcome| outcome.to_string());
        let took = between(attempt.started_ms, end);
        lines.push(Line::from(format!(" at worker {}, {took}: {how}", attempt.worker)));
    }
    if let Some(why) = &news.explanation {
        lines.push(Line::from(format!(" {}", safe(why))).yellow());
    }
    if let Some(message) = &task.message {
        lines.push(Line::from(format!(" {}", safe(message))).red());
    }
    let [facts, output] =
        Layout::vertical([Constraint::Length(lines.len() as u16), Constraint::Min(3)]).areas(area);
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), facts);
    let room = output.height.saturating_sub(2);
    let printed: Vec<Line<'_>> = news.output.lines().map(|line| Line::from(safe(line))).collect();
    let most = u16::try_from(printed.len()).unwrap_or(u16::MAX).saturating_sub(room);
    model.scrolled = model.scrolled.min(most);
    let shown = Paragraph::new(printed)
        .block(Block::bordered().title(" output "))
        .scroll((most - model.scrolled, 0));
    frame.render_widget(shown, output);
}

fn workers(frame: &mut Frame<'_>, area: Rect, model: &mut Model) {
    let now = now_ms();
    let rows: Vec<Row<'_>> = model.workers.iter().map(|worker| worker_row(worker, now)).collect();
    let widths = [
        Constraint::Length(4),
        Constraint::Min(10),
        Constraint::Length(8),
        Constraint::Length(7),
        Constraint::Length(12),
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Length(6),
        Constraint::Length(5),
    ];
    let heads = ["", "name", "group", "speaks", "conduct", "slots", "done", "failed", "seen"];
    table(frame, area, model, " workers ".to_owned(), Table::new(rows, widths), &heads);
}

/// Memory and each kind of resource, where there is any.
fn in_use(fleet: &Fleet) -> String {
    let memory = (fleet.memory_used_bytes > 0).then(|| {
        format!("memory {}/{}", bytes(fleet.memory_used_bytes), bytes(fleet.memory_bytes))
    });
    let shown = memory.into_iter().chain(fleet.resources_in_use());
    shown.map(|shown| format!(", {}", safe(&shown))).collect()
}

fn worker_row(worker: &Worker, now: u64) -> Row<'static> {
    let (conduct, color) = match (worker.connected, worker.conduct.standing) {
        // It is gone because of that.
        (_, Standing::Ejected) => ("ejected", Color::Red),
        (false, _) => ("away", Color::DarkGray),
        (true, Standing::OnHold) => ("on hold", Color::Yellow),
        (true, Standing::OnProbation) => ("on probation", Color::Yellow),
        (true, Standing::Good | Standing::Unknown) if worker.draining => ("draining", Color::Cyan),
        (true, Standing::Good | Standing::Unknown) => ("good", Color::Green),
    };
    let seen = if worker.connected { "now".to_owned() } else { ago(worker.seen_ms, now) };
    Row::new([
        Cell::from(worker.worker.to_string()),
        Cell::from(safe(&worker.name.to_string())),
        Cell::from(safe(&worker.group.to_string())),
        Cell::from(safe(&worker.dialect.to_string())),
        Cell::from(conduct).fg(color),
        Cell::from(format!("{}/{}", worker.slots_used, worker.slots)),
        Cell::from(worker.succeeded.to_string()),
        Cell::from(worker.failed.to_string()),
        Cell::from(seen),
    ])
}

fn color_of_task(state: TaskState) -> Color {
    match state {
        TaskState::Done => Color::Green,
        TaskState::Failed | TaskState::Blocked => Color::Red,
        TaskState::Running => Color::Blue,
        TaskState::Ready => Color::Cyan,
        TaskState::Delayed | TaskState::Held => Color::Yellow,
        TaskState::Waiting | TaskState::Cancelled | TaskState::Unknown => Color::DarkGray,
    }
}

fn color_of_job(state: JobState) -> Color {
    match state {
        JobState::Done => Color::Green,
        JobState::Failed | JobState::Stopped => Color::Red,
        JobState::Running => Color::Blue,
        JobState::Held => Color::Yellow,
        JobState::Waiting | JobState::Cancelled | JobState::Unknown => Color::DarkGray,
    }
}
