//! An application that keeps conversations in a table of its own, next to its orders and customers.
//! Each model call is appended as soon as it is journaled, so that a report over the table is never
//! behind by more than the call that is under way.
//!
//! ```sh
//! cargo run -p throughline --example sqlite_message_store
//! ```

#![expect(
    clippy::print_stdout,
    reason = "an example talks to whoever started it"
)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rusqlite::{Connection, params};
use throughline::model::Message;
use throughline::model::json::RawJson;
use throughline::store::{Store, ThreadId};
use throughline::thread::{MessageStore, MessageStoreError, Owner, Persistence};
use throughline::tool::{CallContext, ToolError};
use throughline::{Agent, Demo, tool};

/// A message belongs to a case. `append` and `place` are unique together, so that an append that is
/// repeated after a crash changes nothing.
const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS message(
        position INTEGER PRIMARY KEY,
        case_number INTEGER NOT NULL,
        append TEXT NOT NULL,
        place INTEGER NOT NULL,
        role TEXT NOT NULL,
        body TEXT NOT NULL,
        UNIQUE(append, place)
    )";

/// The application's database.
#[derive(Clone)]
struct Cases(Arc<Mutex<Connection>>);

impl Cases {
    fn open(file: &std::path::Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(file)?;
        connection.execute_batch(TABLE)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The roles of a case's messages, as a report would read them.
    fn roles(&self, case: i64) -> rusqlite::Result<String> {
        let connection = self.connection();
        let sql = "SELECT role FROM message WHERE case_number=? ORDER BY position";
        let mut statement = connection.prepare(sql)?;
        let roles = statement.query_map([case], |row| row.get::<_, String>(0))?;
        Ok(roles.collect::<Result<Vec<_>, _>>()?.join(" "))
    }
}

/// The number in a key like `{"case":4711}`.
fn case_of(key: &RawJson) -> Result<i64, MessageStoreError> {
    let key: serde_json::Value = serde_json::from_str(key.get())?;
    key["case"]
        .as_i64()
        .ok_or_else(|| "a key names its case".into())
}

#[async_trait]
impl MessageStore for Cases {
    async fn load(
        &self,
        key: &RawJson,
        _budget: Option<u64>,
    ) -> Result<Vec<Message>, MessageStoreError> {
        let connection = self.connection();
        let sql = "SELECT body FROM message WHERE case_number=? ORDER BY position";
        let mut statement = connection.prepare(sql)?;
        let bodies = statement.query_map([case_of(key)?], |row| row.get::<_, String>(0))?;
        bodies.map(|body| Ok(Message::from_json(&body?)?)).collect()
    }

    async fn append(
        &self,
        key: &RawJson,
        messages: &[Message],
        idempotency: &str,
    ) -> Result<Option<RawJson>, MessageStoreError> {
        let case = case_of(key)?;
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let sql = "INSERT OR IGNORE INTO message(case_number, append, place, role, body)
            VALUES(?, ?, ?, ?, ?)";
        for (place, message) in messages.iter().enumerate() {
            let role = message.role.as_str();
            let row = params![case, idempotency, place as i64, role, message.to_json()];
            transaction.execute(sql, row)?;
        }
        transaction.commit()?;
        Ok(None)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = format!("throughline-cases-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder)?;
    let cases = Cases::open(&folder.join("cases.db"))?;
    // Journals of runs are ours, in a file of their own.
    let journal = folder.join("journal.db");
    let store = Store::open(&format!("sqlite://{}", journal.display())).await?;

    let look = tool(
        "look",
        "Looks at the case.",
        |call: CallContext| async move {
            let cases = call.dependency::<Cases>().ok_or("no cases")?;
            let roles = cases.roles(4711).map_err(|error| error.to_string())?;
            Ok::<_, ToolError>(format!("the table has: {roles}"))
        },
    );
    let agent = Agent::builder(Demo::new())
        .store(&store)
        .persistence(Persistence::PerCall)
        .message_store("cases", cases.clone())
        // Every new thread of this agent is a case of the application.
        .new_threads_owned_by(|_: &ThreadId| Owner::External {
            store: "cases".to_owned(),
            key: RawJson::object(|key| {
                key.number("case", 4711);
            }),
        })
        .dependency(cases.clone())
        .tool(look)
        .build()?;
    let thread = agent.new_thread();
    let outcome = agent.run_on(&thread, "use look").await?;
    println!("{}", outcome.text());
    println!("at the end: {}", cases.roles(4711)?);
    let outcome = agent
        .run_on(&thread, "How many messages are there?")
        .await?;
    println!("{}", outcome.text());
    println!("and then: {}", cases.roles(4711)?);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
