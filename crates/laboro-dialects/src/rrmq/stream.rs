//! Data that is longer than a message: packets with a state, a way of packing and a handle, asked for one by
//! one. Where the bytes come from and what they mean is not known here.

use bytes::{BufMut, Bytes, BytesMut};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Of a packet with its header, as the original cuts them.
const PACKET_BYTES: usize = 8192;
const HANDLE_BYTES: usize = 8;
const HEADER_BYTES: usize = 3 + HANDLE_BYTES;

/// Whether packets follow this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum StreamState {
    More,
    Abort,
    Finished,
}

/// How the payloads of a stream are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pack {
    /// Not at all.
    Raw,
    /// One zlib stream over all packets.
    Zlib,
}

/// One data frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Packet {
    pub state: StreamState,
    pub pack: Pack,
    /// Opaque to everybody but the writer.
    pub handle: [u8; HANDLE_BYTES],
    pub payload: Bytes,
}

/// Why a stream cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum PacketError {
    #[error("packet of {0} bytes has no whole header")]
    Short(usize),
    #[error(
        "packet begins with {0:02x?}, which is not a state, a packing and the length of a handle"
    )]
    Header([u8; 3]),
    #[error("stream has more than {max} bytes")]
    TooLong { max: usize },
    #[error("stream is packed in more than one way")]
    Mixed,
    #[error("stream does not unpack: its zlib data is broken")]
    Broken,
    #[error("stream is over, and its zlib data is not")]
    CutOff,
    #[error("stream continues after its end")]
    AfterEnd,
    #[error("stream was aborted by its writer")]
    Aborted,
}

impl Packet {
    /// Takes a frame apart. Its payload is shared, not copied.
    pub fn parse(frame: &Bytes) -> Result<Packet, PacketError> {
        let Some((header, handle)) = frame.split_first_chunk::<3>() else {
            return Err(PacketError::Short(frame.len()));
        };
        let (state, pack) = match header {
            [b'0', b'R', 8] => (StreamState::More, Pack::Raw),
            [b'1', b'R', 8] => (StreamState::Abort, Pack::Raw),
            [b'2', b'R', 8] => (StreamState::Finished, Pack::Raw),
            [b'0', b'Z', 8] => (StreamState::More, Pack::Zlib),
            [b'1', b'Z', 8] => (StreamState::Abort, Pack::Zlib),
            [b'2', b'Z', 8] => (StreamState::Finished, Pack::Zlib),
            other => return Err(PacketError::Header(*other)),
        };
        let handle = *handle.first_chunk().ok_or(PacketError::Short(frame.len()))?;
        Ok(Packet { state, pack, handle, payload: frame.slice(HEADER_BYTES..) })
    }

    /// As it goes out.
    pub fn to_frame(&self) -> Bytes {
        let mut frame = BytesMut::with_capacity(HEADER_BYTES + self.payload.len());
        frame.put_u8(match self.state {
            StreamState::More => b'0',
            StreamState::Abort => b'1',
            StreamState::Finished => b'2',
        });
        frame.put_u8(match self.pack {
            Pack::Raw => b'R',
            Pack::Zlib => b'Z',
        });
        frame.put_u8(HANDLE_BYTES as u8);
        frame.put_slice(&self.handle);
        frame.put_slice(&self.payload);
        frame.freeze()
    }
}

/// Cuts data into packets. What comes out is as long as it is asked for, so nothing is held but the data.
#[derive(Debug)]
pub struct Writer {
    handle: [u8; HANDLE_BYTES],
    rest: Bytes,
    packing: Packing,
    is_over: bool,
}

#[derive(Debug)]
enum Packing {
    /// Not at all.
    Raw,
    Zlib(Box<Compress>),
}

impl Writer {
    /// For this data. Nothing is packed before it is asked for.
    pub fn new(handle: u64, pack: Pack, data: Bytes) -> Writer {
        let packing = match pack {
            Pack::Raw => Packing::Raw,
            Pack::Zlib => Packing::Zlib(Box::new(Compress::new(Compression::default(), true))),
        };
        Writer { handle: handle.to_le_bytes(), rest: data, packing, is_over: false }
    }

