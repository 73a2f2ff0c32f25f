//! What can be typed after `--with`.

use super::*;
use laboro_worker::GpuVendor;

fn machine(with: &[&str], cuda: Option<&str>) -> Result<String, String> {
    let with: Vec<String> = with.iter().map(ToString::to_string).collect();
    let variable = |name: &str| cuda.filter(|_| name == "CUDA_VISIBLE_DEVICES").map(str::to_owned);
    let machine = Machine::visible(&with, variable, None).map_err(|error| error.to_string())?;
    let shown = machine.resources.iter().map(|(name, Supply { count, items })| {
        let items: Vec<String> = items.iter().map(ToString::to_string).collect();
        format!("{name} {count} [{}]", items.join(" "))
    });
    Ok(shown.collect::<Vec<_>>().join("; "))
}

#[test]
fn counts_and_named_items_are_told_apart() {
    assert_eq!(
        machine(&["licences=200", "gpu=4,5"], None).unwrap(),
        "licences 200 []; gpu 2 [4 5]"
    );
    assert_eq!(machine(&["gpu=[4]"], None).unwrap(), "gpu 1 [4]");
    assert_eq!(machine(&["port=[a,b]"], None).unwrap(), "port 2 [a b]");
    for wrong in ["gpu", "gpu=", "disk=0", "gpu=a", "gpu=1,1", "gpu=,1", "=3", "gpu=0.5", "a b=1"] {
        assert!(machine(&[wrong], None).is_err(), "{wrong}");
    }
    assert!(machine(&["gpu=1", "gpu=2"], None).is_err());
}

#[test]
fn gpus_are_never_renumbered() {
    assert_eq!(machine(&["gpu=2"], Some("4,5,6")).unwrap(), "gpu 2 [4 5]");
    assert_eq!(machine(&["gpu=6,7"], Some("4,5")).unwrap(), "gpu 2 [6 7]");
    assert_eq!(machine(&["disk=2"], Some("4,5")).unwrap(), "disk 2 []");
    assert!(machine(&["gpu=3"], Some("4,5")).unwrap_err().contains("shows only 2"));
    assert!(machine(&["gpu=1"], Some("")).is_err());
}

#[test]
fn cards_with_a_driver_are_offered_by_themselves() {
    let gpus = Gpus { vendor: GpuVendor::Amd, models: vec![None, None] };
    let found = |with: &[&str], visible: Option<&str>| {
        let with: Vec<String> = with.iter().map(ToString::to_string).collect();
        let variable =
            |name: &str| visible.filter(|_| name == "ROCR_VISIBLE_DEVICES").map(str::to_owned);
        let machine = Machine::visible(&with, variable, Some(&gpus)).unwrap();
        machine.resources.into_iter().next().map(|(name, Supply { count, items })| {
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            format!("{name} {count} [{}]", items.join(" "))
        })
    };
    assert_eq!(found(&[], None).as_deref(), Some("gpu 2 []"));
    assert_eq!(found(&[], Some("5")).as_deref(), Some("gpu 1 [5]"));
    assert_eq!(found(&["gpu=7"], None).as_deref(), Some("gpu 7 []"));
    for (with, visible) in [(&["gpu=0"][..], None), (&[], Some("")), (&[], Some("-1"))] {
        assert_eq!(found(with, visible), None);
    }
}
