use std::fmt;

/// A place inside a document, for errors and losses: `messages[3].content[0].text`.
///
/// A path borrows its parent, so descending costs nothing until it is printed.
#[derive(Clone, Copy)]
pub enum Path<'p> {
    /// The document itself.
    Root,
    /// A member of an object.
    Key(&'p Path<'p>, &'p str),
    /// An element of an array.
    Index(&'p Path<'p>, usize),
}

impl<'p> Path<'p> {
    /// The place of a member.
    pub fn key(&'p self, key: &'p str) -> Self {
        Path::Key(self, key)
    }

    /// The place of an element.
    pub fn index(&'p self, index: usize) -> Self {
        Path::Index(self, index)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(parent, key) => {
                parent.fmt(f)?;
                if !matches!(parent, Path::Root) {
                    f.write_str(".")?;
                }
                f.write_str(key)
            }
            Self::Index(parent, index) => {
                parent.fmt(f)?;
                write!(f, "[{index}]")
            }
        }
    }
}
