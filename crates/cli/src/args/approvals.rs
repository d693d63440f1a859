//! Commands about calls that wait for somebody's word.

use clap::{Args as ClapArgs, Subcommand};
use throughline_store::{ApprovalId, Decision, PageToken, Shown, ThreadId};

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List calls that wait for somebody's word, newest first.
    List(ApprovalsList),
    /// Answer one. The answer is recorded; the tool runs when its run goes on.
    Answer(ApprovalsAnswer),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ApprovalsList {
    /// Only those of this thread.
    #[arg(long, value_name = "ID", value_parser = super::store::thread)]
    pub(crate) thread: Option<ThreadId>,

    /// Those too that are answered, used, expired or withdrawn.
    #[arg(long)]
    pub(crate) all: bool,

    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,

    /// Go on where another page ended.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) after: Option<PageToken>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ApprovalsAnswer {
    /// The approval, appr_….
    #[arg(value_name = "ID")]
    pub(crate) approval: ApprovalId,

    #[command(flatten)]
    pub(crate) word: Word,

    /// Why, in words that the model may read.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// Who answers; the user of this machine if nobody is named.
    #[arg(long, value_name = "NAME", value_parser = somebody)]
    pub(crate) by: Option<String>,

    /// The digest of what you were shown; if the call has other arguments, nothing is answered.
    #[arg(long, value_name = "HEX", value_parser = digest)]
    pub(crate) digest: Option<Shown>,
}

#[derive(Clone, Copy, Debug, ClapArgs)]
#[group(required = true, multiple = false)]
pub(crate) struct Word {
    /// The call may run, once.
    #[arg(long)]
    approve: bool,

    /// The call may not run.
    #[arg(long)]
    deny: bool,
}

impl Word {
    pub(crate) fn decision(self) -> Decision {
        // Exactly one of the two is there; if that ever fails, nothing is allowed by it.
        match (self.approve, self.deny) {
            (true, false) => Decision::Approved,
            (_, true) | (false, false) => Decision::Denied,
        }
    }
}

fn somebody(name: &str) -> Result<String, String> {
    match name.trim() {
        "" => Err("say who answers".to_owned()),
        _ => Ok(name.to_owned()),
    }
}

fn digest(text: &str) -> Result<Shown, String> {
    let wrong = || "a digest has 32 hex digits; 'throughline approvals list' shows it".to_owned();
    let digits = text.as_bytes();
    if digits.len() != 32 {
        return Err(wrong());
    }
    let mut digest = Shown::default();
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
