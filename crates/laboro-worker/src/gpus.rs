//! Which GPUs a machine has, by the files of their drivers: nothing is asked, nothing is loaded. What variables such as
//! `CUDA_VISIBLE_DEVICES` allow of them is not looked at here.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Who makes them. Programs of each read a variable of their own to know which GPUs are theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GpuVendor {
    Nvidia,
    Amd,
    Intel,
}

impl GpuVendor {
    pub const ALL: [GpuVendor; 3] = [GpuVendor::Nvidia, GpuVendor::Amd, GpuVendor::Intel];

    pub fn variable(self) -> &'static str {
        match self {
            GpuVendor::Nvidia => "CUDA_VISIBLE_DEVICES",
            GpuVendor::Amd => "ROCR_VISIBLE_DEVICES",
            GpuVendor::Intel => "ZE_AFFINITY_MASK",
        }
    }
}

/// Those that tasks can be given: of one vendor, since they are told apart by one variable. In the order in which that
/// vendor numbers them, with what they are called where the driver tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpus {
    pub vendor: GpuVendor,
    pub models: Vec<Option<String>>,
}

impl Gpus {
    /// `root` is where the file systems of the machine begin. Of several vendors the first that has any.
    pub fn find(root: &Path) -> Option<Gpus> {
        GpuVendor::ALL.into_iter().find_map(|vendor| {
            let models = match vendor {
                GpuVendor::Nvidia => nvidia(root),
                GpuVendor::Amd => amd(root),
                GpuVendor::Intel => intel(root),
            };
            (!models.is_empty()).then_some(Gpus { vendor, models })
        })
    }

    /// Those of this machine, looked for once.
    pub fn here() -> Option<&'static Gpus> {
        static HERE: OnceLock<Option<Gpus>> = OnceLock::new();
        HERE.get_or_init(|| Gpus::find(&machine_root())).as_ref()
    }
}

/// Tests have a machine of their own.
pub(crate) fn machine_root() -> PathBuf {
    std::env::var_os("LABORO_MACHINE_ROOT").map_or_else(|| PathBuf::from("/"), PathBuf::from)
}

/// One directory for each, by its address on the bus: in this order nvidia-smi counts them.
fn nvidia(root: &Path) -> Vec<Option<String>> {
    let cards = entries(&root.join("proc/driver/nvidia/gpus"));
    let model = |card: &PathBuf| {
        let text = fs::read_to_string(card.join("information")).ok()?;
        let name = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
        Some(name.trim().to_owned())
    };
    cards.iter().map(model).collect()
}

/// The nodes of the compute driver that are not processors, by their numbers.
fn amd(root: &Path) -> Vec<Option<String>> {
    let nodes = entries(&root.join("sys/class/kfd/kfd/topology/nodes"));
    let number = |node: &PathBuf| node.file_name()?.to_str()?.parse::<u32>().ok();
    let mut nodes: Vec<(u32, PathBuf)> =
        nodes.into_iter().filter_map(|node| Some((number(&node)?, node))).collect();
    nodes.sort();
    let is_gpu = |node: &Path| {
        let id = fs::read_to_string(node.join("gpu_id")).unwrap_or_default();
        !matches!(id.trim(), "" | "0")
    };
    let name = |node: &Path| {
        let name = fs::read_to_string(node.join("name")).ok()?;
        Some(name.trim().to_owned()).filter(|name| !name.is_empty())
    };
    nodes.iter().filter(|(_, node)| is_gpu(node)).map(|(_, node)| name(node)).collect()
}

/// Cards with a driver that computes. What is part of a processor is at one address in every machine, and is left out.
fn intel(root: &Path) -> Vec<Option<String>> {
    let cards = entries(&root.join("sys/class/drm"));
    let is_render = |card: &&PathBuf| {
        card.file_name().is_some_and(|name| name.to_string_lossy().starts_with("renderD"))
    };
    let read = |card: &Path, name: &str| {
        fs::read_to_string(card.join("device").join(name)).unwrap_or_default()
    };
    let is_card = |card: &&PathBuf| {
        let facts = read(card, "uevent");
        let fact = |name: &str| facts.lines().find_map(|line| line.strip_prefix(name));
        read(card, "vendor").trim() == "0x8086"
            && matches!(fact("DRIVER="), Some("i915" | "xe"))
            && fact("PCI_SLOT_NAME=").is_some_and(|slot| !slot.ends_with(":00:02.0"))
    };
    cards.iter().filter(is_render).filter(is_card).map(|_| None).collect()
}

/// In the order of their names.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests;
