# A queue of Sidekiq.
#
# ruby sidekiq_queue.rb produce PORT COUNT ACKED | work PORT DONE
#
# A worker is the program `sidekiq`, which loads this file for the job.
require "sidekiq"

class Job
  include Sidekiq::Worker
  sidekiq_options queue: "jobs", retry: 25

  def perform(number, done)
    sleep 0.002
    File.open(done, "a") { |file| file.write("#{number}\n") }
  end
end

def produce(count, acked)
  done = File.join(File.dirname(acked), "done")
  count.times do |number|
    begin
      Job.perform_async(number, done)
    rescue Redis::BaseError
      sleep 0.05
      retry
    end
    File.open(acked, "a") { |file| file.write("#{number}\n") }
  end
end

if $PROGRAM_NAME == __FILE__
  mode, port, *rest = ARGV
  url = "redis://127.0.0.1:#{port}/0"
  if mode == "produce"
    Sidekiq.configure_client { |config| config.redis = { url: url } }
    produce(Integer(rest[0]), rest[1])
  else
    exec({ "REDIS_URL" => url }, "sidekiq", "-r", __FILE__, "-q", "jobs", "-c", "2", "-t", "5")
  end
end
