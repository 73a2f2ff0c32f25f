//! What can be typed after `--with`.

use super::*;

fn machine(with: &[&str], cuda: Option<&str>) -> Result<String, String> {
    let with: Vec<String> = with.iter().map(ToString::to_string).collect();
    let variable = |name: &str| cuda.filter(|_| name == "CUDA_VISIBLE_DEVICES").map(str::to_owned);
    let machine = Machine::visible(&with, variable).map_err(|error| error.to_string())?;
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
    for wrong in ["gpu", "gpu=", "gpu=0", "gpu=a", "gpu=1,1", "gpu=,1", "=3", "gpu=0.5", "a b=1"] {
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
