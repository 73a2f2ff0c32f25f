//! The node of the load: says and hears what a real one does, and every task is over as soon as it was taken.

use anyhow::{Context, bail};
use bytes::{Buf, BytesMut};
use laboro_clients::fuq::{Foreman, WebsocketStream, open_websocket};
use laboro_core::{Outcome, Time};
use laboro_dialects::fuq2::{PlainSettings, PlainWorker};
use laboro_dialects::websocket::Client;
use laboro_dialects::worker::{News, Order, Orders, TaskEnd, Used, WorkerSide};
use laboro_net::Linger;
use std::future::poll_fn;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;

pub(super) struct Node {
    stream: WebsocketStream,
    linger: Linger,
    side: Client<PlainWorker>,
    input: BytesMut,
    out: Orders,
    started: Instant,
}

impl Node {
    pub(super) async fn connect(foreman: &Foreman, slots: u32) -> anyhow::Result<Node> {
        let stream = open_websocket(foreman).await.context("no websocket")?;
        let settings = PlainSettings::websocket("bench", slots);
        let most = settings.message_max;
        let side = Client::new(PlainWorker::new(settings), most, "w2f_bench");
        let (input, out) = (BytesMut::with_capacity(64 << 10), Orders::default());
        let started = Instant::now();
        let mut node = Node { stream, linger: Linger::default(), side, input, out, started };
        node.side.open(node.now(), &mut node.out);
        node.send().await?;
        // Welcome.
        while node.out.orders.is_empty() {
            node.hear().await?;
        }
        node.out.orders.clear();
        Ok(node)
    }

    /// So many tasks. Gives how long they took, and how long each turn waited for the foreman.
    pub(super) async fn work(
        &mut self,
        tasks: u32,
        latencies: &mut Vec<Duration>,
    ) -> anyhow::Result<Duration> {
        let began = Instant::now();
        let mut done = 0;
        while done < tasks || !self.side.is_settled() {
            let asked = Instant::now();
            self.hear().await?;
            latencies.push(asked.elapsed());
            for order in std::mem::take(&mut self.out.orders) {
                if let Order::Start(task) = order {
                    done += 1;
                    let (outcome, used) = (Outcome::Success, Used::default());
                    let how = TaskEnd { outcome, message: None, used };
                    let news = News::Ended { key: task.key, how };
                    self.side.tell(self.now(), news, &mut self.out);
                }
            }
            self.send().await?;
        }
        Ok(began.elapsed())
    }

    async fn hear(&mut self) -> anyhow::Result<()> {
        self.input.reserve(16 << 10);
        let (stream, input) = (&mut self.stream, &mut self.input);
        if poll_fn(|context| self.linger.poll_read(context, stream, input)).await? == 0 {
            bail!("the foreman closed the connection");
        }
        self.side.receive(self.now(), &mut self.input, &mut self.out);
        match self.out.hang_up.take() {
            Some(why) => bail!("the conversation ended: {why:?}"),
            None => Ok(()),
        }
    }

    async fn send(&mut self) -> anyhow::Result<()> {
        let mut said = self.out.take_bytes();
        while said.has_remaining() {
            self.stream.write_buf(&mut said).await?;
        }
        self.stream.flush().await?;
        self.linger.said();
        Ok(())
    }

    fn now(&self) -> Time {
        Time(1 + self.started.elapsed().as_millis() as u64)
    }
}
