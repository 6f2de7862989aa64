//! Why there is no slow memory to be had. Each says what an operator can do about it.

use super::NodeId;
use rustix::io::Errno;
use std::{error, fmt};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NumaError {
    /// The machine has no such node, or its kernel knows none at all.
    NodeMissing { node: NodeId, present: Vec<NodeId> },
    /// The node has processors, or had memory, but has none now.
    NodeEmpty { node: NodeId },
    /// The process's cpuset leaves the node out.
    NodeNotAllowed { node: NodeId, allowed: Vec<NodeId> },
    /// The process may not make this system call.
    NotPermitted { call: &'static str },
    /// The kernel does not have this system call.
    NotSupported { call: &'static str },
    /// There are no addresses for the range, or no right to memory of that size.
    NoRoom { bytes: usize, error: Errno },
    /// The kernel took the policy, and memory came from another node all the same.
    Elsewhere { wanted: NodeId, found: NodeId },
    /// A system call failed in a way that has no name here.
    Failed { call: &'static str, error: Errno },
}

impl NumaError {
    /// What the failure of a system call means.
    pub(super) fn of_call(call: &'static str, error: Errno) -> Self {
        match error {
            Errno::PERM | Errno::ACCESS => Self::NotPermitted { call },
            Errno::NOSYS => Self::NotSupported { call },
            error => Self::Failed { call, error },
        }
    }
}

impl fmt::Display for NumaError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeMissing { node, present } if present.is_empty() => write!(
                out,
                "there is no memory node {node}: the kernel shows none, because it was built \
                 without NUMA or /sys is not mounted"
            ),
            Self::NodeMissing { node, present } => write!(
                out,
                "there is no memory node {node}: this machine has {}. Memory of a device becomes a \
                 node by `daxctl reconfigure-device --mode=system-ram`",
                Listed(present)
            ),
            Self::NodeEmpty { node } => write!(
                out,
                "memory node {node} has no memory: bring it online (`daxctl online-memory`), or \
                 name another node"
            ),
            Self::NodeNotAllowed { node, allowed } => write!(
                out,
                "memory node {node} is not allowed to this process, only {}: add it to cpuset.mems \
                 of its control group (systemd: AllowedMemoryNodes=)",
                Listed(allowed)
            ),
            Self::NotPermitted { call } => write!(
                out,
                "this process may not call {call}: in a container, let the seccomp profile allow \
                 mbind and get_mempolicy, or give it CAP_SYS_NICE"
            ),
            Self::NotSupported { call } => write!(
                out,
                "there is no system call {call}: the kernel was built without NUMA, or a sandbox \
                 hides it"
            ),
            Self::NoRoom { bytes, error } => write!(
                out,
                "{bytes} bytes of addresses for slow memory are not to be had ({error}): raise the \
                 limit (ulimit -v), or set vm.overcommit_memory to 0 or 1"
            ),
            Self::Elsewhere { wanted, found } => write!(
                out,
                "memory asked of node {wanted} came from node {found}: is node {wanted} full? \
                 `numastat -m` shows it"
            ),
            Self::Failed { call, error } => write!(out, "the system call {call} failed: {error}"),
        }
    }
}

impl error::Error for NumaError {}

/// Nodes as a list: `0, 1`.
struct Listed<'a>(&'a [NodeId]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, node) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(out, "{comma}{node}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_system_call_answers_has_a_name() {
        let of = |error| NumaError::of_call("mbind", error);
        assert_eq!(of(Errno::PERM), NumaError::NotPermitted { call: "mbind" });
        assert_eq!(of(Errno::NOSYS), NumaError::NotSupported { call: "mbind" });
        assert_eq!(of(Errno::IO), NumaError::Failed { call: "mbind", error: Errno::IO });
        let text = of(Errno::PERM).to_string();
        assert!(text.contains("may not call mbind") && text.contains("CAP_SYS_NICE"), "{text}");
    }

    #[test]
    fn nodes_are_listed() {
        assert_eq!(Listed(&[NodeId(0), NodeId(2)]).to_string(), "0, 2");
        assert_eq!(Listed(&[]).to_string(), "");
    }
}
