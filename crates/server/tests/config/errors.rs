//! Whatever is wrong is refused, with its place, its key and what would be right.

use throughline_server::Flags;

use super::{from_environment, load, load_with};

/// The complaint about a file, without the folder that the file is in.
fn complaint(file: &str) -> String {
    let error = load(file).unwrap_err().to_string();
    let (_, rest) = error.split_once("throughline.toml").unwrap();
    assert!(!rest.contains('\n'), "{rest}");
    rest.to_owned()
}

#[test]
fn slips_are_named_with_their_line_and_what_was_meant() {
    for (file, expected) in [
        (
            "[server]\n\nlistn = \"127.0.0.1:1\"\n",
            ":3: server.listn: unknown key; did you mean \"listen\"?",
        ),
        (
            "[severs]\n",
            ":1: severs: unknown key; did you mean \"server\"?",
        ),
        ("colour = 1\n", ":1: colour: unknown key"),
        (
            "[[upstream]]\nname = \"a\"\nkind = \"antropic\"\n",
            ":3: upstream.a.kind: \"antropic\" is none of openai-responses, openai-chat, anthropic, \
             gemini, foundry, demo, foundry-classic, a2a, copilot-studio; did you mean \
             \"anthropic\"?",
        ),
        (
            "[[upstream]]\nname = \"a\"\nkind = \"demo\"\nbaseurl = \"x\"\n",
            ":4: upstream.a.baseurl: unknown key; did you mean \"base_url\"?",
        ),
        (
            "[mcp.orders]\nurl = \"http://127.0.0.1:9\"\neffects = { a = \"onse\" }\n",
            ":3: mcp.orders.effects: \"a\": \"onse\" is none of read_only, idempotent, keyed, once; \
             did you mean \"once\"?",
        ),
        (
            "[[agent]]\nid = \"a\"\nmodel = \"demo\"\ntools = [\"mcp:oders\"]\n\
             [mcp.orders]\nurl = \"http://127.0.0.1:9\"\n",
            ":4: agent.a.tools: there is no [mcp.oders]; did you mean \"orders\"?",
        ),
    ] {
        assert_eq!(complaint(file), expected);
    }
}

#[test]
fn wrong_types_and_values_say_what_would_be_right() {
    for (file, expected) in [
        (
            "[server]\nlisten = 8377\n",
            ":2: server.listen: must be a text, not a number",
        ),
        (
            "[server]\nlisten = \"8377\"\n",
            ":2: server.listen: \"8377\" is no address with a port, such as 127.0.0.1:8377",
        ),
        (
            "[limits]\nrounds = \"many\"\n",
            ":2: limits.rounds: must be a number between 1 and 10000, not a text",
        ),
        (
            "[limits]\nrounds = 0\n",
            ":2: limits.rounds: must be a number between 1 and 10000, not 0",
        ),
        (
            "[limits]\ndrain_seconds = 21\n",
            ":2: limits.drain_seconds: must be a number between 0 and 20, not 21",
        ),
        (
            "[limits]\nbody_bytes = 1.5\n",
            ":2: limits.body_bytes: must be a number between 1024 and 1073741824, not 1.5",
        ),
        (
            "[limits]\nhistory_bytes = 500000000\n",
            ":2: limits.history_bytes: leaves 0 bytes of limits.memory (536870912) for requests and answers; \
             67108864 are needed: lower it, or raise limits.memory",
        ),
        (
            "[limits]\nmemory = 268435456\nhistory_bytes = 134217728\n",
            ":3: limits.history_bytes: leaves 33554432 bytes of limits.memory (268435456) for requests and \
             answers; 67108864 are needed: lower it, or raise limits.memory",
        ),
        (
            "[history]\nparity = true\n",
            ":2: history.parity: must be one of none, service, not true or false",
        ),
        (
            "[[upstream]]\nname = \"a\"\nkind = \"demo\"\nmodels = \"x\"\n",
            ":4: upstream.a.models: must be a list of texts, not a text",
        ),
        (
            "[[upstream]]\nname = \"a\"\nkind = \"demo\"\nmodels = [1]\n",
            ":4: upstream.a.models: must be a list of texts, but a number is in it",
        ),
        ("server = 1\n", ":1: server: write [server]"),
        (
            "[upstream]\nname = \"a\"\n",
            ":1: upstream: write [[upstream]]",
        ),
        (
            "[[upstream]]\nkind = \"demo\"\n",
            ":1: upstream.name: is missing: its name",
        ),
        (
            "[[upstream]]\nname = \"a/b\"\nkind = \"demo\"\n",
            ":2: upstream.a/b.name: \"a/b\" has other characters than A-Z a-z 0-9 _ . -, or more \
             than 64",
        ),
        (
            "[mcp.orders]\napproval = []\n",
            ":1: mcp.orders.url: is missing; set url or command",
        ),
        (
            "[[agent]]\nid = \"a\"\nmodel = \"demo\"\ntools = [\"orders\"]\n",
            ":4: agent.a.tools: \"orders\" is no tool; write \"mcp:LABEL\" for those of [mcp.LABEL]",
        ),
    ] {
        assert_eq!(complaint(file), expected);
    }
}

