//! Suggestions for misspelt names.

/// Names longer than this are not compared: the work grows with the product of the lengths.
const MAX_LENGTH: usize = 64;

/// The known names that are close to another one, the closest first, three at most.
pub(crate) fn suggest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let Some(name) = normalized(name) else {
        return Vec::new();
    };
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|candidate| {
            let distance = strsim::osa_distance(&name, &normalized(candidate)?);
            (distance <= allowed).then_some((distance, candidate))
        })
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(3).map(|(_, name)| name).collect()
}

/// A question to put behind an error message; empty without names.
pub(crate) fn did_you_mean(names: &[impl AsRef<str>]) -> String {
    let quoted: Vec<String> = names
        .iter()
        .map(|name| format!("{:?}", name.as_ref()))
        .collect();
    match quoted.is_empty() {
        true => String::new(),
        false => format!("; did you mean {}?", quoted.join(" or ")),
    }
}

/// A name without case and separators: `base_url`, `baseUrl` and `Base-URL` are the same. None if
/// nothing is left or too much.
fn normalized(name: &str) -> Option<String> {
    let letters = name
        .chars()
        .filter(|letter| !matches!(letter, '_' | '-' | ' '));
    let letters = letters.flat_map(char::to_lowercase);
    let name: String = letters.take(MAX_LENGTH + 1).collect();
    (1..=MAX_LENGTH)
        .contains(&name.chars().count())
        .then_some(name)
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, suggest};

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["listen", "store", "base_url", "claude-fable-5"];
        assert_eq!(suggest("listn", known), ["listen"]);
        assert_eq!(suggest("baseUrl", known), ["base_url"]);
        assert_eq!(suggest("claude-fable5", known), ["claude-fable-5"]);
        assert_eq!(suggest("colour", known), [""; 0]);
        assert_eq!(suggest("", known), [""; 0]);
        assert_eq!(suggest(&"x".repeat(1000), known), [""; 0]);
    }

    #[test]
    fn a_question_names_what_is_suggested() {
        assert_eq!(did_you_mean(&["a", "b"]), "; did you mean \"a\" or \"b\"?");
        assert_eq!(did_you_mean(&[""; 0]), "");
    }
}
