use throughline_testkit::Scratch;

/// A figure in the output of a child process, after `key`.
fn figure(line: &str, key: &str) -> u64 {
    let value = line.split(' ').find_map(|word| word.strip_prefix(key));
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(u64::MAX)
}

#[expect(clippy::print_stdout, reason = "the test command shows this line")]
fn child(arguments: &[&str]) -> String {
    let output = crate::worker("store-child")
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(output.status.success(), "{text}");
    println!("table size {text}");
    text
}

/// A thread of 100 MB passes through a process with a fraction of that memory.
#[test]
fn a_long_thread_is_written_and_read_in_bounded_memory() {
    let scratch = Scratch::new("long");
    let line = child(&["long", &scratch.sqlite("store.db"), "100000"]);
    assert!(figure(&line, "bytes=") > 100_000_000);
    assert!(figure(&line, "peak_mib=") < 64, "{line}");
}

#[test]
fn a_chain_of_a_thousand_forks_is_read_in_bounded_memory() {
    let scratch = Scratch::new("chain");
    let line = child(&["chain", &scratch.sqlite("store.db"), "1000"]);
    assert!(figure(&line, "peak_mib=") < 64, "{line}");
}
