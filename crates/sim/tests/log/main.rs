//! The file log on a disk that loses power, fails and fills up; the remote log over a service that
//! loses answers.

mod campaign;
mod conformance;
mod crash;
mod damage;
mod harness;
mod looks;
mod marks;
mod names;
mod remote;
mod rivals;
mod space;
