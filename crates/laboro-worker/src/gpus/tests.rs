//! Machines made of files.

use super::*;

struct Machine(tempfile::TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Machine {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Machine(root)
    }

    fn gpus(&self) -> Option<Gpus> {
        Gpus::find(self.0.path())
    }
}

const NVIDIA: &str = "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 31\nDevice Minor: \t 1\n";

#[test]
fn cards_are_found_by_the_files_of_their_drivers() {
    let machine = Machine::new(&[
        ("proc/driver/nvidia/gpus/0000:81:00.0/information", NVIDIA),
        ("proc/driver/nvidia/gpus/0000:01:00.0/information", "no model here\n"),
    ]);
    let models = vec![None, Some("NVIDIA A100-SXM4-40GB".to_owned())];
    assert_eq!(machine.gpus(), Some(Gpus { vendor: GpuVendor::Nvidia, models }));

    let node =
        |number: u32, file: &str| format!("sys/class/kfd/kfd/topology/nodes/{number}/{file}");
    let machine = Machine::new(&[
        (&node(0, "gpu_id"), "0\n"),
        (&node(10, "gpu_id"), "8822\n"),
        (&node(2, "gpu_id"), "1234\n"),
        (&node(2, "name"), "aldebaran\n"),
    ]);
    let models = vec![Some("aldebaran".to_owned()), None];
    assert_eq!(machine.gpus(), Some(Gpus { vendor: GpuVendor::Amd, models }));
}

#[test]
fn what_is_part_of_a_processor_is_not_a_card() {
    let card = |number: u32, file: &str| format!("sys/class/drm/renderD{number}/device/{file}");
    let files = |slot: &'static str| {
        vec![(card(128, "vendor"), "0x8086\n".to_owned()), (card(128, "uevent"), slot.to_owned())]
    };
    let machine = |slot| {
        let files = files(slot);
        let files: Vec<(&str, &str)> =
            files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        Machine::new(&files)
    };
    assert_eq!(machine("DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0\n").gpus(), None);
    assert_eq!(machine("DRIVER=vfio-pci\nPCI_SLOT_NAME=0000:3a:00.0\n").gpus(), None);
    let found = machine("DRIVER=xe\nPCI_SLOT_NAME=0000:3a:00.0\n").gpus();
    assert_eq!(found, Some(Gpus { vendor: GpuVendor::Intel, models: vec![None] }));
}

#[test]
fn a_machine_without_any_has_none() {
    assert_eq!(Machine::new(&[]).gpus(), None);
}
