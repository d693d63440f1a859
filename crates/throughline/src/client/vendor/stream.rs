//! Reads an event stream as it arrives.

use std::collections::VecDeque;

use throughline_model::{Event, json};
use throughline_wire::sse::{Decoder, End, Frame, Limits, SseError};
use throughline_wire::{Codec, DocumentKind, StreamDecoder};

use super::answer::{Head, VendorAnswer};
use super::answer_memory::AnswerMemory;
use super::dialect::EndMark;
use super::{accepted, token_counts, whole};
use crate::client::http::BodyReader;
use crate::client::{ClientError, ErrorKind};

/// The events of one answer. It ends after [`Event::Finished`] or an error.
pub(super) struct EventReader {
    codec: &'static Codec,
    head: Head,
    body: BodyReader,
    memory: AnswerMemory,
    /// How many bytes arrived since the last complete frame.
    unread: usize,
    sse: Decoder,
    frames: Box<dyn StreamDecoder>,
    ready: VecDeque<Event>,
    /// The id of the answer, once known.
    id: Option<String>,
    /// Whether it was decided if the answer can be asked for later.
    decided: bool,
    end_mark: EndMark,
    /// Whether the closing frame arrived.
    closed: bool,
    /// Whether the body was read to its end.
    read: bool,
    over: bool,
}

impl EventReader {
    pub(super) fn new(
        codec: &'static Codec,
        answer: VendorAnswer,
        limits: Limits,
        end_mark: EndMark,
    ) -> Self {
        let mut sse = Decoder::new(limits);
        if let Some(first) = &answer.first {
            sse.push(first);
        }
        Self {
            codec,
            head: answer.head,
            body: answer.body,
            memory: answer.memory,
            unread: 0,
            sse,
            frames: codec.stream(),
            ready: VecDeque::new(),
            id: None,
            decided: false,
            end_mark,
            closed: false,
            read: false,
            over: false,
        }
    }

    /// The next event; `None` after the end of the answer.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        loop {
            if self.over {
                self.body.linger().await;
                return Ok(None);
            }
            if let Some(event) = self.ready.pop_front() {
                return self.give(event).map(Some);
            }
            if let Some(frame) = self.sse.next_frame().map_err(|error| self.broken(error))? {
                self.unread = 0;
                self.take(&frame)?;
            } else if self.read {
                let text = "the stream ended before the answer did";
                return Err(self.head.error(ErrorKind::Cut, text));
            } else {
                self.memory.cover(self.unread, &self.head).await?;
                let piece = self.body.next().await;
                match piece.map_err(|error| self.head.of(error))? {
                    Some(piece) => {
                        self.unread += piece.len();
                        self.sse.push(&piece);
                    }
                    None => self.finish()?,
                }
            }
        }
    }

    /// Returns an event, unless it is the end of an incomplete answer.
    fn give(&mut self, mut event: Event) -> Result<Event, ClientError> {
        self.memory.event(&event);
        match &mut event {
            Event::Started { id: Some(id), .. } => self.id = Some(id.clone()),
            Event::Finished {
                stop,
                error,
                service,
                vendor,
                usage,
            } => {
                whole::check(&self.head, stop, error.as_ref())?;
                if let Some(usage) = usage {
                    token_counts::clamp(&self.head.upstream, usage);
                }
                let stored_by = &self.head.stored_by;
                *service = stored_by.service(service.take(), self.id.as_deref(), vendor.as_deref());
                self.over = true;
                self.body.settle();
            }
            Event::Started { id: None, .. }
            | Event::Accepted { .. }
            | Event::Speaker { .. }
            | Event::Opened { .. }
            | Event::Delta { .. }
            | Event::Summary { .. }
            | Event::Content { .. }
            | Event::Other { .. } => {}
        }
        Ok(event)
    }

    fn take(&mut self, frame: &Frame) -> Result<(), ClientError> {
        self.closed |= frame.is_done();
        let events = self.frames.push(frame);
        let mut events = events.map_err(|error| whole::malformed(&self.head, error))?;
        if !self.decided {
            let stored = || accepted::says_stored(frame);
            self.decided = accepted::insert(&self.head, &mut events, stored);
        }
        let known = |event: &Event| !matches!(event, Event::Other { .. });
        if !events.iter().any(known) {
            self.look_for_error(frame)?;
        }
        self.ready.extend(events);
        Ok(())
    }

    /// Gateways insert errors of their own form into streams of other formats.
    fn look_for_error(&self, frame: &Frame) -> Result<(), ClientError> {
        let named = frame.event.as_deref() == Some("error");
        if !named && !frame.data.contains("\"error\"") {
            return Ok(());
        }
        match json::parse(&frame.data) {
            Ok(value) if named || self.codec.document_kind(&value) == DocumentKind::Error => {
                Err(whole::error_instead(self.codec, &self.head, &value))
            }
            _ => Ok(()),
        }
    }

    /// The body has ended: processes what was held back.
    fn finish(&mut self) -> Result<(), ClientError> {
        self.read = true;
        let end = self.sse.finish().map_err(|error| match error {
            // The last character is incomplete.
            SseError::InvalidUtf8 { .. } => {
                let text = "the stream ended inside an event";
                self.head.error(ErrorKind::Cut, text).with_source(error)
            }
            other => self.broken(other),
        })?;
        if let End::Unterminated(frame) = end
            && let Err(error) = self.take(&frame)
        {
            // An incomplete frame means a broken connection; an error in it counts as an error.
            return Err(match error.kind() {
                ErrorKind::Malformed => {
                    let text = "the stream ended inside an event";
                    self.head.error(ErrorKind::Cut, text).with_source(error)
                }
                _ => error,
            });
        }
        let must_close = match self.end_mark {
            EndMark::Required => self.codec.wire() == throughline_model::Wire::OpenAiChat,
            EndMark::Lenient => false,
        };
        if self.closed || !must_close {
            let events = self.frames.end();
            let events = events.map_err(|error| whole::malformed(&self.head, error))?;
            self.ready.extend(events);
        }
        Ok(())
    }

    fn broken(&self, error: SseError) -> ClientError {
        let (kind, text) = match error {
            SseError::LineTooLong { .. } | SseError::EventTooLarge { .. } => {
                (ErrorKind::TooLarge, "an event of the answer is too large")
            }
            _ => (ErrorKind::Malformed, "the answer is no event stream"),
        };
        self.head.error(kind, text).with_source(error)
    }
}
