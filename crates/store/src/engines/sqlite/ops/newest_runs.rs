//! What listings of threads ask of the newest run and the newest turn of each thread.

use std::collections::HashMap;

use rusqlite::Connection;
use throughline_model::json;

use crate::engines::sqlite::op_error::OpResult;
use crate::engines::sqlite::rows::sql::one;
use crate::engines::sqlite::rows::{ThreadRow, flag, int, num};
use crate::rules::lease::state_now;
use crate::rules::threads::{APPENDS, Listed, has_state};
use crate::{Millis, RunState, ThreadFilter};

/// Tries the newest runs of threads. A thread costs a few look-ups, however many runs it has, and none if
/// the filter does not ask for runs.
pub(crate) struct NewestRuns<'a> {
    conn: &'a Connection,
    now: Millis,
    filter: &'a ThreadFilter,
    /// What requests are listed under, by their rows: many turns share one.
    listed: HashMap<i64, Listed>,
}

impl<'a> NewestRuns<'a> {
    pub(crate) fn new(conn: &'a Connection, now: Millis, filter: &'a ThreadFilter) -> Self {
        Self {
            conn,
            now,
            filter,
            listed: HashMap::new(),
        }
    }

    /// Whether the newest run and the newest turn of a thread are as the filter asks.
    pub(crate) fn fit(&mut self, thread: &ThreadRow) -> OpResult<bool> {
        if self.filter.states.is_empty() && !self.filter.asks_for_turn() {
            return Ok(true);
        }
        let off_branch = self.off_branch(thread.row)?;
        Ok(self.fits_state(thread, off_branch)? && self.fits_turn(thread, off_branch)?)
    }

    /// The newest run that is not settled or published nothing. Only turns can be that.
    fn off_branch(&self, thread: i64) -> OpResult<Option<i64>> {
        // Both halves have an index that starts with the thread: `run_live` and `run_stray`.
        let live = "SELECT max(run) FROM run WHERE thread=? AND live IS NOT NULL AND flags & 32=0";
        let stray = "SELECT run FROM run WHERE thread=? AND live IS NULL AND pub_tl IS NULL AND flags & 32=0
          AND state<>10 ORDER BY run DESC LIMIT 1";
        let live: Option<i64> = one(self.conn, live, [thread], |row| row.get(0))?.flatten();
        let stray: Option<i64> = one(self.conn, stray, [thread], |row| row.get(0))?;
        Ok(live.max(stray))
    }

    fn fits_state(&self, thread: &ThreadRow, off_branch: Option<i64>) -> OpResult<bool> {
        if self.filter.states.is_empty() {
            return Ok(true);
        }
        // The head of a fork may be of a run of another thread, which is none of this one's.
        let head = thread
            .head
            .as_ref()
            .filter(|head| !thread.borrowed && head.run_flags & flag::HIDDEN == 0);
        let newest = off_branch.max(head.map(|head| head.run));
        let state = match newest {
            Some(run) => self.state(run)?,
            None => None,
        };
        Ok(has_state(state, self.filter))
    }

    fn state(&self, run: i64) -> OpResult<Option<RunState>> {
        let sql = "SELECT r.state, (SELECT o.until FROM owner o WHERE o.owner=r.owner) FROM run r WHERE r.run=?";
        let found = one(self.conn, sql, [run], |row| {
            Ok((row.get::<_, u8>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        Ok(found.and_then(|(state, until)| {
            let is_owned = until.is_some_and(|until| num(until) > self.now);
            RunState::of(state).map(|state| state_now(state, is_owned))
        }))
    }

    fn fits_turn(&mut self, thread: &ThreadRow, off_branch: Option<i64>) -> OpResult<bool> {
        if !self.filter.asks_for_turn() {
            return Ok(true);
        }
        let published = match &thread.head {
            // Along a timeline runs are newer and newer.
            Some(head) => {
                let sql = "SELECT max(r.run) FROM (SELECT run FROM node WHERE tl=?1 AND first<=?2 ORDER BY first DESC
                  LIMIT ?3) lately CROSS JOIN run r ON r.run=lately.run WHERE r.flags & 4=0";
                let values = (head.tl, int(head.first), APPENDS);
                one(self.conn, sql, values, |row| row.get(0))?.flatten()
            }
            None => None,
        };
        let Some(run) = off_branch.max(published) else {
            return Ok(false);
        };
        let sql = "SELECT request FROM run WHERE run=?";
        let request: Option<i64> = one(self.conn, sql, [run], |row| row.get(0))?.flatten();
        let Some(request) = request else {
            return Ok(false);
        };
        if let Some(listed) = self.listed.get(&request) {
            return Ok(listed.fits(self.filter));
        }
        let sql = "SELECT body FROM request WHERE request=?";
        let body: Option<String> = one(self.conn, sql, [request], |row| row.get(0))?;
        let listed = body.as_deref().and_then(|body| json::parse(body).ok());
        let listed = listed.map(|body| Listed::of(&body)).unwrap_or_default();
        let fits = listed.fits(self.filter);
        self.listed.insert(request, listed);
        Ok(fits)
    }
}
