//! Logs that other machines keep: what every such log shares, whatever service stores it.
//!
//! | file | holds |
//! |---|---|
//! | [`store`] | what is asked of the service: numbered puts, gets, and how each ended |

pub mod store;
