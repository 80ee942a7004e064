//! Certificates of authorities that a test makes. Needs `openssl`.

use std::process::Command;

use crate::world::World;

/// Makes an authority, and a certificate of it for this machine: `NAME-ca.pem`, `NAME.pem`, `NAME.key`.
///
/// # Panics
/// If they cannot be made.
pub fn certify(world: &World, name: &str) {
    let script = format!(
        "new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
         openssl req -x509 $new -keyout {name}-ca.key -out {name}-ca.pem -days 2 -subj /CN={name}-ca 2>/dev/null
         openssl req $new -keyout {name}.key -out {name}.csr -subj /CN=localhost 2>/dev/null
         printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\nbasicConstraints=CA:FALSE\n' >{name}.ext
         openssl x509 -req -in {name}.csr -CA {name}-ca.pem -CAkey {name}-ca.key -CAcreateserial -days 2 \
           -extfile {name}.ext -out {name}.pem 2>/dev/null && echo made"
    );
    let made = Command::new("bash").args(["-ec", &script]).current_dir(world.work()).output();
    let made = made.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    assert_eq!(made.unwrap_or_default(), "made", "the tests need openssl");
}
