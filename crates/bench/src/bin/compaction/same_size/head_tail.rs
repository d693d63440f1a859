//! Heads and tails of long texts.

use std::collections::HashMap;
use std::sync::Arc;

use throughline_model::{Body, Message, Output};
use throughline_testkit::trajectory::message_texts;

use crate::count::Counter;
use crate::groups::{MessageGroup, is_system};

/// Characters that a text may have, from most to least.
const CAPS: [usize; 16] = [
    16_000, 11_000, 8_000, 5_600, 4_000, 2_800, 2_000, 1_400, 1_000, 700, 500, 350, 240, 160, 100,
    50,
];

/// Groups with their texts cut, as far as they were needed.
#[derive(Default)]
pub(super) struct HeadTail {
    cut: HashMap<(usize, usize), MessageGroup>,
}

impl HeadTail {
    /// Groups from this one on have changed.
    pub(super) fn forget_from(&mut self, place: usize) {
        self.cut.retain(|(group, _), _| *group < place);
    }

    /// The longest heads and tails of the groups before `recent` with which all fits; the shortest
    /// if none does.
    pub(super) fn fit(
        &mut self,
        groups: &[MessageGroup],
        recent: usize,
        limit: u64,
        counter: &mut Counter,
    ) -> Vec<MessageGroup> {
        let rest: u64 = groups[recent..]
            .iter()
            .map(|group| counter.view(group))
            .sum();
        let mut size = |cap: usize| -> u64 {
            let older = groups[..recent].iter().enumerate();
            let older = older.map(|(place, group)| counter.view(self.cut(place, cap, group)));
            older.sum::<u64>() + rest
        };
        let fits = |cap: &usize| size(*cap) > limit;
        let place = CAPS.partition_point(fits).min(CAPS.len() - 1);
        let older = groups[..recent].iter().enumerate();
        let mut out: Vec<_> = older
            .map(|(place_of, group)| self.cut(place_of, CAPS[place], group).clone())
            .collect();
        out.extend_from_slice(&groups[recent..]);
        out
    }

    fn cut(&mut self, place: usize, cap: usize, group: &MessageGroup) -> &MessageGroup {
        let cut = || match is_system(group) {
            true => group.clone(),
            false => group
                .iter()
                .map(|message| shortened(message, cap))
                .collect(),
        };
        self.cut.entry((place, cap)).or_insert_with(cut)
    }
}

fn shortened(message: &Arc<Message>, cap: usize) -> Arc<Message> {
    if message_texts(message).iter().all(|text| text.len() <= cap) {
        return Arc::clone(message);
    }
    let texts = message_texts(message);
    let mut message = (**message).clone();
    for (content, text) in message.contents.iter_mut().zip(texts) {
        match &mut content.body {
            Body::Text(shown) => shown.text = ends(&text, cap),
            Body::ToolResult(result) if text.len() > cap => {
                result.output = Output::Text(ends(&text, cap));
            }
            _ => {}
        }
    }
    Arc::new(message)
}

/// Two thirds head, one third tail.
fn ends(text: &str, cap: usize) -> String {
    if text.len() <= cap {
        return text.to_owned();
    }
    let from = |at: usize| (at..=text.len()).find(|at| text.is_char_boundary(*at));
    let head = from(cap * 2 / 3).unwrap_or(text.len());
    let tail = from(text.len() - cap / 3).unwrap_or(text.len());
    format!("{}\n[…]\n{}", &text[..head], &text[tail..])
}