    /// The last packet was made.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The next packet; after the last one, an empty one that says so again.
    pub fn next_packet(&mut self) -> Packet {
        const ROOM: usize = PACKET_BYTES - HEADER_BYTES;
        let (pack, payload) = match &mut self.packing {
            Packing::Raw => {
                let payload = self.rest.split_to(self.rest.len().min(ROOM));
                self.is_over |= self.rest.is_empty();
                (Pack::Raw, payload)
            }
            Packing::Zlib(_) if self.is_over => (Pack::Zlib, Bytes::new()),
            Packing::Zlib(zlib) => {
                let mut payload = Vec::with_capacity(ROOM);
                let before = zlib.total_in();
                let status = zlib.compress_vec(&self.rest, &mut payload, FlushCompress::Finish);
                let taken =
                    usize::try_from(zlib.total_in() - before).expect("no more than there was");
                drop(self.rest.split_to(taken));
                self.is_over =
                    status.expect("packing has no state to fail in") == Status::StreamEnd;
                (Pack::Zlib, payload.into())
            }
        };
        let state = if self.is_over { StreamState::Finished } else { StreamState::More };
        Packet { state, pack, handle: self.handle, payload }
    }

    /// The reader wants no more.
    pub fn abort(&mut self) -> Packet {
        self.is_over = true;
        self.rest = Bytes::new();
        let pack = match self.packing {
            Packing::Raw => Pack::Raw,
            Packing::Zlib(_) => Pack::Zlib,
        };
        Packet { state: StreamState::Abort, pack, handle: self.handle, payload: Bytes::new() }
    }
}

/// Puts packets together again, up to a limit: a small packet may unpack to a lot.
#[derive(Debug)]
pub struct StreamReader {
    bytes: Vec<u8>,
    bytes_max: usize,
    unpacking: Option<Unpacking>,
    is_over: bool,
}

#[derive(Debug)]
enum Unpacking {
    /// Not at all.
    Raw,
    Zlib {
        zlib: Box<Decompress>,
        has_ended: bool,
    },
}

impl StreamReader {
    /// For a stream of at most so many bytes once unpacked.
    pub fn new(bytes_max: usize) -> StreamReader {
        StreamReader { bytes: Vec::new(), bytes_max, unpacking: None, is_over: false }
    }

    /// All of the data once the last packet is there. An error is the end of the stream.
    pub fn read(&mut self, packet: &Packet) -> Result<Option<Bytes>, PacketError> {
        if self.is_over {
            return Err(PacketError::AfterEnd);
        }
        let read = self.append(packet);
        self.is_over = read.is_err() || packet.state == StreamState::Finished;
        let bytes = if self.is_over { std::mem::take(&mut self.bytes) } else { Vec::new() };
        read.map(|()| self.is_over.then(|| bytes.into()))
    }

    fn append(&mut self, packet: &Packet) -> Result<(), PacketError> {
        if packet.state == StreamState::Abort {
            return Err(PacketError::Aborted);
        }
        let unpacking = self.unpacking.get_or_insert_with(|| match packet.pack {
            Pack::Raw => Unpacking::Raw,
            Pack::Zlib => {
                Unpacking::Zlib { zlib: Box::new(Decompress::new(true)), has_ended: false }
            }
        });
        match (unpacking, packet.pack) {
            (Unpacking::Raw, Pack::Raw) => {
                if packet.payload.len() > self.bytes_max - self.bytes.len() {
                    return Err(PacketError::TooLong { max: self.bytes_max });
                }
                self.bytes.extend_from_slice(&packet.payload);
            }
            (Unpacking::Zlib { zlib, has_ended }, Pack::Zlib) => {
                inflate(zlib, has_ended, &packet.payload, &mut self.bytes, self.bytes_max)?;
                if packet.state == StreamState::Finished && !*has_ended {
                    return Err(PacketError::CutOff);
                }
            }
            _ => return Err(PacketError::Mixed),
        }
        Ok(())
    }
}

fn inflate(
    zlib: &mut Decompress,
    has_ended: &mut bool,
    mut input: &[u8],
    bytes: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<(), PacketError> {
    loop {
        if *has_ended {
            return if input.is_empty() { Ok(()) } else { Err(PacketError::AfterEnd) };
        }
        // One more than allowed, to see whether there is more.
        let room = (bytes_max - bytes.len()).saturating_add(1).min(64 << 10);
        if bytes.len() == bytes.capacity() {
            bytes.reserve(room);
        }
        let (read, written) = (zlib.total_in(), zlib.total_out());
        let status = zlib.decompress_vec(input, bytes, FlushDecompress::None);
        let status = status.map_err(|_| PacketError::Broken)?;
        if bytes.len() > bytes_max {
            return Err(PacketError::TooLong { max: bytes_max });
        }
        let taken = usize::try_from(zlib.total_in() - read).map_err(|_| PacketError::Broken)?;
        input = &input[taken..];
        *has_ended = status == Status::StreamEnd;
        if !*has_ended && taken == 0 && zlib.total_out() == written {
            return Ok(());
        }
    }
}
