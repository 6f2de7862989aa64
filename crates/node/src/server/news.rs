//! Hands what happened to the shard on to whom it concerns.

use crate::core::Stop;
use crate::server::Server;
use shard::News;

impl Server {
    /// Hands on what was told, in its order.
    pub(crate) fn take_news(&mut self) {
        if self.news.is_empty() {
            return;
        }
        let mut news = std::mem::take(&mut self.news);
        for news in news.drain(..) {
            match news {
                News::Durable => {
                    self.core.release();
                    self.migrations.is_due = true;
                }
                News::Applied => self.spread_applied(),
                News::Leader(leader) => {
                    self.switches.tell(&mut self.core, &leader);
                    self.drop_caches();
                }
                News::ClocksParted => self.core.process.statistics.clock_gaps += 1,
                News::Demoted(why) => self.demote(why),
                News::Fatal(why) => self.core.stopping = Some(Stop::LogFailed(why)),
                News::SnapshotBegan => self.feed.start_gathering(&mut self.core),
                News::SnapshotPublished(file) => {
                    match file {
                        Some(file) => self.feed.send_file(&mut self.core, &file),
                        None => self.feed.give_up_gathering(&mut self.core),
                    }
                    self.answer_saves(true);
                }
                News::SnapshotGivenUp => self.feed.give_up_gathering(&mut self.core),
                News::SnapshotFailed => {
                    self.feed.give_up_gathering(&mut self.core);
                    self.answer_saves(false);
                }
            }
        }
        self.news = news;
    }

    /// Ends this life: whatever it holds may not be what the log says.
    pub(in crate::server) fn demote(&mut self, why: String) {
        let is_leaving = matches!(self.core.stopping, Some(Stop::Clean | Stop::Now));
        self.core.stopping = Some(if is_leaving { Stop::Now } else { Stop::Demoted(why) });
    }
}
