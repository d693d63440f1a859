//! Tools of an MCP server: start one, or name its address, and give its tools to an agent.
//!
//! ```sh
//! cargo run -p throughline --features mcp --example mcp -- "use add with a=2 b=3" SERVER [ARGUMENT…]
//! cargo run -p throughline --features mcp --example mcp -- "use add with a=2 b=3" http://127.0.0.1:9000/mcp
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use throughline::tool::McpServer;
use throughline::{Agent, Demo};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(input), Some(server)) = (arguments.next(), arguments.next()) else {
        return Err("say what to ask and which server to use".into());
    };
    let server = match server.starts_with("http") {
        true => McpServer::http(server),
        false => McpServer::stdio(server, arguments),
    };
    let connected = server.connect().await?;
    let agent = Agent::builder(Demo::new())
        .tools(connected.tools())
        .build()?;
    println!("{}", agent.run(input).await?.text());
    connected.close().await;
    Ok(())
}
