use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_model::Output;
use throughline_model::json::RawJson;

use super::{FnTool, declare, declare_args, tool};
use crate::tool::{
    Approval, CallContext, Dependencies, Effect, Json, Parameters, Runs, Tool, ToolError,
    ToolFault, ToolOutput,
};

#[derive(Deserialize, Serialize, JsonSchema)]
struct Args {
    port: String,
    #[serde(default)]
    days: Option<u32>,
}

async fn call(tool: &FnTool, arguments: &str) -> Result<ToolOutput, ToolError> {
    let arguments = RawJson::new(arguments).unwrap();
    tool.call(&arguments, CallContext::detached()).await
}

async fn output(tool: &FnTool, arguments: &str) -> Output {
    call(tool, arguments).await.unwrap().output
}

fn schema(tool: &FnTool) -> &str {
    tool.spec().parameters.as_json().get()
}

#[tokio::test]
async fn every_form_of_function_is_a_tool() {
    let both = tool("t", "", |args: Args, context: CallContext| async move {
        format!("{} for {}", args.port, context.call)
    });
    let args = tool("t", "", |args: Args| async move { args.port });
    let context = tool("t", "", |context: CallContext| async move {
        context.idempotency_key
    });
    let nothing = tool("t", "", || async { "hello" });
    async fn named(args: Args) -> Json<Args> {
        Json(args)
    }
    let named = tool("t", "", named);
    let dover = r#"{"port":"Dover"}"#;
    let text = |text: &str| Output::Text(text.to_owned());
    assert_eq!(output(&both, dover).await, text("Dover for detached"));
    assert_eq!(output(&args, dover).await, text("Dover"));
    assert_eq!(output(&context, "{}").await, text("detached"));
    assert_eq!(output(&nothing, "{}").await, text("hello"));
    assert_eq!(
        output(&named, dover).await,
        Output::Json(RawJson::new(r#"{"port":"Dover","days":null}"#).unwrap())
    );
    assert_eq!(schema(&nothing), r#"{"type":"object","properties":{}}"#);
    assert_eq!(schema(&context), schema(&nothing));
}

#[tokio::test]
async fn a_tool_gives_back_nothing_an_error_or_the_end() {
    let nothing = tool("t", "", || async {});
    assert_eq!(output(&nothing, "{}").await, Output::None);
    let end = tool("t", "", || async {
        ToolOutput::text("bye").and_terminate()
    });
    assert!(call(&end, "{}").await.unwrap().terminate);
    let fails = tool("t", "", || async { "x".parse::<u8>().map(|_| "never") });
    let error = call(&fails, "{}").await.unwrap_err();
    assert_eq!(error.fault(), ToolFault::Failed);
    assert_eq!(error.to_string(), "invalid digit found in string");
    let told = tool("t", "", || async {
        Err::<(), _>(ToolError::reported("no such port"))
    });
    let error = call(&told, "{}").await.unwrap_err();
    assert_eq!(error.fault(), ToolFault::Reported);
}

#[tokio::test]
async fn arguments_that_a_type_cannot_read_are_an_argument_error() {
    let days = tool("t", "", |args: Args| async move { args.port });
    let error = call(&days, r#"{"port":"Dover","days":3.0}"#)
        .await
        .unwrap_err();
    assert_eq!(error.fault(), ToolFault::Arguments);
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    Circle { r: f64 },
    Square { a: f64 },
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Sum {
    Number(f64),
    Add(Vec<Sum>),
}

impl Sum {
    fn value(&self) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Add(parts) => parts.iter().map(Self::value).sum(),
        }
    }
}

#[tokio::test]
async fn a_type_in_a_field_may_hold_itself() {
    let add = tool("add", "", |sum: Sum| async move { sum.value().to_string() });
    let checked = |text: &str| {
        let text = throughline_model::Arguments::Text(text.to_owned());
        add.spec().parameters.check(&text)
    };
    let good = r#"{"input":{"add":[{"number":1},{"add":[{"number":2}]}]}}"#;
    assert!(checked(good).is_ok(), "{}", schema(&add));
    assert!(checked(&good.replace('2', "null")).is_err());
    assert_eq!(output(&add, good).await, Output::Text("3".to_owned()));
}

#[derive(Deserialize, JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

#[tokio::test]
async fn a_type_that_is_no_object_stands_in_a_field() {
    let area = tool("area", "", |shape: Shape| async move {
        match shape {
            Shape::Circle { r } => format!("{:.1}", r * r * std::f64::consts::PI),
            Shape::Square { a } => format!("{:.1}", a * a),
        }
    });
    assert!(schema(&area).starts_with(r#"{"type":"object","properties":{"input":{"oneOf":["#));
    let square = r#"{"input":{"kind":"square","a":2}}"#;
    assert_eq!(output(&area, square).await, Output::Text("4.0".to_owned()));
    let list = tool("sum", "", |list: Vec<u32>| async move {
        list.iter().sum::<u32>().to_string()
    });
    assert_eq!(
        output(&list, r#"{"input":[1,2]}"#).await,
        Output::Text("3".to_owned())
    );
}

#[tokio::test]
async fn only_types_that_hold_themselves_keep_references() {
    let plain = declare_args::<Args>("t", "");
    assert_eq!(
        schema(&plain),
        r#"{"type":"object","properties":{"port":{"type":"string"},"days":{"type":["integer","null"],"default":null,"minimum":0}},"required":["port"]}"#
    );
    let count = tool("count", "", |tree: Tree| async move {
        format!("{} {}", tree.name, tree.children.len())
    });
    assert_eq!(
        schema(&count),
        r##"{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}},"required":["name","children"]}"##
    );
    let checked = |text: &str| {
        let text = throughline_model::Arguments::Text(text.to_owned());
        count.spec().parameters.check(&text)
    };
    let good = r#"{"name":"a","children":[{"name":"b","children":[]}]}"#;
    assert!(checked(good).is_ok());
    let refused = checked(&good.replace(r#""b""#, "1"))
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("children[0].name: expected string"),
        "{refused}"
    );
    assert_eq!(output(&count, good).await, Output::Text("a 1".to_owned()));
}

#[tokio::test]
async fn a_declared_tool_is_run_outside() {
    let ask = declare("ask", "Ask somebody", Parameters::none()).needs_approval();
    assert_eq!(ask.spec().runs, Runs::Outside);
    assert_eq!(ask.spec().approval, Approval::Always);
    assert!(call(&ask, "{}").await.is_err());
}

#[tokio::test]
async fn what_is_said_of_a_tool_is_in_its_spec() {
    let said = tool("t", "Does it", || async {})
        .effect(Effect::ReadOnly)
        .timeout(Duration::from_secs(1));
    assert_eq!(said.spec().effect, Effect::ReadOnly);
    assert_eq!(said.spec().timeout, Some(Duration::from_secs(1)));
    assert_eq!(said.spec().description.as_deref(), Some("Does it"));
    assert_eq!(tool("t", "", || async {}).spec().effect, Effect::Once);
    let shared = said.clone().into_tool();
    assert_eq!(shared.spec(), said.spec());
}

#[tokio::test]
async fn a_tool_finds_what_it_depends_on() {
    let reads = tool("t", "", |context: CallContext| async move {
        context
            .dependency::<u32>()
            .map(|found| found.to_string())
            .ok_or("no number")
    });
    let mut given = Dependencies::default();
    given.insert(7u32);
    let context = CallContext::detached().with_dependencies(given);
    let empty = RawJson::new("{}").unwrap();
    let found = reads.call(&empty, context).await.unwrap();
    assert_eq!(found.output, Output::Text("7".to_owned()));
    assert!(call(&reads, "{}").await.is_err());
}
