//! Bytes of media: base64 and `data:` addresses.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

/// Vendors differ in whether they pad and in what stands in the bits that no byte needs.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Bytes in base64, padded.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The text whose bytes are given in base64, in either alphabet; `None` if they are not UTF-8.
pub(crate) fn decode_base64_text(data: &str) -> Option<String> {
    let data = data.replace('-', "+").replace('_', "/");
    String::from_utf8(LENIENT.decode(data).ok()?).ok()
}

/// The parts of a `data:` address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataUrl<'u> {
    /// The media type without its parameters, if the address has one.
    pub(crate) media_type: Option<&'u str>,
    /// What stands behind the comma.
    pub(crate) data: &'u str,
    /// Whether the data is in base64; otherwise it is percent-encoded text.
    pub(crate) is_base64: bool,
}

impl<'u> DataUrl<'u> {
    /// Take an address apart; `None` if it is not a `data:` address.
    pub(crate) fn parse(url: &'u str) -> Option<Self> {
        let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
        let media_type = head.split(';').next().filter(|name| !name.is_empty());
        Some(Self {
            media_type,
            data,
            is_base64: head.ends_with(";base64"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{DataUrl, decode_base64_text};

    #[test]
    fn text_comes_out_of_base_64() {
        let text = decode_base64_text;
        assert_eq!(text("").as_deref(), Some(""));
        assert_eq!(text("Zg==").as_deref(), Some("f"));
        assert_eq!(text("Zm8").as_deref(), Some("fo"));
        assert_eq!(text("Zm9vYg==").as_deref(), Some("foob"));
        assert_eq!(text("bmHDr3Zl").as_deref(), Some("na\u{ef}ve"));
        assert_eq!(text("/w=="), None, "not UTF-8");
        assert_eq!(text("_w=="), None, "not UTF-8");
        assert_eq!(text("Zm 9v"), None);
    }

    #[test]
    fn a_data_address_gives_its_type_and_bytes() {
        let url = |media_type, data, is_base64| DataUrl {
            media_type,
            data,
            is_base64,
        };
        assert_eq!(
            DataUrl::parse("data:image/png;x=1;base64,aGk="),
            Some(url(Some("image/png"), "aGk=", true))
        );
        assert_eq!(
            DataUrl::parse("data:;base64,aGk="),
            Some(url(None, "aGk=", true))
        );
        assert_eq!(
            DataUrl::parse("data:text/plain,hi"),
            Some(url(Some("text/plain"), "hi", false))
        );
        assert_eq!(DataUrl::parse("https://example.com/,"), None);
    }
}
