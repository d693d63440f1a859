//! The list of fault points.

/// A place where something can go wrong.
macro_rules! points {
    (
        store { $($(#[doc = $doc:literal])* $name:ident = $word:literal,)* }
        above { $($(#[doc = $above:literal])* $over:ident = $said:literal,)* }
    ) => {
        /// A place where something can go wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Point { $($(#[doc = $doc])* $name,)* $($(#[doc = $above])* $over,)* }

        impl Point {
            /// All of the store.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Those of the agent loop, which works with the store.
            pub const ABOVE: &[Self] = &[$(Self::$over),*];

            /// Its name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* $(Self::$over => $said),* }
            }

            /// The one with a name.
            pub fn named(name: &str) -> Option<Self> {
                let all = Self::ALL.iter().chain(Self::ABOVE);
                all.copied().find(|point| point.as_str() == name)
            }
        }
    };
}

points! {
    store {
        /// Before a run begins.
        BeginPre = "begin.pre",
        /// After it is committed, before it is acknowledged.
        BeginPost = "begin.post",
        /// A run is about to be claimed.
        LeaseClaim = "lease.claim",
        /// A heartbeat is about to be written.
        LeaseRenew = "lease.renew",
        /// A write was refused because another process has the lease.
        LeaseLost = "lease.lost",
        /// Before a remote call is recorded.
        CallPre = "call.pre",
        /// Its transaction is about to be committed.
        CallCommitSent = "call.commit_sent",
        /// It is committed.
        CallPost = "call.post",
        /// Before a step is recorded.
        StepPre = "step.pre",
        /// Its transaction is about to be committed.
        StepCommitSent = "step.commit_sent",
        /// It is committed.
        StepPost = "step.post",
        /// Before an intent is recorded.
        ToolPreIntent = "tool.pre_intent",
        /// It is committed.
        ToolPostIntent = "tool.post_intent",
        /// Before a result is recorded.
        ResultPre = "result.pre",
        /// Its transaction is about to be committed.
        ResultCommitSent = "result.commit_sent",
        /// It is committed.
        ResultPost = "result.post",
        /// Before a run is published.
        PublishPre = "publish.pre",
        /// Its items are written, its node and the head are not.
        PublishMid = "publish.mid",
        /// Its transaction is about to be committed.
        PublishCommitSent = "publish.commit_sent",
        /// It is committed.
        PublishPost = "publish.post",
        /// Before events are stored.
        EventAppend = "event.append",
        /// They are committed.
        EventFlush = "event.flush",
        /// A claimed run's journal is about to be read.
        RecoverClaim = "recover.claim",
        /// It was read.
        RecoverDecide = "recover.decide",
        /// Before a run is marked as cancelled.
        CancelMark = "cancel.mark",
        /// A cancelled run is about to be closed.
        CancelClose = "cancel.close",
        /// Before a run is parked.
        ParkPre = "park.pre",
        /// It is committed.
        ParkPost = "park.post",
        /// Before an approval is answered.
        AnswerPre = "answer.pre",
        /// Its transaction is about to be committed.
        AnswerCommitSent = "answer.commit_sent",
        /// It is committed.
        AnswerPost = "answer.post",
        /// Before a thread is marked as deleted.
        DeleteMark = "delete.mark",
        /// Before something is swept away.
        DeletePurge = "delete.purge",
        /// Between two steps of a migration.
        MigrateEach = "migrate.each",
    }
    above {
        /// It is decided what of a long history is folded, and nothing of that is stored.
        CompactWrite = "compact.write",
        /// What was folded is about to be published, with what the run said.
        CompactSwap = "compact.swap",
        /// A model is about to be asked.
        ModelPreSend = "model.pre_send",
        /// It has begun to answer, or has answered whole.
        ModelHeaders = "model.headers",
        /// A part of its answer came.
        ModelMidStream = "model.mid_stream",
        /// The last part came.
        ModelLastChunk = "model.last_chunk",
        /// A tool is about to be called, in its task.
        ToolMid = "tool.mid",
        /// A tool returned, and nothing of that is stored.
        ToolReturned = "tool.returned",
        /// A run is published, and no reader was told of its end.
        TerminalPre = "terminal.pre",
        /// Its readers were told.
        TerminalPost = "terminal.post",
    }
}
