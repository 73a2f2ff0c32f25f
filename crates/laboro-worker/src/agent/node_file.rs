//! The workers of a task that has several, as a file that programs such as mpirun read: a host a line, the task's own
//! first. Gone with the task.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use laboro_core::Node;

#[derive(Debug)]
pub(super) struct NodeFile(PathBuf);

impl NodeFile {
    pub(super) fn write(path: PathBuf, nodes: &[Node]) -> io::Result<NodeFile> {
        let mut text = Vec::new();
        for node in nodes {
            text.extend_from_slice(node.host.bytes());
            text.push(b'\n');
        }
        fs::write(&path, text)?;
        Ok(NodeFile(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for NodeFile {
    fn drop(&mut self) {
        // What stays goes with the worker's directory.
        let _ = fs::remove_file(&self.0);
    }
}
