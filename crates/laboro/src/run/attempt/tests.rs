//! One attempt while it runs.

use super::*;

#[test]
fn no_two_tasks_share_an_output_file() {
    assert_eq!(file_name("fit.3", 3), "fit.3");
    assert_eq!(file_name("a/b", 1), "a%2Fb");
    assert_eq!(file_name("a%2Fb", 1), "a%252Fb");
    assert_eq!(file_name("..", 1), "..");
    let long = "é".repeat(300);
    assert_ne!(file_name(&long, 1), file_name(&long, 2));
    assert!(file_name(&long, u32::MAX).len() < FILE_NAME_BYTES_MAX);
}
