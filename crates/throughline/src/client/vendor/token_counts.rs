//! Implausible token counts.

use throughline_model::Usage;

/// Larger counts are implausible. Sums of counts up to this do not overflow.
const LARGEST: u64 = 1 << 40;

/// Clamps implausible counts: a part is at most its whole, and no count is larger than [`LARGEST`].
/// The vendor's own object does not change.
pub(super) fn clamp(upstream: &str, usage: &mut Usage) {
    let told = usage.clone();
    let (input, output) = (&mut usage.input, &mut usage.output);
    for figure in [&mut *input, &mut *output, &mut usage.total] {
        *figure = figure.map(|figure| figure.min(LARGEST));
    }
    let (input, output) = (input.unwrap_or(LARGEST), output.unwrap_or(LARGEST));
    for (part, whole) in [
        (&mut usage.cache_read, input),
        (&mut usage.cache_write, input),
        (&mut usage.reasoning, output),
    ] {
        *part = part.map(|part| part.min(whole));
    }
    if *usage != told {
        tracing::warn!(
            upstream,
            input = told.input,
            output = told.output,
            total = told.total,
            cache_read = told.cache_read,
            cache_write = told.cache_write,
            reasoning = told.reasoning,
            "the service reports token counts that cannot be, and they are clamped"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_at_most_its_whole_and_nothing_overflows() {
        let mut usage = Usage {
            input: Some(10),
            output: Some(u64::MAX),
            total: Some(u64::MAX),
            cache_read: Some(11),
            cache_write: Some(u64::MAX),
            reasoning: Some(u64::MAX),
            ..Usage::default()
        };
        clamp("test", &mut usage);
        let figures = |usage: &Usage| {
            let Usage {
                input,
                output,
                total,
                ..
            } = usage;
            [*input, *output, *total].map(Option::unwrap)
        };
        assert_eq!(figures(&usage), [10, LARGEST, LARGEST]);
        let parts = [usage.cache_read, usage.cache_write, usage.reasoning];
        assert_eq!(parts, [Some(10), Some(10), Some(LARGEST)]);
        let sound = usage.clone();
        clamp("test", &mut usage);
        assert_eq!(usage, sound);
        let mut absent = Usage {
            cache_read: Some(5),
            ..Usage::default()
        };
        clamp("test", &mut absent);
        assert_eq!((absent.input, absent.cache_read), (None, Some(5)));
    }
}
