// Executor: the one thread that runs launches and runs, and so the owner of the OpenMP team. Between jobs it
// looks at the rings of the sessions (ring/rings.h), and when there is nothing to do it sleeps there. Jobs
// that a GPU computes have a lane of their own, one for each GPU: a thread that enqueues and waits there, so
// that nobody else waits for that GPU.
//
// Whose turn it is the tenants' shares of measured time decide (fair_queue.h); a tenant's own jobs take turns
// in the order of their arrival. A job whose bytes meet those of an earlier one that has not ended waits for
// it, so that taking turns changes no result. A job that must wait for its client leaves the thread
// (`parked`) and is queued again by `resume`, so that a slow client holds nobody up; a long one gives way
// between its pieces
// (`again`). That is so in each lane by itself, and conflicts are told apart across all of them. Two more
// threads end the jobs that were cancelled before their turn came, and free what jobs
// leave behind: neither waits for what runs, nor holds it up.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/base/status.h"
#include "server/fair_queue.h"
#include "server/footprint.h"
#include "server/limits.h"
#include "server/meters.h"
#include "server/tenants.h"
#include "server/timeline.h"
#include "server/work_pool.h"

namespace eagle::server {

class Executor;
class Rings;

// For what operators are told.
enum class WorkKind : std::uint8_t { launch, run, other };

class Job {
public:
  enum class Next {
    again,   // to the back of its tenant's queue
    parked,  // until somebody resumes it; may have happened already
    done,
  };
  virtual ~Job() = default;
  // Does a piece of work. Called by one thread at a time, never after `done`: that of its lane, or for a job
  // that was cancelled and `ends_at_once` another one.
  virtual Next advance() = 0;
  // Whether `advance` does nothing but end, storing nothing in planes before its first piece and computing
  // nothing after. Asked of a job that was cancelled and is queued or waits for others; quick, and without
  // the executor.
  [[nodiscard]] virtual bool ends_at_once() const { return true; }
  // Makes the job end soon, from any thread, at any time, more than once; a parked one resumes itself.
  virtual void cancel() = 0;
  // The same of the daemon's own accord: that is how the job ends, as far as the end is not a good one.
  virtual void stop(const Status& /*why*/) { cancel(); }

protected:
  // How it ended, before `advance` returns `done`.
  void ends_with(Code code) { code_ = code; }
  // Within `advance`, called by the executor: when it was called, about.
  [[nodiscard]] std::chrono::steady_clock::time_point turn_began() const { return turn_began_; }

private:
  friend Executor;
  enum class State : std::uint8_t { held, ready, running, parked, ended };
  // The executor's, under its lock.
  struct Place {
    std::shared_ptr<Tenant> tenant;
    Tenant::Share share;
    std::size_t lane = 0;
    int gpu = -1;              // of the lane
    std::uint64_t number = 0;  // of all jobs there were
    WorkKind kind = WorkKind::other;
    WorkIds ids;
    std::shared_ptr<const Footprint> footprint;
    std::size_t at = 0;  // in `unfinished_`, where there is a footprint
    State state = State::held;
    std::uint32_t turns = 0;
    std::size_t earlier = 0;                  // jobs that it waits for
    std::uint64_t found_by = 0;               // the last search that came by it
    std::vector<std::shared_ptr<Job>> later;  // jobs that wait for it, or did before they ended
    std::size_t sweep_at = 16;                // so many, and those that have ended are forgotten
    std::chrono::steady_clock::time_point submitted;
    std::chrono::steady_clock::time_point began;   // its first turn
    std::chrono::steady_clock::time_point parked;  // its last host call
  };
  Place place_;
  Code code_ = Code::ok;
  std::chrono::steady_clock::time_point turn_began_;
};

// Thread-safe.
class Executor {
public:
  explicit Executor(std::size_t capacity);
  ~Executor();  // after the piece in progress; jobs that are left are dropped
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Whose a job is, what it touches (may be null), and which GPU computes it ("cuda:0"; "cpu", or empty: none
  // does).
  struct Owner {
    std::shared_ptr<Tenant> tenant;
    WorkIds ids;
    std::shared_ptr<const Footprint> footprint;
    WorkKind kind = WorkKind::other;
    std::string_view device = {};
  };
  // SHUTTING_DOWN once closed. QUOTA (jobs) when `capacity` jobs are queued, running or parked; QUOTA of the
  // tenant.
  //
  // A job that touches what an unfinished one writes, or the other way round, waits for it, whosesoever it
  // is. Not so where a job of the same session is at a host call: what comes then may be part of that call,
  // and runs ahead of whatever waits for it.
  Status submit(std::shared_ptr<Job> job, Owner owner);
  // Of nobody in particular.
  Status submit(std::shared_ptr<Job> job) { return submit(std::move(job), {own_, {}, nullptr}); }
  // The job that runs is about to call its client, and will return `parked`: what its session submits from
  // now on may be part of that call. Before the client can know of it. One that was resumed already stays so.
  void park(Job& job);
  // Queues a parked job. Never refused: the job was admitted.
  void resume(std::shared_ptr<Job> job);
  // For a job that has been cancelled: if it is queued or waits for others it ends at once, whatever runs,
  // where it can (`ends_at_once`); else, and if it runs and gives way, it is next. Any other is left alone.
  void expedite(const std::shared_ptr<Job>& job);
  [[nodiscard]] Meters& meters() { return meters_; }
  [[nodiscard]] Timeline& timeline() { return timeline_; }
  // Whether its own thread has moved since the last call, or has nothing to do: one caller at a time. A GPU
  // that stands still is that GPU's alone.
  bool goes_round();

  // Drops the reference, on a thread that may take its time.
  void discard(std::shared_ptr<void> remains);

  // What is over a lower capacity stays.
  void set_capacity(std::size_t capacity) { capacity_ = capacity; }

  // From which launches come, too.
  [[nodiscard]] const std::shared_ptr<Rings>& rings() const { return rings_; }

  // Whether a job of the session is at a host call: what the session submits now may be part of it.
  [[nodiscard]] bool at_host_call(std::uint64_t session) const;
  [[nodiscard]] std::size_t admitted() const;
  // Those that wait for an earlier one.
  [[nodiscard]] std::size_t held() const;
  // What its threads are at, and since when, for people; empty: nothing.
  [[nodiscard]] std::string running() const;
  // Stops what has been at one piece of work for `limit` while somebody else's work waits in its lane. Pieces
  // take milliseconds, but a kernel's loop over one sample gives way to nobody. For who looks now and then;
  // what it tells of that is for people, and empty where nothing was stopped.
  std::string stop_overlong(std::chrono::milliseconds limit);
  // Stops the unfinished jobs of these sessions that conflict with what `over` touches.
  void stop_those_over(const Footprint& over, std::span<const std::uint64_t> sessions, const Status& why);
  // Returns when no job is left, or when `stop` becomes true (see `wake`).
  void wait_until_idle(const std::atomic<bool>& stop);
  // Makes `wait_until_idle` look at its flag again.
  void wake();
  // Runs nothing more, from now on, if no job is left and no ring has one: what is submitted from then on is
  // refused with SHUTTING_DOWN. False: there is work.
  bool close();

private:
  using Clock = std::chrono::steady_clock;

  // A piece of work whose turn it is. `first`: its job has not run before.
  struct Turn {
    Job* job = nullptr;  // the lane's `running`; null: nobody's
    Clock::time_point began;
    bool first = false;
  };
  // What one thread runs. Its members are used under the executor's lock.
  struct Lane {
    std::string device;  // empty: the executor's own
    int gpu = -1;        // its number
    FairQueue<std::shared_ptr<Job>> ready;
    std::deque<std::shared_ptr<Job>> hurried;  // before all others
    std::shared_ptr<Job> running;              // changed by its own thread only
    Clock::time_point turn_began;              // of `running`
    bool stopped = false;                      // in this turn, as it took too long
    bool hurry = false;                        // the running one was expedited, and is next again
    std::condition_variable wake;              // of a GPU's
    std::jthread thread;

    [[nodiscard]] bool empty() const { return ready.empty() && hurried.empty(); }
  };
  void work(Lane& own);
  void work_for(Lane& gpu);
  std::size_t lane_of(std::string_view device);  // with the lock held
  [[nodiscard]] Lane& lane_of(const Job& job) const { return *lanes_[job.place_.lane]; }
  [[nodiscard]] Tenant::Flow& flow_of(const Job& job) const {
    return job.place_.tenant->flow(job.place_.lane);
  }
  Turn next(Lane& lane);  // with the lock held
  // Likewise: the turn of a job that comes from the executor's own thread when nobody else wants one.
  bool begins_at_once(const Job& job) const;
  Turn begin(Lane& lane, std::shared_ptr<Job> job, Clock::time_point now);
  void run(Lane& lane, const Turn& turn);
  [[nodiscard]] std::string text_of(const Lane& lane) const;  // with the lock held
  [[nodiscard]] bool nothing_to_do() const;
  void end_early(const std::shared_ptr<Job>& job);
  // For operators.
  void note_turn(const Job& job, Clock::time_point began, Clock::time_point ended);
  void note_end(Job& job, Clock::time_point ended);
  // With the lock held, and so in bounded time (Footprint::most_steps_in_a_row): everybody waits for it.
  void wait_for_earlier(const std::shared_ptr<Job>& job);
  void make_ready(std::shared_ptr<Job> job);
  void leave(Job& job);
  bool may_end();
  void finished();  // without the lock

  Bound<std::size_t> capacity_;
  const std::shared_ptr<Tenant> own_ = std::make_shared<Tenant>("eagled", TenantPolicy());
  Meters meters_;
  Timeline timeline_;
  std::atomic<std::uint64_t> rounds_ = 0;
  std::atomic<bool> asleep_ = false;
  std::uint64_t rounds_seen_ = 0;  // of whoever asks `goes_round`
  mutable std::mutex mutex_;
  std::uint64_t last_number_ = 0;
  std::condition_variable idle_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // the first one is the executor's own
  Turn begun_;                        // of the executor's own thread: what it runs next, without a search
  std::atomic<bool> called_ = false;  // something was queued there since a GPU's thread looked
  std::vector<std::shared_ptr<Job>> unfinished_;  // with a footprint
  std::atomic<std::size_t> admitted_ = 0;         // grows with the lock held
  std::atomic<int> awaits_idle_ = 0;              // threads
  std::size_t held_ = 0;
  std::uint64_t searches_ = 0;
  bool ending_ = false;
  enum class Closing : std::uint8_t { no, asked, refused, done };
  Closing closing_ = Closing::no;
  std::condition_variable closed_;
  const std::shared_ptr<Rings> rings_;
  // Last: they end before what they use.
  WorkPool reaper_{1, SIZE_MAX, "jobs"};   // what it holds is bounded by the jobs there are
  WorkPool leaving_{1, SIZE_MAX, "jobs"};  // likewise
};

}  // namespace eagle::server
