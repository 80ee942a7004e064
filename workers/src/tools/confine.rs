//! Confines the process that is about to become a command, with all that it will start.
//!
//! Files: the kernel's Landlock lets it read what is listed and write below what is listed, and look into no process outside. Network: a name
//! space of its own with nothing but a loopback device, or else Landlock's refusal of all TCP. Root loses the powers that get around this.
//! Memory: a limit for each process, and the guard's eye on all of them together (see [`super::guard`]). Leaves what is listed to [`super::sandbox`]. Invariant: what could not be
//! enforced is returned, never passed over; nothing can be taken back.

use std::fs;
use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, RestrictionStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit, geteuid, getgid, getuid, setrlimit};
use rustix::thread::{CapabilitySet, UnshareFlags, remove_capability_from_bounding_set};
use serde::{Deserialize, Serialize};

/// What a command is held to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Confinement {
    /// Below these it may read, and run programs.
    pub(super) read: Vec<PathBuf>,
    /// Below these it may also write.
    pub(super) write: Vec<PathBuf>,
    /// Whether it has the machine's network.
    pub(super) network: bool,
    /// How much memory it may use, with all that it starts.
    pub(super) memory_bytes: u64,
    /// Whether it must not run if anything cannot be enforced.
    pub(super) required: bool,
}

/// Devices that hold nothing of anybody's.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm", "/dev/fd"];

/// What a command of root keeps: files of all users, other users, ports.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::SYS_CHROOT);

/// The version of Landlock that has all rights of files which matter: the first ones let files be cut short.
const FILES: ABI = ABI::V3;
/// The version that knows of other processes, and of what devices can be told.
const PROCESSES: ABI = ABI::V6;

impl Confinement {
    /// Confines this thread and what it becomes. Returns what could not be enforced, for people.
    pub(super) fn apply(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let limit = Rlimit { current: Some(self.memory_bytes), maximum: Some(self.memory_bytes) };
        if let Err(error) = setrlimit(Resource::Data, limit) {
            missing.push(format!("memory: {error}"));
        }
        // A core file would be a copy of its memory.
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        if let Err(error) = setrlimit(Resource::Core, none) {
            missing.push(format!("core files: {error}"));
        }
        let apart = self.network || own_network().is_ok();
        if !apart {
            missing.extend(refuse_tcp());
        }
        missing.extend(give_up_powers());
        missing.extend(self.keep_to_files());
        missing.extend(keep_from_processes());
        missing
    }

    /// Holds it to the listed files.
    fn keep_to_files(&self) -> Option<String> {
        let restrict = || -> Result<RestrictionStatus, RulesetError> {
            let all = AccessFs::from_all(FILES);
            let read = AccessFs::from_read(FILES);
            Ruleset::default()
                .handle_access(all)?
                .create()?
                // Names are no content; without them not even `ls /` works.
                .add_rules(path_beneath_rules(["/"], AccessFs::ReadDir))?
                .add_rules(path_beneath_rules(&self.read, read))?
                .add_rules(path_beneath_rules(&self.write, all))?
                .add_rules(path_beneath_rules(DEVICES, all))?
                .restrict_self()
        };
        told("files", "Linux 6.2", restrict())
    }
}

/// Takes from a command of root what gets around the rest: mounting, looking into processes, talking to devices.
fn give_up_powers() -> Option<String> {
    if !geteuid().is_root() {
        return None;
    }
    let given_up =
        CapabilitySet::all().difference(KEPT).iter().try_for_each(remove_capability_from_bounding_set);
    // A number that this kernel does not know is a power that nobody has.
    match given_up {
        Ok(()) | Err(rustix::io::Errno::INVAL) => None,
        Err(error) => Some(format!("powers of root: {error}")),
    }
}

/// Keeps it from signalling, and from connecting to abstract sockets of, processes outside.
fn keep_from_processes() -> Option<String> {
    let restrict = || Ruleset::default().scope(Scope::from_all(PROCESSES))?.create()?.restrict_self();
    told("signals to other processes", "Linux 6.12", restrict())
}

/// Keeps it from TCP. The rest of the network stays, which is said.
fn refuse_tcp() -> Option<String> {
    let restrict = || {
        let tcp = AccessNet::from_all(ABI::V4);
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(tcp)?
            .create()?
            .restrict_self()
    };
    match told("network", "Linux 6.7", restrict()) {
        Some(missing) => Some(missing),
        None => Some("network: only TCP is refused, because this user may not make name spaces".to_owned()),
    }
}

/// Says what is missing of a part, and since when kernels have it.
fn told(part: &str, since: &str, restricted: Result<RestrictionStatus, RulesetError>) -> Option<String> {
    match restricted.map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => None,
        Ok(RulesetStatus::PartiallyEnforced) => {
            Some(format!("{part}: only in part; all of it needs {since}"))
        }
        Ok(RulesetStatus::NotEnforced) => {
            Some(format!("{part}: this kernel cannot; it needs {since} with Landlock switched on"))
        }
        Err(error) => Some(format!("{part}: {error}")),
    }
}

/// Moves this process to a network of its own.
fn own_network() -> Result<(), String> {
    let (uid, gid) = (getuid(), getgid());
    if unshare(UnshareFlags::NEWNET).is_err() {
        // Others than root may do it in a user space of their own, in which they stay who they are.
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET).map_err(|error| error.to_string())?;
        let write = |file: &str, text: String| fs::write(format!("/proc/self/{file}"), text);
        let mapped = write("setgroups", "deny".to_owned())
            .and_then(|()| write("uid_map", format!("{uid} {uid} 1")))
            .and_then(|()| write("gid_map", format!("{gid} {gid} 1")));
        mapped.map_err(|error| error.to_string())?;
    }
    // Tests that talk to a server of their own need it. Without it there is even less of a network.
    let _none = raise_loopback();
    Ok(())
}

#[expect(deprecated, reason = "its successor is unsafe for the sake of FILES, which is not asked for")]
fn unshare(spaces: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(spaces)
}

/// Switches the loopback device of this network on: RTM_NEWLINK for device 1 with the flag IFF_UP.
fn raise_loopback() -> rustix::io::Result<()> {
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut message = Vec::new();
    // nlmsghdr: length, type, NLM_F_REQUEST | NLM_F_ACK, number, sender.
    message.extend(32_u32.to_ne_bytes());
    message.extend([16_u16, 0x1 | 0x4].map(u16::to_ne_bytes).concat());
    message.extend([1_u32, 0].map(u32::to_ne_bytes).concat());
    // ifinfomsg: family, padding, kind, index, flags, which of them change.
    message.extend([0; 4]);
    message.extend([1_u32, 1, 1].map(u32::to_ne_bytes).concat());
    rustix::net::sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    // The answer says that it has happened.
    rustix::net::recv(&socket, &mut [0; 256], RecvFlags::empty())?;
    Ok(())
}
