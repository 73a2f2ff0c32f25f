//! A link that can be cut and healed.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    is_cut: bool,
    streams: Vec<TcpStream>,
}

impl Proxy {
    pub fn to(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let mut state = shared.lock().unwrap();
                let Ok(far) = TcpStream::connect(target) else { continue };
                if !state.is_cut {
                    carry(near.try_clone().unwrap(), far.try_clone().unwrap());
                    carry(far.try_clone().unwrap(), near.try_clone().unwrap());
                    state.streams.extend([near, far]);
                }
            }
        });
        Proxy { address, state }
    }

    pub fn cut(&self) {
        let mut state = self.state.lock().unwrap();
        state.is_cut = true;
        for stream in state.streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn heal(&self) {
        self.state.lock().unwrap().is_cut = false;
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65536];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
