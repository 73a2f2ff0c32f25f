//! What a task is told.

use super::*;

fn value<'a>(env: &'a [Variable], name: &str) -> Option<&'a str> {
    env.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.to_str())
}

#[test]
fn a_task_knows_which_cards_are_its_own() {
    let resources = [("gpu".to_owned(), vec![1, 3]), ("fast-disk".to_owned(), vec![0])];
    let (task, job, index, attempt, slots) = ("fit.7", 3, 7, 2, 4);
    let facts = Facts {
        task,
        job,
        index,
        attempt,
        slots,
        resources: &resources,
        items: &[],
        role: &Role::Only,
    };
    let mut env = vec![("CUDA_VISIBLE_DEVICES".into(), "0".into())];
    facts.tell(&mut env, |_| false);
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
fn cards_keep_their_names_and_a_persons_choice_stands() {
    let resources = [("gpu".to_owned(), vec![1])];
    let items = [("gpu".to_owned(), vec!["4".to_owned(), "5".to_owned()])];
    let (task, job, index, attempt, slots) = ("fit", 1, 1, 1, 1);
    let facts = Facts {
        task,
        job,
        index,
        attempt,
        slots,
        resources: &resources,
        items: &items,
        role: &Role::Only,
    };
    let mut env = Vec::new();
    facts.tell(&mut env, |_| false);
    assert_eq!(value(&env, "LABORO_GPU"), Some("5"));
    assert_eq!(value(&env, "CUDA_VISIBLE_DEVICES"), Some("5"));
    let mut env = vec![("CUDA_VISIBLE_DEVICES".into(), "7".into())];
    facts.tell(&mut env, |name| name == "CUDA_VISIBLE_DEVICES");
    assert_eq!(value(&env, "CUDA_VISIBLE_DEVICES"), Some("7"));
    assert_eq!(value(&env, "LABORO_GPU"), Some("5"));
}

#[test]
fn one_variable_says_which_cards_are_visible() {
    assert_eq!(gpu_variable(|name| name == "ROCR_VISIBLE_DEVICES"), "ROCR_VISIBLE_DEVICES");
    assert_eq!(gpu_variable(|_| true), "CUDA_VISIBLE_DEVICES");
}

#[test]
fn a_later_value_of_the_same_name_wins() {
    let mut env = vec![("A".into(), "1".into())];
    set(&mut env, "A", "2");
    assert_eq!(env, [("A".into(), "2".into())]);
}
