//! Whether each server syncs before it acknowledges, asked of its monitoring endpoint.
//!
//! By default a NATS server syncs every two minutes: a power cut in two machines would then lose
//! acknowledged records. Clients are not told. What tells is the page `/varz` of the monitoring
//! port, so that is read, from every server that keeps a copy.

use super::stream::Peer;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use txlog::Refusal;

/// How long an endpoint may take: it does nothing but format some numbers.
const ANSWER_WAIT: Duration = Duration::from_secs(1);

/// The largest page. A server's is some 10 KiB.
const PAGE_BYTES_MAX: u64 = 1 << 20;

/// Storage that a server must have left: all that may be under way, several times.
const FREE_BYTES_MIN: u64 = 64 << 20;

/// How long a server that has shown that it syncs may leave its page unanswered although it takes
/// part. A machine under load misses a look or two, and they come every two seconds.
const TRUST: Duration = Duration::from_secs(20);

/// The oldest version whose replicated log is relied on.
pub const VERSION_MIN: (u32, u32) = (2, 15);

/// Whether a server is new enough.
pub fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= VERSION_MIN,
        _ => false,
    }
}

/// What a server says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Page {
    server_name: String,
    version: String,
    is_always_synced: bool,
    /// Bytes of file storage that are left to it; none where it has no limit.
    free_bytes: Option<u64>,
}

impl Page {
    fn read(page: &Value) -> Option<Self> {
        let jetstream = &page["jetstream"];
        let limit = jetstream["config"]["max_storage"].as_u64();
        let used = jetstream["stats"]["storage"].as_u64().unwrap_or_default();
        Some(Self {
            server_name: page["server_name"].as_str()?.to_owned(),
            version: page["version"].as_str()?.to_owned(),
            is_always_synced: jetstream["config"]["sync_always"].as_bool().unwrap_or_default(),
            free_bytes: limit.map(|limit| limit.saturating_sub(used)),
        })
    }

    fn complaint(&self) -> Option<Refusal> {
        let Self { server_name, version, .. } = self;
        if !is_new_enough(version) {
            let (major, minor) = VERSION_MIN;
            return Some(Refusal::Unavailable(format!(
                "NATS server {server_name} has version {version}, and {major}.{minor} is needed"
            )));
        }
        if !self.is_always_synced {
            return Some(Refusal::Unavailable(format!(
                "NATS server {server_name} acknowledges before it syncs: set sync_interval: always \
                 in its jetstream block"
            )));
        }
        self.free_bytes.is_some_and(|free| free < FREE_BYTES_MIN).then_some(Refusal::DiskFull)
    }
}

/// What is known of the servers, from one look to the next.
pub struct Monitor {
    /// `host:port` of each endpoint.
    endpoints: Vec<String>,
    /// Servers that have shown that they sync, and when they last did.
    verified: BTreeMap<String, Instant>,
}

impl Monitor {
    pub fn new(endpoints: Vec<String>) -> Self {
        Self { endpoints, verified: BTreeMap::new() }
    }

    /// Asks every endpoint, and says why the log must not be written now.
    pub async fn complaint(&mut self, peers: &[Peer]) -> Option<Refusal> {
        let mut pages = BTreeMap::new();
        for endpoint in &self.endpoints {
            match page(endpoint).await {
                Ok(page) => {
                    pages.insert(page.server_name.clone(), page);
                }
                Err(error) => tracing::debug!(endpoint, %error, "no answer from a monitoring port"),
            }
        }
        self.judge(peers, &pages, Instant::now())
    }

    /// A server that does not answer for a while is taken for what it was. One that the leader
    /// misses too acknowledges nothing, and may be away for as long as it likes; but it may be
    /// another when it is back, and must show itself then.
    fn judge(
        &mut self,
        peers: &[Peer],
        pages: &BTreeMap<String, Page>,
        now: Instant,
    ) -> Option<Refusal> {
        let is_here = |name: &String| peers.iter().any(|it| it.name == *name && !it.is_away);
        self.verified.retain(|name, shown| now - *shown <= TRUST && is_here(name));
        let mut complaint = None;
        for peer in peers {
            match pages.get(&peer.name) {
                Some(page) => match page.complaint() {
                    None => {
                        self.verified.insert(peer.name.clone(), now);
                    }
                    Some(found) => {
                        self.verified.remove(&peer.name);
                        complaint = complaint.or(Some(found));
                    }
                },
                None if peer.is_away || self.verified.contains_key(&peer.name) => {}
                None => {
                    let found = Refusal::Unavailable(format!(
                        "whether NATS server {} syncs before it acknowledges is unknown: none of \
                         the monitoring ports {} answers for it",
                        peer.name,
                        self.endpoints.join(", ")
                    ));
                    complaint = complaint.or(Some(found));
                }
            }
        }
        complaint
    }
}

async fn page(endpoint: &str) -> io::Result<Page> {
    let answer = tokio::time::timeout(ANSWER_WAIT, fetch(endpoint)).await;
    let body = answer.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let strange = || io::Error::new(io::ErrorKind::InvalidData, "the page is not a server's /varz");
    let page: Value = serde_json::from_slice(&body).map_err(|_| strange())?;
    Page::read(&page).ok_or_else(strange)
}

