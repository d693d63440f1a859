use throughline_model::json::ObjectWriter;

use crate::transcript::{self, Limits};
use crate::{DecodeError, Format, Loss, Losses};

/// A change that made a history acceptable to its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Where: `messages[3].contents[1]`.
    pub path: String,
    /// What kind of change.
    pub kind: String,
    /// What exactly, in words.
    pub detail: String,
}

impl Repair {
    /// Append as JSON.
    pub fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object
            .str("path", &self.path)
            .str("kind", &self.kind)
            .str("detail", &self.detail);
        object.end();
    }
}

/// A transcript in another format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The JSON text.
    pub output: String,
    /// What the target cannot say.
    pub losses: Vec<Loss>,
    /// What was changed so that the target accepts it.
    pub repairs: Vec<Repair>,
}

/// Convert a transcript file.
///
/// With `from` equal to `to`, and through `neutral`, this is a pure codec: no repair, no
/// reordering, no key added or dropped.
///
/// ```
/// use throughline_wire::convert;
///
/// let file = br#"[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}]"#;
/// let from = "openai-responses".parse().unwrap();
/// let neutral = "neutral".parse().unwrap();
/// let there = convert(file, &from, &neutral, Default::default()).unwrap();
/// let back = convert(there.output.as_bytes(), &neutral, &from, Default::default()).unwrap();
/// assert_eq!(back.output.as_bytes(), file);
/// ```
pub fn convert(
    file: &[u8],
    from: &Format,
    to: &Format,
    limits: Limits,
) -> Result<Converted, DecodeError> {
    let transcript = transcript::read(file, from, limits)?;
    let mut losses = Losses::default();
    let output = transcript::write(&transcript, to, &mut losses);
    Ok(Converted {
        output,
        losses: losses.into_vec(),
        repairs: Vec::new(),
    })
}
