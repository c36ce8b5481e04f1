//! Hostile and honest bytes for the HTTP reader.

use super::*;
use std::io::{Read, Write};
use std::time::Instant;

const LIMITS: Limits = Limits { head: 1024, body: 4096, idle: None, head_timeout: None };

/// Gives at most so many bytes a read.
struct Drip<'a>(&'a [u8], usize);
impl Read for Drip<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.0.len().min(self.1).min(buf.len());
        buf[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}
impl Source for Drip<'_> {
    fn bound(&mut self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

fn request(bytes: &[u8], step: usize) -> Result<Request, Fault> {
    Reader::new(Drip(bytes, step)).request(&LIMITS, |_| Ok(()))
}

fn status(bytes: &[u8]) -> u16 {
    let mut seen = None;
    for step in [1, 2, 3, 7, 4096] {
        let status = match request(bytes, step) {
            Err(Fault::Bad(status, _)) => status,
            other => panic!("{:?} gave {other:?} in steps of {step}", String::from_utf8_lossy(bytes)),
        };
        assert_eq!(*seen.get_or_insert(status), status, "in steps of {step}");
    }
    seen.unwrap()
}

#[test]
fn requests_are_the_same_however_they_arrive() {
    let wire = b"POST /v1/call?x=1 HTTP/1.1\r\nHost: mcpx\r\nX-A:  b c \r\nContent-Length: 5\r\n\r\nhello\
                 GET / HTTP/1.1\r\nhost: h\r\nConnection: close\r\n\r\n\
                 POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: v\r\n\r\n\
                 \r\nGET /last HTTP/1.0\r\n\r\n";
    for step in 1..wire.len() {
        let mut reader = Reader::new(Drip(wire, step));
        let mut next = || reader.request(&LIMITS, |_| Ok(())).unwrap();
        let a = next();
        assert_eq!((a.method, a.target.as_str(), &a.body[..]), (Method::Post, "/v1/call?x=1", &b"hello"[..]));
        assert_eq!(a.headers.get("x-a"), Some("b c"));
        assert!(a.keep_alive);
        let b = next();
        assert!(!b.keep_alive && b.body.is_empty());
        assert_eq!(next().body, b"abc0123456789");
        let d = next();
        assert_eq!(d.target, "/last");
        assert!(!d.keep_alive);
        assert!(matches!(reader.request(&LIMITS, |_| Ok(())), Err(Fault::Closed)));
    }
}

#[test]
fn a_message_that_ends_early_is_no_message() {
    let wire = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello";
    for cut in 1..wire.len() {
        assert!(matches!(request(&wire[..cut], 4), Err(Fault::Io(_))), "cut at {cut}");
    }
    assert!(matches!(request(b"", 1), Err(Fault::Closed)));
}

#[test]
fn malformed_heads_are_refused() {
    for bad in [
        &b"GET\r\n\r\n"[..],
        b"GET /\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1 \r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
        b"G@T / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : h\r\n\r\n",
        b"GET / HTTP/1.1\r\n: h\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX: \0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX: \xc3\x28\r\n\r\n",
    ] {
        assert_eq!(status(bad), 400, "{:?}", String::from_utf8_lossy(bad));
    }
    assert_eq!(status(b"BREW / HTTP/1.1\r\nHost: h\r\n\r\n"), 501);
    assert_eq!(status(b"GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505);
    assert_eq!(status(b"GET / SPDY/1\r\nHost: h\r\n\r\n"), 400);
}

#[test]
fn lengths_that_could_hide_a_second_request_are_refused() {
    for bad in [
        "Content-Length: -1",
        "Content-Length: +5",
        "Content-Length: 5, 5",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 0x5",
        "Content-Length: ",
        "Content-Length: 99999999999999999999",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    ] {
        assert_eq!(
            status(format!("POST / HTTP/1.1\r\nHost: h\r\n{bad}\r\n\r\nhello").as_bytes()),
            400,
            "{bad}"
        );
    }
    for (bad, wanted) in [
        ("Transfer-Encoding: gzip, chunked", 501),
        ("Transfer-Encoding: identity", 501),
        ("Content-Length: 4097", 413),
        ("Expect: the-moon\r\nContent-Length: 5", 417),
    ] {
        assert_eq!(
            status(format!("POST / HTTP/1.1\r\nHost: h\r\n{bad}\r\n\r\nhello").as_bytes()),
            wanted,
            "{bad}"
        );
    }
    assert_eq!(status(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
}

#[test]
fn malformed_chunks_are_refused() {
    for bad in
        ["\r\n", "g\r\n", "-1\r\n", "5 5\r\n", "3\r\nabcd\r\n", "3\r\nabcX\r\n", "fffffffffffffffff\r\n"]
    {
        let wire = format!("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{bad}0\r\n\r\n");
        assert_eq!(status(wire.as_bytes()), 400, "{bad:?}");
    }
    let long = format!("1;{}", "x".repeat(300));
    let wire =
        format!("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{long}\r\na\r\n0\r\n\r\n");
    assert_eq!(status(wire.as_bytes()), 400);
    let wire = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n";
    let mut big = wire.to_vec();
    for _ in 0..3 {
        big.extend(vec![b'x'; 0x800]);
        big.extend(b"\r\n800\r\n");
    }
    assert_eq!(status(&big), 413);
}

#[test]
fn heads_have_limits() {
    let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(2000));
    assert_eq!(status(long.as_bytes()), 431);
    let endless = vec![b'x'; 5000];
    assert_eq!(status(&endless), 431);
    let many = format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "a:\r\n".repeat(120));
    assert_eq!(status(many.as_bytes()), 431);
}

#[test]
fn leave_to_send_is_given_once() {
    let wire = b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi";
    let mut asked = 0;
    let request = Reader::new(Drip(wire, 1))
        .request(&LIMITS, |_| {
            asked += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!((asked, &request.body[..]), (1, &b"hi"[..]));
}

#[test]
fn a_trickle_is_cut_off() {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    let limits = Limits {
        head: 1024,
        body: 4096,
        idle: Some(Duration::from_millis(50)),
        head_timeout: Some(Duration::from_millis(80)),
    };
    // Silence between messages, in a head, and in a body; then one byte at a time.
    for (sent, wanted) in [
        (&b""[..], None),
        (b"GET / HT", Some(408)),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\n\r\nab", Some(408)),
        (b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n50\r\nab", Some(408)),
        (b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5", Some(408)),
    ] {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(sent).unwrap();
        let begun = Instant::now();
        let outcome = Reader::new(far).request(&limits, |_| Ok(()));
        match (wanted, outcome) {
            (None, Err(Fault::Closed)) => {}
            (Some(status), Err(Fault::Bad(got, _))) => assert_eq!(got, status),
            (_, other) => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    let (near, far) = UnixStream::pair().unwrap();
    let dripping = std::thread::Builder::new()
        .spawn(move || {
            let mut near = near;
            // Ends by itself when the reader hangs up.
            while near.write_all(b"a").is_ok() {
                std::thread::park_timeout(Duration::from_millis(5));
            }
        })
        .unwrap();
    let outcome = Reader::new(far).request(&limits, |_| Ok(()));
    assert!(matches!(outcome, Err(Fault::Bad(408, _))), "{outcome:?}");
    dripping.join().unwrap();
}

#[test]
fn responses_are_read_by_length_by_chunks_and_to_the_end() {
    let wire = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi\
                 HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n\
                 HTTP/1.1 204 No Content\r\n\r\n\
                 HTTP/1.1 200\r\nConnection: close\r\n\r\nthe rest";
    for step in 1..wire.len() {
        let mut reader = Reader::new(Drip(wire, step));
        let mut next = || reader.response(&LIMITS).unwrap();
        let a = next();
        assert_eq!((a.status, &a.body[..], a.keep_alive), (200, &b"hi"[..], true));
        let b = next();
        assert_eq!((b.status, &b.body[..]), (404, &b"no"[..]));
        assert_eq!(next().status, 204);
        let d = next();
        assert_eq!((&d.body[..], d.keep_alive), (&b"the rest"[..], false));
    }
    for bad in [&b"HTTP/1.1 2000 OK\r\n\r\n"[..], b"HTTP/1.1 ok\r\n\r\n", b"220 mail.example\r\n\r\n"] {
        assert!(matches!(Reader::new(bad).response(&LIMITS), Err(Fault::Bad(..))));
    }
}

#[test]
fn what_is_written_can_be_read() {
    let mut wire = Vec::new();
    write_request(&mut wire, Method::Post, "/v1/x", "X-Y: z\r\n", Some(b"{}")).unwrap();
    let request = Reader::new(&wire[..]).request(&LIMITS, |_| Ok(())).unwrap();
    assert_eq!((request.target.as_str(), &request.body[..]), ("/v1/x", &b"{}"[..]));
    assert_eq!(request.headers.get("x-y"), Some("z"));
    let mut wire = Vec::new();
    write_response(
        &mut wire,
        Head { headers: "Retry-After: 1\r\n", ..Head::json(503, false) },
        &[b"{\"a\":", b"", b"1}"],
    )
    .unwrap();
    let response = Reader::new(&wire[..]).response(&LIMITS).unwrap();
    assert_eq!((response.status, &response.body[..], response.keep_alive), (503, &b"{\"a\":1}"[..], false));
    assert_eq!(response.headers.get("retry-after"), Some("1"));
}

#[test]
fn parts_are_written_whole_through_short_writes() {
    /// Takes at most three bytes a write.
    struct Narrow(Vec<u8>);
    impl Write for Narrow {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            let n = buf.len().min(3);
            self.0.extend_from_slice(&buf[..n]);
            Ok(n)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut out = Narrow(Vec::new());
    write_parts(&mut out, &[b"abcd", b"", b"efghij", b"k"]).unwrap();
    assert_eq!(out.0, b"abcdefghijk");
}

#[test]
fn fifty_megabytes_pass_whole() {
    let body = vec![b'x'; 50 << 20];
    let mut wire = Vec::new();
    write_response(&mut wire, Head::json(200, true), &[&body]).unwrap();
    let response = Reader::new(&wire[..]).response(&Limits::PATIENT).unwrap();
    assert!(response.body == body);
    assert!(response.body.capacity() <= 2 * body.len());
}

#[test]
fn a_stream_arrives_chunk_by_chunk_and_an_unfinished_one_is_a_fault() {
    let head = Head { media: Some("text/event-stream"), ..Head::json(200, true) };
    let mut wire = Vec::new();
    let mut out = Chunked::begin(&mut wire, head, true).unwrap();
    for part in [&b"one"[..], b"", b"two\r\n"] {
        out.send(part).unwrap();
    }
    out.end().unwrap();
    let whole = wire.len();
    let mut seen: Vec<Vec<u8>> = Vec::new();
    let mut reader = Reader::new(&wire[..]);
    let response = reader.stream(&Limits::PATIENT, &mut |chunk| {
        seen.push(chunk.to_vec());
        Ok(())
    });
    let response = response.unwrap();
    assert_eq!((response.status, response.keep_alive, response.body.len()), (200, true, 0));
    assert_eq!(response.headers.get("content-type"), Some("text/event-stream"));
    assert_eq!(seen, [b"one".to_vec(), b"two\r\n".to_vec()]);
    // Read whole, it is one body; without its end, none.
    assert_eq!(Reader::new(&wire[..]).response(&Limits::PATIENT).unwrap().body, b"onetwo\r\n");
    let cut = Reader::new(&wire[..whole - 5]).stream(&Limits::PATIENT, &mut |_| Ok(()));
    assert!(matches!(cut, Err(Fault::Io(_))), "{cut:?}");
    // A sink that wants no more ends it.
    let full =
        Reader::new(&wire[..]).stream(&Limits::PATIENT, &mut |_| Err(std::io::ErrorKind::BrokenPipe.into()));
    assert!(matches!(full, Err(Fault::Io(_))), "{full:?}");
    // An error's body is not the stream.
    let mut wire = Vec::new();
    let mut out = Chunked::begin(&mut wire, Head::json(404, true), true).unwrap();
    out.send(b"{}").unwrap();
    out.end().unwrap();
    let refused = Reader::new(&wire[..]).stream(&Limits::PATIENT, &mut |_| panic!("an error is no stream"));
    assert_eq!(refused.unwrap().body, b"{}");
}

#[test]
fn a_peer_of_the_first_version_gets_the_bytes_and_the_end_of_the_connection() {
    let mut wire = Vec::new();
    let mut out = Chunked::begin(&mut wire, Head::json(200, true), false).unwrap();
    out.send(b"[1,").unwrap();
    out.send(b"2]").unwrap();
    out.end().unwrap();
    let text = String::from_utf8(wire.clone()).unwrap();
    assert!(text.contains("Connection: close\r\n") && !text.contains("chunked"), "{text}");
    assert_eq!(Reader::new(&wire[..]).response(&Limits::PATIENT).unwrap().body, b"[1,2]");
}

impl Source for crate::util::mutate::Pieces<'_> {
    fn bound(&mut self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn mutated_messages_are_the_same_however_they_are_cut() {
    let corpus: [&[u8]; 6] = [
        b"POST /v1/call?x=1 HTTP/1.1\r\nHost: mcpx\r\nContent-Length: 2\r\nX-Mcpx-Input: report\r\n\r\n{}GET / HTTP/1.1\r\n",
        b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        b"PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nT: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\nnull",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nall the rest",
    ];
    /// What a reader makes of it, without the words of a fault: where a cut falls decides which comes first.
    fn outcome<T: std::fmt::Debug>(of: &Result<T, Fault>) -> String {
        match of {
            Ok(message) => format!("{message:?}"),
            Err(Fault::Bad(status, _)) => format!("bad {status}"),
            Err(_) => "gone".into(),
        }
    }
    crate::util::mutate::each(&corpus, |bytes| {
        let mut reader = Reader::new(crate::util::mutate::Pieces::new(bytes));
        let read = reader.request(&LIMITS, |_| Ok(()));
        let pieces = reader.into_parts().0;
        assert_eq!(outcome(&read), outcome(&Reader::new(bytes).request(&LIMITS, |_| Ok(()))));
        assert!(read.is_err() || read.is_ok_and(|request| request.body.len() <= 4096));
        assert!(pieces.reads <= bytes.len() + 2, "nothing is asked for again");
        let read = Reader::new(crate::util::mutate::Pieces::new(bytes)).response(&LIMITS);
        assert_eq!(outcome(&read), outcome(&Reader::new(bytes).response(&LIMITS)));
    });
}
