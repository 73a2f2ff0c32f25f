//! Makes the pages: finds them, has each rendered, and compresses them.
#![allow(clippy::unwrap_used)] // A build that fails says where.

mod render;

use flate2::{Compression, write::GzEncoder};
use render::Site;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap()).join("../..");
    let mut files = BTreeMap::new();
    let mut sources = BTreeMap::new();
    for folder in ["docs", "spec", "spec/journal", "examples"] {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        add_folder(&root, folder, &mut sources, &mut files);
    }
    for example in names(&root.join("examples")) {
        let folder = format!("examples/{example}");
        if root.join(&folder).is_dir() {
            add_folder(&root, &folder, &mut sources, &mut files);
        }
    }
    println!("cargo::rerun-if-changed=build");
    let drawings = files.keys().cloned().collect();
    let site = Site::new(sources, drawings);
    for (name, page) in site.pages() {
        files.insert(name, page.into_bytes());
    }
    files.insert("style.css".into(), include_bytes!("style.css").to_vec());
    write(&files);
}

/// Pages by their path in the repository, and drawings by their name in the manual.
fn add_folder(
    root: &Path,
    folder: &str,
    pages: &mut BTreeMap<String, String>,
    drawings: &mut BTreeMap<String, Vec<u8>>,
) {
    for name in names(&root.join(folder)) {
        let path = root.join(folder).join(&name);
        if name.ends_with(".md") {
            pages.insert(format!("{folder}/{name}"), fs::read_to_string(path).unwrap());
        } else if folder == "docs" && name.ends_with(".svg") {
            drawings.insert(name, fs::read(path).unwrap());
        }
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

/// Each compressed, and a list of them for the library.
fn write(files: &BTreeMap<String, Vec<u8>>) {
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let mut list = String::from("&[\n");
    for (at, (name, bytes)) in files.iter().enumerate() {
        let path = out.join(format!("{at}.gz"));
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(bytes).unwrap();
        fs::write(&path, gzip.finish().unwrap()).unwrap();
        writeln!(list, "    ({name:?}, include_bytes!({path:?})),").unwrap();
    }
    list.push_str("]\n");
    fs::write(out.join("files.rs"), list).unwrap();
}
