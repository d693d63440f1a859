//! Commands about calls that wait for approval.

use clap::{Args as ClapArgs, Subcommand};
use throughline_store::{ApprovalId, ArgumentsDigest, Decision, PageToken, ThreadId};

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List calls that wait for approval, newest first.
    List(ApprovalsList),
    /// Approve or deny a call. The decision is stored; the tool runs when its run is resumed.
    Answer(ApprovalsAnswer),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ApprovalsList {
    /// List only calls of this thread.
    #[arg(long, value_name = "ID", value_parser = super::store::thread)]
    pub(crate) thread: Option<ThreadId>,

    /// Include approvals that are decided, used, expired or withdrawn.
    #[arg(long)]
    pub(crate) all: bool,

    /// The maximum number of entries.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,

    /// Continue after the page that returned this token.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) after: Option<PageToken>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ApprovalsAnswer {
    /// The id of the approval, appr_….
    #[arg(value_name = "ID")]
    pub(crate) approval: ApprovalId,

    #[command(flatten)]
    pub(crate) decision: DecisionFlags,

    /// The reason; the model may be shown it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// The name of the person who decides (default: the user of this machine).
    #[arg(long, value_name = "NAME", value_parser = person)]
    pub(crate) by: Option<String>,

    /// The digest of the call that you reviewed; if the arguments differ, nothing is stored.
    #[arg(long, value_name = "HEX", value_parser = digest)]
    pub(crate) digest: Option<ArgumentsDigest>,
}

#[derive(Clone, Copy, Debug, ClapArgs)]
#[group(required = true, multiple = false)]
pub(crate) struct DecisionFlags {
    /// The call may run, once.
    #[arg(long)]
    approve: bool,

    /// The call may not run.
    #[arg(long)]
    deny: bool,
}

impl DecisionFlags {
    pub(crate) fn decision(self) -> Decision {
        // Exactly one of the two is there; if that ever fails, nothing is allowed by it.
        match (self.approve, self.deny) {
            (true, false) => Decision::Approved,
            (_, true) | (false, false) => Decision::Denied,
        }
    }
}

pub(super) fn person(name: &str) -> Result<String, String> {
    match name.trim() {
        "" => Err("say who answers".to_owned()),
        _ => Ok(name.to_owned()),
    }
}

fn digest(text: &str) -> Result<ArgumentsDigest, String> {
    let wrong = || "a digest has 32 hex digits; 'throughline approvals list' shows it".to_owned();
    let digits = text.as_bytes();
    if digits.len() != 32 {
        return Err(wrong());
    }
    let mut digest = ArgumentsDigest::default();
    for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        let (high, low) = digit(0).zip(digit(1)).ok_or_else(wrong)?;
        *byte = u8::try_from(high << 4 | low).map_err(|_| wrong())?;
    }
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn a_digest_is_read_in_either_case_and_whole() {
        let mut bytes = [0; 16];
        bytes[0] = 0xa1;
        bytes[15] = 0x0f;
        let text = "a100000000000000000000000000000F";
        assert_eq!(digest(text), Ok(bytes));
        for wrong in [
            &text[1..],
            "",
            "+1".repeat(16).as_str(),
            "é".repeat(16).as_str(),
        ] {
            assert!(digest(wrong).is_err(), "{wrong}");
        }
    }
}