#[test]
fn what_is_not_toml_has_its_place() {
    let error = load("[server]\nlisten = \n").unwrap_err();
    assert_eq!(error.line(), Some(2), "{error}");
    assert!(error.to_string().contains(":2:10: not TOML: "), "{error}");
    let error = load("[server]\nlog = \"a\"\nlog = \"b\"\n").unwrap_err();
    assert_eq!(error.line(), Some(3), "{error}");
}

#[test]
fn an_open_server_listens_on_loopback_only() {
    for address in ["0.0.0.0:8377", "[::]:8377", "192.168.1.1:8377"] {
        let file = format!("[server]\nlisten = \"{address}\"\n");
        let error = complaint(&file);
        assert!(error.starts_with(":2: server.listen: "), "{error}");
        assert!(error.contains("server.auth"), "{error}");
        let flags = Flags {
            listen: Some(address.to_owned()),
            store: None,
        };
        let error = load_with("", &[], flags).unwrap_err().to_string();
        assert!(error.starts_with("--listen: server.listen: "), "{error}");
    }
    for address in ["127.0.0.1:0", "[::1]:0", "127.8.8.8:1", "localhost:1"] {
        let file = format!("[server]\nlisten = \"{address}\"\n");
        assert!(load(&file).is_ok(), "{address}");
    }
}

#[test]
fn kinds_that_are_not_built_name_themselves() {
    for (kind, feature) in [
        ("a2a", "A2A"),
        ("copilot-studio", "Copilot Studio"),
        ("foundry-classic", "a client for Foundry's classic agents"),
    ] {
        let error = complaint(&format!("[[upstream]]\nname = \"a\"\nkind = \"{kind}\"\n"));
        assert_eq!(
            error,
            format!(
                ":3: upstream.a.kind = {kind:?}: {feature} is not built in this version; take it out"
            )
        );
    }
}

#[test]
fn missing_credentials_refuse_to_start() {
    for (kind, variable) in [
        ("openai-responses", "OPENAI_API_KEY"),
        ("openai-chat", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
    ] {
        let file = format!("[[upstream]]\nname = \"a\"\nkind = \"{kind}\"\n");
        let error = complaint(&file);
        assert!(error.contains(variable), "{error}");
        assert!(
            from_environment(&file, &[(variable, "k")]).is_ok(),
            "{kind}"
        );
        let named = format!("{file}api_key_env = \"MY_KEY\"\n");
        // The usual one does not stand in for the one that was named.
        let error = from_environment(&named, &[(variable, "k")]).unwrap_err();
        assert!(error.to_string().contains("MY_KEY is not set"), "{error}");
        assert_eq!(error.line(), Some(4));
    }
    let foundry = "[[upstream]]\nname = \"a\"\nkind = \"foundry\"\n";
    assert!(complaint(foundry).contains("base_url"));
    let foundry = format!("{foundry}base_url = \"http://127.0.0.1:9/p\"\n");
    assert!(complaint(&foundry).contains("token_command"));
}

#[test]
fn what_excludes_each_other_is_refused() {
    let both = "[[upstream]]\nname = \"a\"\nkind = \"anthropic\"\napi_key_env = \"K\"\n\
                token_command = [\"t\"]\n";
    assert!(complaint(both).starts_with(":5: upstream.a.token_command: excludes"));
    let both = "[mcp.a]\nurl = \"http://127.0.0.1:9\"\ncommand = [\"c\"]\n";
    assert!(complaint(both).starts_with(":3: mcp.a.command: excludes"));
    let twice = "[[upstream]]\nname = \"a\"\nkind = \"demo\"\n[[upstream]]\nname = \"a\"\n\
                 kind = \"demo\"\n";
    assert!(complaint(twice).starts_with(":5: upstream.a.name: there are two"));
    let twice =
        "[[agent]]\nid = \"a\"\nmodel = \"demo\"\n[[agent]]\nid = \"a\"\nmodel = \"demo\"\n";
    assert!(complaint(twice).starts_with(":5: agent.a.id: there are two"));
}

#[test]
fn variables_are_complained_about_by_their_name() {
    let error = |name: &str, value: &str| {
        let found = from_environment("", &[(name, value)]);
        found.map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        error("THROUGHLINE_LIMITS_ROUNDS", "many"),
        "THROUGHLINE_LIMITS_ROUNDS: limits.rounds: must be a number between 1 and 10000, not many"
    );
    assert_eq!(
        error("THROUGHLINE_SERVER_LISTN", "x"),
        "THROUGHLINE_SERVER_LISTN: server.listn: unknown key; did you mean \"listen\"?"
    );
    assert_eq!(
        error("THROUGHLINE_UPSTREAM_A_KIN", "demo"),
        "THROUGHLINE_UPSTREAM_A_KIN: upstream.a_kin: unknown key; did you mean \"kind\"?"
    );
    assert_eq!(
        error("THROUGHLINE_SERVR_LISTEN", "x"),
        "THROUGHLINE_SERVR_LISTEN: servr_listen: unknown key; did you mean \
         \"THROUGHLINE_SERVER_LISTEN\"?"
    );
    assert_eq!(
        error("THROUGHLINE_RETENTION_DAYS", "3"),
        "THROUGHLINE_RETENTION_DAYS: retention.days: retention is not built in this version; take \
         it out"
    );
    let native = "THROUGHLINE_COMPACTION_EXPERIMENTAL_NATIVE_TOOL_HISTORY";
    let said = error(native, "perhaps");
    let start =
        format!("{native}: compaction.experimental.native_tool_history: \"perhaps\" is none of ");
    assert!(said.starts_with(&start), "{said}");
    // What belongs to other programs is left alone.
    assert!(from_environment("", &[("THROUGHLINE_SEED", "7")]).is_ok());
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let sources = throughline_server::Sources {
        file: Some("/nowhere/at/all.toml".into()),
        ..Default::default()
    };
    let error = throughline_server::Config::load(&sources).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("/nowhere/at/all.toml: cannot be read")
    );
}

