//! TLS of `serve`, with certificates of an authority that the test makes. Needs `openssl` and `curl`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use outlast_tests::certificates::certify;
use outlast_tests::http::Api;
use outlast_tests::process::{PATIENCE, Process, until};
use outlast_tests::repository;
use outlast_tests::world::World;
use serde_json::{Value, json};

/// Runs a command in the world's directory and returns what it printed.
fn shell(world: &World, command: &str) -> String {
    let output = Command::new("bash").args(["-ec", command]).current_dir(world.work()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

const TLS: [&str; 4] = ["--tls-cert", "a.pem", "--tls-key", "a.key"];

fn served(world: &World, more: &[&str]) -> (Process, String) {
    let listen = ["serve", "--no-workers", "--listen", "127.0.0.1:0"];
    let mut server = world.start(&[&listen[..], &TLS, more].concat());
    let line = server.line("its address", |line| line.starts_with("listening on https://"));
    (server, line.split(' ').nth(2).unwrap().to_owned())
}

/// Asks with curl, trusting an authority; none if it cannot be had.
fn get(world: &World, ca: &str, url: &str, more: &str) -> Option<Value> {
    serde_json::from_str(&shell(world, &format!("curl -s --max-time 30 --cacert {ca}-ca.pem {more} '{url}'")))
        .ok()
}

#[test]
fn files_that_do_not_fit_are_told_before_anything_listens() {
    let world = World::with_flows();
    certify(&world, "a");
    certify(&world, "b");
    world.write("garbled.pem", "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n");
    world.write("empty.pem", "");
    for (cert, key, fault) in [
        ("none.pem", "a.key", "none.pem"),
        ("a.pem", "none.key", "none.key"),
        ("garbled.pem", "a.key", "garbled.pem"),
        ("empty.pem", "a.key", "empty.pem: a certificate is expected"),
        ("a.key", "a.key", "a.key: a certificate is expected"),
        ("a.pem", "a.pem", "a.pem: a private key is expected"),
        ("a.pem", "b.key", "a.pem and b.key do not go together"),
    ] {
        let refused = world.run(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key]);
        assert_eq!(refused.code, Some(2), "{cert} {key}: {refused:?}");
        assert!(refused.stderr.contains(fault) && refused.stdout.is_empty(), "{cert} {key}: {refused:?}");
    }
    for half in [&["--tls-cert", "a.pem"][..], &["--tls-key", "a.key"]] {
        assert_eq!(
            world.run(&[&["serve", "--listen", "127.0.0.1:0"], half].concat()).code,
            Some(2),
            "{half:?}"
        );
    }
}

#[test]
fn clients_that_speak_no_tls_disturb_nobody() {
    let world = World::with_flows();
    certify(&world, "a");
    certify(&world, "b");
    let (_server, url) = served(&world, &["flows/desk.flow"]);
    let address = url.trim_start_matches("https://");
    let silent: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut odd = TcpStream::connect(address).unwrap();
    odd.write_all(&[0x16, 0x03, 0x01, 0xff, 0xff, 0x00, 0x01]).unwrap();
    let mut garbage = TcpStream::connect(address).unwrap();
    garbage.write_all(&[0; 1_000]).unwrap();
    let plain = Api::at(address).get("/v1/status");
    assert_eq!((plain.status, &plain.json()["error"]["code"]), (400, &json!("invalid")), "{plain:?}");
    assert!(plain.body.contains("https://"), "{plain:?}");
    let status = get(&world, "a", &format!("{url}/v1/status"), "").unwrap();
    assert_eq!(status["protocol"], 1);
    assert_eq!(get(&world, "b", &format!("{url}/v1/status"), ""), None, "another authority");
    // Those who never speak are sent away.
    for mut stream in silent.into_iter().chain([odd]) {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = Vec::new();
        assert!(stream.read_to_end(&mut rest).is_ok_and(|_| rest.len() < 100), "{rest:?}");
    }
}

#[test]
fn a_certificate_is_read_again_when_told_so() {
    let world = World::with_flows();
    certify(&world, "a");
    certify(&world, "b");
    let (server, url) = served(&world, &[]);
    let status = |ca: &str| get(&world, ca, &format!("{url}/v1/status"), "").is_some();
    let hang_up = || server.signal("HUP");
    assert!(status("a") && !status("b"));
    // The key of another certificate: the one in use stays.
    shell(&world, "cp a.pem old.pem; cp b.pem a.pem");
    hang_up();
    assert!(status("a"));
    shell(&world, "cp b.key a.key");
    hang_up();
    until("the new certificate", || status("b"));
    assert!(!status("a"));
}

#[test]
fn workers_and_clients_of_a_private_authority_come_through() {
    let world = World::with_flows();
    certify(&world, "a");
    let token = |name: &str, scopes: &str| {
        world.json(&["token", "add", name, "--scope", scopes, "--json"])["token"].as_str().unwrap().to_owned()
    };
    let (work, read) = (token("w", "work"), token("py", "read,start"));
    let (_server, url) = served(&world, &["--tokens", "flows/graded.flow"]);
    let worker = |ca: &[&str]| {
        let mut command =
            world.command(&[&["worker", "tool", "--connect", &url, "--token-env", "WORK"], ca].concat());
        command.env("WORK", &work);
        Process::start(&mut command)
    };
    let odd = worker(&["--ca", "none.pem"]).finish();
    assert!(odd.code != Some(0) && odd.stderr.contains("none.pem"), "{odd:?}");
    let _worker = worker(&["--ca", "a-ca.pem"]);
    world.write("better", "");
    let python = format!(
        "from outlast import Client
c = Client('{url}', token='{read}', cafile='a-ca.pem')
print(c.run('Graded', {{'name': 'n', 'grade': 'moody'}}, id='m'))"
    );
    let source = repository::root().join("workers/python/src");
    let asked = |code: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", code]).env("PYTHONPATH", &source).current_dir(world.work()).output().unwrap()
    };
    let output = asked(&python);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "n", "{said}");
    let strange = python.replace(", cafile='a-ca.pem'", ", timeout=5, patience=1");
    assert!(!asked(&strange).status.success(), "an authority that nobody trusts");
}