/// Fetches a page by HTTP/1.0: the server then ends the body by closing the connection.
async fn fetch(endpoint: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(endpoint).await?;
    let request = format!("GET /varz HTTP/1.0\r\nHost: {endpoint}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(PAGE_BYTES_MAX).read_to_end(&mut answer).await?;
    let strange = || io::Error::new(io::ErrorKind::InvalidData, "the answer is not a page");
    let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or_else(strange)?;
    let status = answer.split(|&byte| byte == b' ').nth(1).ok_or_else(strange)?;
    if status != b"200" {
        return Err(io::Error::other(format!("status {}", String::from_utf8_lossy(status))));
    }
    Ok(answer.split_off(head + 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn varz(name: &str, is_always_synced: bool) -> Page {
        let mut page = json!({
            "server_name": name, "version": "2.15.2",
            "jetstream": { "config": { "max_storage": 1u64 << 40, "sync_interval": 120 } },
        });
        if is_always_synced {
            page["jetstream"]["config"]["sync_always"] = json!(true);
        }
        Page::read(&page).expect("it is a server's page")
    }

    fn pages(pages: &[Page]) -> BTreeMap<String, Page> {
        pages.iter().map(|page| (page.server_name.clone(), page.clone())).collect()
    }

    fn peers(names: &[(&str, bool)]) -> Vec<Peer> {
        let peer = |&(name, is_away): &(&str, bool)| Peer { name: name.to_owned(), is_away };
        names.iter().map(peer).collect()
    }

    fn text(complaint: Option<Refusal>) -> String {
        complaint.map(|refusal| refusal.to_string()).unwrap_or_default()
    }

    #[test]
    fn every_peer_must_show_that_it_syncs() {
        let mut monitor = Monitor::new(vec!["m:8222".to_owned()]);
        let three = peers(&[("a", false), ("b", false), ("c", false)]);
        let all = pages(&[varz("a", true), varz("b", true), varz("c", true)]);
        assert_eq!(monitor.judge(&three, &all, Instant::now()), None);
        let lax = pages(&[varz("a", true), varz("b", false), varz("c", true)]);
        let complaint = text(monitor.judge(&three, &lax, Instant::now()));
        assert!(complaint.contains("server b") && complaint.contains("sync_interval: always"));
        let hidden = pages(&[varz("a", true), varz("c", true)]);
        let complaint = text(monitor.judge(&three, &hidden, Instant::now()));
        assert!(complaint.contains("server b") && complaint.contains("m:8222"), "{complaint}");
    }

    #[test]
    fn a_peer_that_is_away_stops_nothing_but_must_show_itself_when_back() {
        let mut monitor = Monitor::new(Vec::new());
        let two = pages(&[varz("a", true), varz("b", true)]);
        let missed = peers(&[("a", false), ("b", false), ("c", true)]);
        assert_eq!(monitor.judge(&missed, &two, Instant::now()), None);
        let back = peers(&[("a", false), ("b", false), ("c", false)]);
        assert!(text(monitor.judge(&back, &two, Instant::now())).contains("server c"));
        let all = pages(&[varz("a", true), varz("b", true), varz("c", true)]);
        assert_eq!(monitor.judge(&back, &all, Instant::now()), None);
        // Verified once, then not answering for a moment.
        assert_eq!(monitor.judge(&back, &two, Instant::now()), None);
        // Away, and back: it may have been set up anew.
        assert_eq!(monitor.judge(&missed, &two, Instant::now()), None);
        assert!(text(monitor.judge(&back, &two, Instant::now())).contains("server c"));
        assert_eq!(monitor.judge(&back, &all, Instant::now()), None);
        // Another server took a place: it must show itself.
        let moved = peers(&[("a", false), ("b", false), ("d", false)]);
        assert!(text(monitor.judge(&moved, &two, Instant::now())).contains("server d"));
        assert!(
            text(monitor.judge(&back, &two, Instant::now())).contains("server c"),
            "c left, and is new again"
        );
    }

    #[test]
    fn a_peer_that_hides_its_page_is_trusted_for_a_while_only() {
        let mut monitor = Monitor::new(Vec::new());
        let both = peers(&[("a", false), ("b", false)]);
        let all = pages(&[varz("a", true), varz("b", true)]);
        let one = pages(&[varz("a", true)]);
        let began = Instant::now();
        assert_eq!(monitor.judge(&both, &all, began), None);
        assert_eq!(monitor.judge(&both, &one, began + TRUST), None);
        assert_eq!(monitor.judge(&both, &all, began + TRUST), None, "it shows itself again");
        assert_eq!(monitor.judge(&both, &one, began + TRUST * 2), None);
        let late = began + TRUST * 2 + Duration::from_millis(1);
        assert!(text(monitor.judge(&both, &one, late)).contains("server b"));
    }

    #[test]
    fn old_servers_and_full_ones_are_refused() {
        let mut monitor = Monitor::new(Vec::new());
        let mut old = varz("a", true);
        old.version = "2.9.10".to_owned();
        assert!(
            text(monitor.judge(&peers(&[("a", false)]), &pages(&[old]), Instant::now()))
                .contains("2.9.10")
        );
        let mut full = varz("a", true);
        full.free_bytes = Some(FREE_BYTES_MIN - 1);
        let complaint = monitor.judge(&peers(&[("a", false)]), &pages(&[full]), Instant::now());
        assert_eq!(complaint, Some(Refusal::DiskFull));
        let versions = ["2.15.0", "2.16.1-beta", "3.0.0", "2.14.9", "v2", ""].map(is_new_enough);
        assert_eq!(versions, [true, true, true, false, false, false]);
    }
}
