//! What a task is told.

use super::*;

fn value<'a>(env: &'a [Variable], name: &str) -> Option<&'a str> {
    env.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.to_str())
}

#[test]
fn a_task_knows_which_cards_are_its_own() {
    let resources = [("gpu".to_owned(), vec![1, 3]), ("fast-disk".to_owned(), vec![0])];
    let facts =
        Facts { task: "fit.7", job: 3, index: 7, attempt: 2, slots: 4, resources: &resources };
    let mut env = vec![("CUDA_VISIBLE_DEVICES".into(), "0".into())];
    facts.tell(&mut env);
    assert_eq!(value(&env, "LABORO_TASK"), Some("fit.7"));
    assert_eq!(value(&env, "LABORO_JOB"), Some("3"));
    assert_eq!(value(&env, "LABORO_INDEX"), Some("7"));
    assert_eq!(value(&env, "LABORO_ATTEMPT"), Some("2"));
    assert_eq!(value(&env, "LABORO_SLOTS"), Some("4"));
    assert_eq!(value(&env, "LABORO_GPU"), Some("1,3"));
    assert_eq!(value(&env, "CUDA_VISIBLE_DEVICES"), Some("1,3"));
    assert_eq!(value(&env, "LABORO_FAST_DISK"), Some("0"));
}

#[test]
fn a_later_value_of_the_same_name_wins() {
    let mut env = vec![("A".into(), "1".into())];
    set(&mut env, "A", "2");
    assert_eq!(env, [("A".into(), "2".into())]);
}
