//! Names in texts: paths, file names, identifiers, ids and hashes.

/// The names in a text, each once, in the order in which they appear.
///
/// A path is represented by its last two components, because that is what it takes to find it
/// again. Plain words and small numbers are no names.
///
/// ```
/// use throughline_testkit::trajectory::atoms;
///
/// let found = atoms("go test ./... -run TestPhase && cat /project/src/phase.go # see e53647b");
/// assert_eq!(found, ["TestPhase", "src/phase.go", "e53647b"]);
/// ```
pub fn atoms(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for token in text.split(|c: char| !in_token(c)) {
        let atom = match token.contains('/') {
            true => path(token),
            false => name(token),
        };
        if let Some(atom) = atom
            && !found.contains(&atom)
        {
            found.push(atom);
        }
    }
    found
}

/// Whether a name occurs in a text, and not only as part of a longer one.
///
/// ```
/// use throughline_testkit::trajectory::stands_in;
///
/// assert!(stands_in("see src/phase.go:12", "src/phase.go"));
/// assert!(!stands_in("see src/phase.golden", "src/phase.go"));
/// assert!(!stands_in("my_phase_one", "phase_one"));
/// ```
pub fn stands_in(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(continues) && !after.is_some_and(continues)
    })
}

fn continues(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

pub(super) fn in_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~' | '@' | '+')
}

fn path(token: &str) -> Option<String> {
    let whole: Vec<&str> = token
        .split('/')
        .map(|part| part.trim_end_matches(['.', '-', '@', '+']))
        .filter(|part| !part.is_empty() && *part != "~")
        .collect();
    match whole.as_slice() {
        [] => None,
        [only] => name(only),
        [.., parent, last] => {
            let named = last.len() >= 2 && has_letter(last) && has_letter(parent);
            named.then(|| format!("{parent}/{last}"))
        }
    }
}

fn name(token: &str) -> Option<String> {
    let token = token.trim_matches(['.', '-', '~', '@', '+']);
    let telling = is_file(token) || is_identifier(token) || is_id(token);
    telling.then(|| token.to_owned())
}

/// A stem with a short extension.
fn is_file(token: &str) -> bool {
    let Some((stem, extension)) = token.rsplit_once('.') else {
        return false;
    };
    let short = (1..=5).contains(&extension.len());
    let starts = extension.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain = extension.chars().all(|c| c.is_ascii_alphanumeric());
    short && starts && plain && stem.len() >= 2 && has_letter(stem)
}

/// Several words in one: with underscores, or with inner capitals.
fn is_identifier(token: &str) -> bool {
    if token.len() < 5 || !has_letter(token) {
        return false;
    }
    let bytes = token.as_bytes();
    let humps = bytes
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let joined = bytes.windows(3).any(|three| {
        three[0].is_ascii_alphanumeric() && three[1] == b'_' && three[2].is_ascii_alphanumeric()
    });
    humps || joined
}

/// Digits among letters, or a long number.
fn is_id(token: &str) -> bool {
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    token.len() >= 6 && digits > 0 && (has_letter(token) || digits == token.len())
}

fn has_letter(token: &str) -> bool {
    token.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::{atoms, stands_in};

    #[test]
    fn names_are_told_from_words() {
        assert_eq!(
            atoms("Read the session.go file, then sessionPhase and IsEnabled() in my_module."),
            ["session.go", "sessionPhase", "IsEnabled", "my_module"]
        );
        assert!(
            atoms("The Transition was long-term, at 10:30 on 2024-05-27, 42 of 100").is_empty()
        );
        assert_eq!(
            atoms("reservation NO6JO3 of mia_li_3668 in ENT-221 at 4421486"),
            ["NO6JO3", "mia_li_3668", "ENT-221", "4421486"]
        );
    }

    #[test]
    fn a_path_is_its_last_two_components() {
        assert_eq!(
            atoms("/a/b/c.rs ./main.rs ../d/ef/ ~/f/g.md"),
            ["b/c.rs", "main.rs", "d/ef", "f/g.md"]
        );
        assert!(atoms("./... / // ~ 1/2").is_empty());
    }

    #[test]
    fn a_name_inside_another_does_not_stand_there() {
        assert!(stands_in("(foo_bar)", "foo_bar"));
        assert!(stands_in("xfoo_bar foo_bar", "foo_bar"));
        assert!(!stands_in("xfoo_bar foo_bars", "foo_bar"));
        assert!(stands_in("häfoo/bar.rs", "foo/bar.rs"));
    }
}
