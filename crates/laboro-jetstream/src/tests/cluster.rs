//! Real NATS servers on this machine, for tests here and of the whole program. The program is the one that the
//! tests' Python packages bring along.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub struct Cluster {
    dir: TempDir,
    nodes: Vec<Node>,
}

struct Node {
    host: String,
    client: u16,
    monitor: u16,
    child: Option<Child>,
}

/// What servers stand on.
pub struct Ground<'a> {
    pub host: &'a str,
    /// Words in the block of JetStream, and outside of it.
    pub jetstream: &'a str,
    pub outside: &'a str,
    /// Done to their directory before they start; the first one's store is `n0`.
    pub prepare: &'a dyn Fn(&Path),
}

impl Default for Ground<'_> {
    fn default() -> Self {
        let jetstream = "sync_interval: always";
        Ground { host: "127.0.0.1", jetstream, outside: "", prepare: &|_| {} }
    }
}

impl Cluster {
    /// So many servers that write to disk before they acknowledge, and have found each other.
    pub fn start(nodes: usize) -> Cluster {
        Cluster::start_with(nodes, "sync_interval: always", "")
    }

    /// With other words in their settings: in the block of JetStream, and outside of it.
    pub fn start_with(nodes: usize, jetstream: &str, outside: &str) -> Cluster {
        Cluster::build(nodes, &Ground { jetstream, outside, ..Ground::default() })
    }

    pub fn build(nodes: usize, ground: &Ground<'_>) -> Cluster {
        let Ground { host, jetstream, outside, .. } = *ground;
        let dir = TempDir::with_prefix("laboro-nats-").unwrap();
        (ground.prepare)(dir.path());
        let ports = free_ports(nodes * 3);
        let routes: Vec<String> =
            ports[2 * nodes..].iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let nodes = (0..nodes).map(|n| {
            let (client, monitor, route) = (ports[n], ports[nodes + n], ports[2 * nodes + n]);
            let cluster = format!(
                "cluster {{ name: laboro, listen: \"127.0.0.1:{route}\", routes: [{}] }}",
                routes.join(", ")
            );
            let text = format!(
                "server_name: n{n}\nlisten: \"{host}:{client}\"\nhttp: \"{host}:{monitor}\"\n\
                 jetstream {{ store_dir: \"{}/n{n}\", {jetstream} }}\n{}\n{outside}\n",
                dir.path().display(),
                if nodes > 1 { &cluster } else { "" }
            );
            std::fs::write(dir.path().join(format!("n{n}.conf")), text).unwrap();
            Node { host: host.to_owned(), client, monitor, child: None }
        });
        let nodes = nodes.collect();
        let mut cluster = Cluster { dir, nodes };
        (0..cluster.nodes.len()).for_each(|n| cluster.revive(n));
        cluster.wait_until_healthy();
        cluster
    }

    /// As it is given to `--journal`.
    pub fn address(&self) -> String {
        let each = self.nodes.iter().map(|node| format!("{}:{}", node.host, node.client));
        format!("nats://{}", each.collect::<Vec<_>>().join(","))
    }

    pub fn monitors(&self) -> Vec<String> {
        let each = self.nodes.iter();
        each.map(|node| format!("http://{}:{}", node.host, node.monitor)).collect()
    }

    /// As a power cut would, except for what the system had not written yet.
    pub fn kill(&mut self, node: usize) {
        if let Some(mut child) = self.nodes[node].child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub fn revive(&mut self, node: usize) {
        let log = std::fs::File::create(self.dir.path().join(format!("n{node}.log"))).unwrap();
        let child = Command::new(program())
            .arg("-c")
            .arg(self.dir.path().join(format!("n{node}.conf")))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.nodes[node].child = Some(child.expect("nats-server is installed by ./check"));
    }

    /// Waits until those that run are one cluster that takes requests.
    pub fn wait_until_healthy(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        let runs: Vec<&Node> = self.nodes.iter().filter(|node| node.child.is_some()).collect();
        for node in &runs {
            while !node.is_healthy() {
                assert!(Instant::now() < end, "{}", self.words());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// The server that leads this stream.
    pub fn leader(&self, stream: &str) -> Option<usize> {
        let runs = self.nodes.iter().filter(|node| node.child.is_some());
        runs.filter_map(|node| node.ask("/jsz?streams=1")).find_map(|text| {
            let answer: serde_json::Value = serde_json::from_str(&text).ok()?;
            let accounts = answer["account_details"].as_array()?;
            let streams = accounts.iter().filter_map(|account| account["stream_detail"].as_array());
            let found = streams.flatten().find(|found| found["name"] == stream)?;
            found["cluster"]["leader"].as_str()?.strip_prefix('n')?.parse().ok()
        })
    }

    fn words(&self) -> String {
        let file = |n| std::fs::read_to_string(self.dir.path().join(format!("n{n}.log")));
        (0..self.nodes.len()).filter_map(|n| file(n).ok()).collect()
    }
}

impl Node {
    fn is_healthy(&self) -> bool {
        self.ask("/healthz?js-enabled-only=false").is_some_and(|text| text.contains("\"ok\""))
    }

    fn ask(&self, path: &str) -> Option<String> {
        use std::io::{Read, Write};
        let mut stream = TcpStream::connect((self.host.as_str(), self.monitor)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text.split_once("\r\n\r\n")?.1.to_owned())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..self.nodes.len()).for_each(|node| self.kill(node));
    }
}

fn program() -> PathBuf {
    let python = std::env::var_os("LABORO_PYTHON").map(PathBuf::from);
    let beside = python.as_deref().and_then(Path::parent).map(|dir| dir.join("nats-server"));
    beside.filter(|path| path.exists()).unwrap_or_else(|| "nats-server".into())
}

/// Free now, and not given out again soon.
pub fn free_ports(count: usize) -> Vec<u16> {
    let bound: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    bound.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}
