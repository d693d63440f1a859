//! Bodies: compressed or not, too large, too slow, too deep.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::http::support::{Answer, Client, end, start};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

type Encode = fn(&[u8]) -> Vec<u8>;
const ENCODINGS: [(&str, Encode); 3] = [("gzip", gzip), ("deflate", deflate), ("zstd", zstd)];

/// Text that does not compress too well.
fn text(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (state >> 24) as u8 % 26
    };
    (0..length).map(|_| letter()).collect()
}

fn summed(bytes: &[u8]) -> String {
    let sum: u64 = bytes.iter().map(|byte| u64::from(*byte)).sum();
    format!("{} {sum}", bytes.len())
}

async fn post(client: &mut Client, encoding: &str, body: &[u8]) -> Answer {
    let headers = [("content-encoding", encoding)];
    client.send("POST /echo", &headers, body).await
}

#[tokio::test]
async fn compressed_bodies_are_what_they_were() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    for size in [0, 1, 1000, 300_000] {
        let plain = text(size);
        let answer = post(&mut client, "identity", &plain).await;
        assert_eq!(
            (answer.status, answer.body),
            (200, summed(&plain)),
            "{size}"
        );
        for (name, encode) in ENCODINGS {
            let answer = post(&mut client, name, &encode(&plain)).await;
            assert_eq!(
                (answer.status, answer.body),
                (200, summed(&plain)),
                "{name} {size}"
            );
        }
    }
    // An empty body has no encoding to speak of.
    assert_eq!(post(&mut client, "gzip", b"").await.body, "0 0");
    end(server).await;
}

#[tokio::test]
async fn a_body_in_many_small_chunks_is_one_body() {
    let server = start("").await;
    let mut client = Client::to(server.address).await;
    let plain = text(50_000);
    let packed = gzip(&plain);
    client
        .write(
            b"POST /echo HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\
              content-encoding: gzip\r\n\r\n",
        )
        .await;
    for piece in packed.chunks(7) {
        client
            .write(format!("{:x}\r\n", piece.len()).as_bytes())
            .await;
        client.write(piece).await;
        client.write(b"\r\n").await;
    }
    client.write(b"0\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.body), (200, summed(&plain)));
    end(server).await;
}

#[tokio::test]
async fn damaged_and_unknown_encodings_are_refused() {
    let server = start("").await;
    for (name, encode) in ENCODINGS {
        let whole = encode(&text(5_000));
        let cut = &whole[..whole.len() - 5];
        let mut client = Client::to(server.address).await;
        let answer = post(&mut client, name, cut).await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "invalid_content_encoding")
        );
        let answer = post(&mut client, name, b"this is not compressed at all").await;
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "invalid_content_encoding")
        );
    }
    let mut client = Client::to(server.address).await;
    for name in ["br", "gzip, gzip", "x"] {
        let answer = post(&mut client, name, b"x").await;
        let found = (answer.status, answer.code());
        assert_eq!(
            found,
            (415, "unsupported_content_encoding".to_owned()),
            "{name}"
        );
    }
    end(server).await;
}

#[tokio::test]
async fn bodies_are_bounded_before_and_after_decompression() {
    let server = start("[limits]\nbody_bytes = 2048\n").await;
    let too_large = |answer: &Answer| {
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (413, "request_too_large")
        );
        assert!(answer.body.contains("2048"), "{}", answer.body);
    };
    let mut client = Client::to(server.address).await;
    assert_eq!(post(&mut client, "identity", &text(2048)).await.status, 200);
    // By what the head says, without reading on.
    too_large(&post(&mut client, "identity", &text(2049)).await);
    // By what comes, whatever the head says.
    let mut client = Client::to(server.address).await;
    client
        .write(b"POST /echo HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    client.write(b"1000\r\n").await;
    client.write(&text(0x1000)).await;
    too_large(&client.answer().await);
    for (name, encode) in ENCODINGS {
        let mut client = Client::to(server.address).await;
        let body = encode(&[b'a'; 2049]);
        assert!(body.len() < 200);
        too_large(&post(&mut client, name, &body).await);
    }
    end(server).await;
}

#[tokio::test]
async fn bombs_are_stopped_by_how_much_they_grow() {
    let server = start("[limits]\ndecoded_ratio = 10\n").await;
    let bomb = vec![b'a'; 4 << 20];
    for (name, encode) in ENCODINGS {
        let mut client = Client::to(server.address).await;
        let answer = post(&mut client, name, &encode(&bomb)).await;
        assert_eq!(answer.status, 413, "{name}");
        assert!(
            answer.body.contains("limits.decoded_ratio"),
            "{}",
            answer.body
        );
        // What is small may grow as it likes.
        let small = vec![b'a'; 1 << 20];
        let mut client = Client::to(server.address).await;
        assert_eq!(post(&mut client, name, &encode(&small)).await.status, 200);
    }
    end(server).await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let server = start("[limits]\nbody_seconds = 1\n").await;
    let mut client = Client::to(server.address).await;
    client
        .write(b"POST /echo HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\nhalf")
        .await;
    // The server waits, not the test.
    let answer = client.answer().await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (408, "request_timeout")
    );
    end(server).await;
}

#[tokio::test]
async fn json_deeper_than_the_limit_is_refused() {
    let server = start("[limits]\njson_depth = 8\n").await;
    let mut client = Client::to(server.address).await;
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let answer = client.send("POST /echo", &[], nested(8).as_bytes()).await;
    assert_eq!(answer.status, 200);
    let answer = client.send("POST /echo", &[], nested(9).as_bytes()).await;
    assert_eq!(answer.status, 400);
    assert!(answer.error("message").unwrap().contains("8 levels"));
    end(server).await;
}

#[tokio::test]
async fn bodies_together_take_a_bounded_amount_of_memory() {
    // Room for two bodies of 10 MiB: each counts six times, and an eighth is left to small ones.
    let server = start("[limits]\nmemory = 268435456\nhistory_bytes = 0\n").await;
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut client = Client::to(server.address).await;
        client
            .write(b"POST /echo HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 10485760\r\n\r\n")
            .await;
        client.write(&text((10 << 20) - 1)).await;
        slow.push(client);
    }
    // A third one gets in only if the first two were not read yet, and then one of those does not.
    let mut third = Client::to(server.address).await;
    third
        .write(b"POST /echo HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 10485760\r\n\r\n")
        .await;
    third.write(&text((10 << 20) - 1)).await;
    // Small ones always get in.
    let mut small = Client::to(server.address).await;
    assert_eq!(
        post(&mut small, "identity", &text(10_000)).await.status,
        200
    );
    slow.push(third);
    let refused = first_refused(&mut slow).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (503, "out_of_memory")
    );
    assert_eq!(refused.header("retry-after"), Some("1"));
    // The others are still waited for, and get their answer.
    for client in &mut slow {
        client.write(b"x").await;
        assert_eq!(client.answer().await.status, 200);
    }
    // One that can never be taken is not to be tried again.
    let mut large = Client::to(server.address).await;
    let answer = post(&mut large, "identity", &text(24 << 20)).await;
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, "request_too_large")
    );
    assert!(answer.error("message").unwrap().contains("limits.memory"));
    end(server).await;
}

/// The answer to whichever client is answered first; the others stay.
async fn first_refused(clients: &mut Vec<Client>) -> Answer {
    let answers = clients.iter_mut().map(|client| Box::pin(client.answer()));
    let (answer, at, _) = futures_util::future::select_all(answers).await;
    clients.remove(at);
    answer
}
