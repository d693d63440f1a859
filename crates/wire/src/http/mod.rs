//! What a vendor's response says outside its body: request id, rate limits, and whether and when to try again.
//!
//! [`ResponseMeta::parse`] reads pairs of header names and values, so it works with any HTTP library. Values that
//! cannot be read are absent: a strange header never fails a response.
//!
//! There is no clock here. A moment stays the text that the vendor sent, and a caller that has a clock asks for the wait
//! with [`RetryAdvice::wait`] or [`Reset::wait`]. Hints in a body, such as Gemini's retry delay, are read where
//! bodies are read. How often to try, and the longest wait to accept, is the caller's policy.

mod date;
mod headers;
mod retry;
#[cfg(test)]
mod tests;

pub use headers::{Bucket, RateLimits, Reset, ResponseMeta};
pub use retry::{RetryAdvice, retryable};