#[test]
fn a_key_that_goes_is_named_with_its_place_and_with_what_to_write() {
    let warnings = |file: &str| load(file).unwrap().warnings;
    let none: [String; 0] = [];
    assert_eq!(warnings("[compaction]\nstrategy = \"text\"\n"), none);
    let said = warnings("[compaction]\nexperimental.native_tool_history = false\n");
    let [said] = said.as_slice() else {
        panic!("{said:?}");
    };
    assert!(
        said.ends_with(
            ":2: compaction.experimental.native_tool_history is deprecated; write strategy \
             instead: \"text\" for false, \"auto\" for true"
        ),
        "{said}"
    );
}

#[test]
fn strategies_that_contradict_each_other_and_markers_like_calls_are_refused() {
    for (file, expected) in [
        (
            "[compaction]\nstrategy = \"auto\"\nexperimental.native_tool_history = false\n",
            ":3: compaction.experimental.native_tool_history: means text, but strategy is auto; \
             take this key out",
        ),
        (
            "[compaction]\nstrategy = \"text\"\nexperimental.native_tool_history = true\n",
            ":3: compaction.experimental.native_tool_history: means auto, but strategy is text; \
             take this key out",
        ),
        (
            "[compaction]\nexperimental.native_tool_history = \"yes\"\n",
            ":2: compaction.experimental.native_tool_history: \"yes\" is none of true, false",
        ),
        (
            "[compaction]\nstrategy = \"txt\"\n",
            ":2: compaction.strategy: \"txt\" is none of auto, native, text; did you mean \"text\"?",
        ),
        (
            "[compaction]\ntext_before = \"result\"\n",
            ":2: compaction.text_before: the marker before a result must hold {tool} once, where \
             the name of the tool goes",
        ),
        (
            "[compaction]\ntext_after = \"</tool_call>\"\n",
            ":2: compaction.text_after: the marker \"</tool_call>\" looks like a tool call, because \
             of \"tool_call\"",
        ),
    ] {
        assert_eq!(complaint(file), expected);
    }
    for (file, strategy) in [
        (
            "strategy = \"native\"\nexperimental.native_tool_history = true\n",
            "native",
        ),
        (
            "strategy = \"text\"\nexperimental.native_tool_history = false\n",
            "text",
        ),
        ("experimental.native_tool_history = true\n", "auto"),
        ("experimental.native_tool_history = false\n", "text"),
        ("", "auto"),
    ] {
        let config = load(&format!("[compaction]\n{file}")).unwrap();
        assert_eq!(config.compaction.strategy.as_str(), strategy, "{file}");
    }
}
