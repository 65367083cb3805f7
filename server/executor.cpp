#include "server/executor.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "proto/rpc_error.h"
#include "server/ring/rings.h"

namespace eagle::server {
namespace {

std::int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// Whose own thread this is.
thread_local const Executor* here = nullptr;

}  // namespace

Executor::Executor(std::size_t capacity) : capacity_(capacity), rings_(std::make_shared<Rings>()) {
  lanes_.push_back(std::make_unique<Lane>());
  lanes_.front()->thread = std::jthread([this, &own = *lanes_.front()] { work(own); });
}

Executor::~Executor() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const auto& lane : lanes_) lane->wake.notify_all();
  }
  rings_->notify();
  for (const auto& lane : lanes_) lane->thread.join();
  // They hold their tenants, and these their queues: nobody else would drop them.
  for (const auto& lane : lanes_) lane->ready.clear();
}

// Where the system has no thread left, the executor's own waits for that GPU.
std::size_t Executor::lane_of(std::string_view device) {
  if (device.empty() || device == "cpu") return 0;
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    if (lanes_[i]->device == device) return i;
  }
  auto made = std::make_unique<Lane>();
  made->device = device;
  const std::string_view number = device.substr(std::min(device.find(':') + 1, device.size()));
  std::from_chars(number.data(), number.data() + number.size(), made->gpu);
  lanes_.reserve(lanes_.size() + 1);
  try {
    made->thread = std::jthread([this, &gpu = *made] { work_for(gpu); });
  } catch (const std::system_error&) {
    return 0;
  }
  lanes_.push_back(std::move(made));
  return lanes_.size() - 1;
}

Status Executor::submit(std::shared_ptr<Job> job, Owner owner) {
  const Clock::time_point now = Clock::now();
  EAGLE_RETURN_IF_ERROR(owner.tenant->may_compute(now));
  EAGLE_ASSIGN_OR_RETURN(Tenant::Share share, owner.tenant->hold(Held::jobs));
  {
    const std::lock_guard lock(mutex_);
    if (closing_ == Closing::done) {
      return {Reason::shutting_down, "the daemon is being exchanged; " + std::string(rpc::passes_soon_words)};
    }
    if (admitted_ >= capacity_) {
      return {Reason::quota, "the daemon has " + std::to_string(capacity_) +
                                 " launches and runs in hand, which is its limit (jobs); try again later"};
    }
    ++admitted_;
    Job::Place& place = job->place_;
    place.lane = lane_of(owner.device);
    place.gpu = lanes_[place.lane]->gpu;
    place.tenant = std::move(owner.tenant);
    place.share = std::move(share);
    place.number = ++last_number_;
    place.kind = owner.kind;
    place.ids = owner.ids;
    place.footprint = std::move(owner.footprint);
    place.submitted = now;
    wait_for_earlier(job);
    if (place.footprint) {
      place.at = unfinished_.size();
      unfinished_.push_back(job);
    }
    if (place.earlier > 0) {
      ++held_;
      return {};
    }
    if (begins_at_once(*job)) {
      lanes_.front()->ready.begin(flow_of(*job));
      lanes_.front()->hurry = false;
      begun_ = begin(*lanes_.front(), std::move(job), now);
      return {};
    }
    make_ready(std::move(job));
  }
  rings_->notify();
  return {};
}

void Executor::wait_for_earlier(const std::shared_ptr<Job>& job) {
  Job::Place& place = job->place_;
  if (!place.footprint || unfinished_.empty()) return;
  const auto called_it = [&](const Job::Place& other) {
    return other.ids.session == place.ids.session && place.ids.session != 0 &&
           other.state == Job::State::parked;
  };
  // Those that wait, in the end, for a host call that this job may be part of: it cannot wait for them.
  std::vector<Job*> behind;
  const std::uint64_t search = ++searches_;
  const auto find = [&behind, search](Job& found) {
    if (std::exchange(found.place_.found_by, search) != search) behind.push_back(&found);
  };
  for (const auto& known : unfinished_) {
    if (called_it(known->place_)) find(*known);
  }
  for (std::size_t i = 0; i < behind.size(); ++i) {
    for (const auto& waiting : behind[i]->place_.later) find(*waiting);
  }
  const auto let_wait = [](const std::shared_ptr<Job>& waiting, Job::Place& earlier) {
    ++waiting->place_.earlier;
    if (earlier.later.size() >= earlier.sweep_at) {
      std::erase_if(earlier.later,
                    [](const auto& later) { return later->place_.state == Job::State::ended; });
      earlier.sweep_at = std::max<std::size_t>(16, 2 * earlier.later.size());
    }
    earlier.later.push_back(waiting);
  };
  std::int64_t steps = Footprint::most_steps_in_a_row;
  for (const std::shared_ptr<Job>& known : unfinished_) {
    Job::Place& other = known->place_;
    if (called_it(other) || !place.footprint->conflicts_with(*other.footprint, steps)) continue;
    if (other.found_by == search && other.state == Job::State::held) {
      let_wait(known, place);
    } else {
      let_wait(job, other);
    }
  }
}

void Executor::make_ready(std::shared_ptr<Job> job) {
  job->place_.state = Job::State::ready;
  Lane& lane = lane_of(*job);
  Tenant::Flow& flow = flow_of(*job);
  lane.ready.add(flow, std::move(job));
  if (lane.device.empty()) {
    called_.store(true, std::memory_order_relaxed);
  } else {
    lane.wake.notify_one();
  }
}

void Executor::park(Job& job) {
  count(meters_.host_calls);
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (job.place_.state == Job::State::running) job.place_.state = Job::State::parked;
  job.place_.parked = now;
}

void Executor::resume(std::shared_ptr<Job> job) {
  {
    const std::lock_guard lock(mutex_);
    const Job::Place& place = job->place_;
    timeline_.add({TimelineEvent::Kind::host_call, Code::ok, 0, place.number, 0, nanoseconds(place.parked),
                   nanoseconds(Clock::now()), place.ids});
    make_ready(std::move(job));
  }
  rings_->notify();
}

void Executor::expedite(const std::shared_ptr<Job>& job) {
  const std::lock_guard lock(mutex_);
  Job::Place& place = job->place_;
  Lane& lane = lane_of(*job);
  if (lane.running == job) {
    // Its turn has not quite ended, even if it is queued again already: nobody else may touch it.
    lane.hurry = true;
    if (place.state == Job::State::ready && lane.ready.remove(flow_of(*job), job))
      lane.hurried.push_front(job);
  } else if (place.state == Job::State::ready) {
    if (!lane.ready.remove(flow_of(*job), job)) std::erase(lane.hurried, job);
    if (job->ends_at_once()) {
      end_early(job);
    } else {
      lane.hurried.push_back(job);
    }
  } else if (place.state == Job::State::held && place.earlier > 0) {
    --held_;
    end_early(job);
  }
}

// With the lock held.
void Executor::end_early(const std::shared_ptr<Job>& job) {
  job->place_.state = Job::State::running;
  static_cast<void>(leaving_.submit([this, job] {
    static_cast<void>(job->advance());
    note_end(*job, Clock::now());
    {
      const std::lock_guard lock(mutex_);
      leave(*job);
    }
    finished();
    rings_->notify();
  }));
}

void Executor::discard(std::shared_ptr<void> remains) {
  static_cast<void>(reaper_.submit([remains = std::move(remains)]() mutable { remains.reset(); }));
}

bool Executor::at_host_call(std::uint64_t session) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(unfinished_.begin(), unfinished_.end(), [session](const auto& job) {
    return job->place_.ids.session == session && job->place_.state == Job::State::parked;
  });
}

std::size_t Executor::admitted() const { return admitted_; }

std::size_t Executor::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

std::string Executor::text_of(const Lane& lane) const {
  const Job::Place& place = lane.running->place_;
  std::ostringstream text;
  text << (place.kind == WorkKind::launch ? "a launch of graph " + std::to_string(place.ids.graph)
           : place.kind == WorkKind::run  ? "a run"
                                          : "a copy")
       << " of session " << std::hex << place.ids.session << std::dec
       << (lane.device.empty() ? "" : " on " + lane.device) << ", at one piece of work for "
       << std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - lane.turn_began).count() << " s";
  return text.str();
}

std::string Executor::running() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& lane : lanes_) {
    if (lane->running != nullptr) text += (text.empty() ? "" : "; ") + text_of(*lane);
  }
  return text;
}

std::string Executor::stop_overlong(std::chrono::milliseconds limit) {
  std::vector<std::shared_ptr<Job>> jobs;
  std::string what;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& lane : lanes_) {
      const bool over =
          lane->running != nullptr && !lane->stopped && Clock::now() - lane->turn_began >= limit;
      if (!over || !lane->ready.others_wait(flow_of(*lane->running))) continue;
      lane->stopped = true;
      jobs.push_back(lane->running);
      what += (what.empty() ? "" : "; ") + text_of(*lane);
    }
  }
  const Status why(Reason::quota,
                   "it computed for more than " + std::to_string(limit.count()) +
                       " ms at a stretch while others waited (piece_ms), which only a loop within one "
                       "sample does: take its steps with simulate, or several launches");
  for (const auto& job : jobs) job->stop(why);
  return what;
}

void Executor::stop_those_over(const Footprint& over, std::span<const std::uint64_t> sessions,
                               const Status& why) {
  std::vector<std::shared_ptr<Job>> meant;
  std::int64_t steps = Footprint::most_steps_in_a_row;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& job : unfinished_) {
      const Job::Place& place = job->place_;
      const bool theirs = std::find(sessions.begin(), sessions.end(), place.ids.session) != sessions.end();
      if (theirs && place.footprint->conflicts_with(over, steps)) meant.push_back(job);
    }
  }
  for (const auto& job : meant) job->stop(why);
}

void Executor::wait_until_idle(const std::atomic<bool>& stop) {
  std::unique_lock lock(mutex_);
  ++awaits_idle_;
  idle_.wait(lock, [&] { return admitted_ == 0 || stop; });
  --awaits_idle_;
}

void Executor::wake() {
  const std::lock_guard lock(mutex_);
  idle_.notify_all();
}

bool Executor::close() {
  std::unique_lock lock(mutex_);
  if (closing_ == Closing::done) return true;
  closing_ = Closing::asked;
  rings_->notify();
  closed_.wait(lock, [this] { return closing_ != Closing::asked; });
  return closing_ == Closing::done;
}

// Whether the thread is over. With the lock held; the thread's own.
bool Executor::may_end() {
  if (ending_) return true;
  if (closing_ != Closing::asked) return false;
  closing_ = admitted_ == 0 && !rings_->pending() ? Closing::done : Closing::refused;
  closed_.notify_all();
  return closing_ == Closing::done;
}

void Executor::leave(Job& job) {
  Job::Place& place = job.place_;
  place.state = Job::State::ended;
  place.tenant->note_end();
  place.share = {};
  if (!place.footprint) return;
  std::shared_ptr<Job>& last = unfinished_.back();
  last->place_.at = place.at;
  std::swap(unfinished_[place.at], last);
  unfinished_.pop_back();
  place.footprint.reset();
  for (std::shared_ptr<Job>& waiting : place.later) {
    if (--waiting->place_.earlier > 0 || waiting->place_.state != Job::State::held) continue;
    --held_;
    make_ready(std::move(waiting));
  }
  place.later.clear();
}

// Who waits says so before it looks, and the last job goes before it is asked who waits: one of the two sees
// the other.
void Executor::finished() {
  if (--admitted_ > 0 || awaits_idle_ == 0) return;
  const std::lock_guard lock(mutex_);
  idle_.notify_all();
}

// With the lock held; the lane's thread's own.
Executor::Turn Executor::next(Lane& lane) {
  lane.hurry = !lane.hurried.empty();
  if (lane.empty()) return {};
  const Clock::time_point now = Clock::now();
  if (!lane.hurry) return begin(lane, lane.ready.next(now), now);
  std::shared_ptr<Job> job = std::move(lane.hurried.front());
  lane.hurried.pop_front();
  return begin(lane, std::move(job), now);
}

Executor::Turn Executor::begin(Lane& lane, std::shared_ptr<Job> job, Clock::time_point now) {
  lane.running = std::move(job);
  lane.turn_began = now;
  lane.stopped = false;
  Job::Place& place = lane.running->place_;
  place.state = Job::State::running;
  return {lane.running.get(), now, place.turns++ == 0};
}

// From one ring alone: where several are awake, whose turn it is shows when all were looked at.
bool Executor::begins_at_once(const Job& job) const {
  const Lane& own = *lanes_.front();
  return here == this && job.place_.lane == 0 && own.empty() && own.running == nullptr && !begun_.job &&
         rings_->awake() <= 1;
}

bool Executor::nothing_to_do() const {
  const std::lock_guard lock(mutex_);
  return lanes_.front()->empty() && !ending_ && closing_ != Closing::asked;
}

void Executor::note_turn(const Job& job, Clock::time_point began, Clock::time_point ended) {
  timeline_.add({TimelineEvent::Kind::turn, Code::ok, 0, job.place_.number, 0, nanoseconds(began),
                 nanoseconds(ended), job.place_.ids, job.place_.gpu});
}

void Executor::note_end(Job& job, Clock::time_point ended) {
  const Job::Place& place = job.place_;
  if (place.kind == WorkKind::other) return;
  const bool begun = place.turns > 0;
  timeline_.add({TimelineEvent::Kind::job, job.code_, place.turns, place.number, nanoseconds(place.submitted),
                 begun ? nanoseconds(place.began) : 0, nanoseconds(ended), place.ids, place.gpu});
  TenantMeter& meter = place.tenant->meter();
  const bool launch = place.kind == WorkKind::launch;
  count((launch ? meter.launches : meter.runs)[static_cast<std::size_t>(job.code_)]);
  if (!begun) return;
  const double seconds = std::chrono::duration<double>(ended - place.began).count();
  (launch ? meters_.launch_duration : meters_.run_duration).observe(seconds);
}

bool Executor::goes_round() {
  const std::uint64_t rounds = rounds_.load(std::memory_order_relaxed);
  if (std::exchange(rounds_seen_, rounds) != rounds) return true;
  return asleep_.load(std::memory_order_relaxed) && nothing_to_do();
}

void Executor::run(Lane& lane, const Turn& turn) {
  Job& job = *turn.job;
  Tenant& tenant = *job.place_.tenant;
  job.turn_began_ = turn.began;
  if (turn.first) {
    job.place_.began = turn.began;
    const double waited = std::chrono::duration<double>(turn.began - job.place_.submitted).count();
    tenant.note_wait(waited);
    meters_.queue_wait.observe(waited);
  }
  const Job::Next next = job.advance();
  const Clock::time_point ended = Clock::now();
  const double seconds = std::chrono::duration<double>(ended - turn.began).count();
  tenant.note_computed(seconds, ended);
  const bool over = next == Job::Next::done;
  // A job of one turn tells of it by its end.
  if (!turn.first || !over) note_turn(job, turn.began, ended);
  if (over) note_end(job, ended);
  std::shared_ptr<Job> ran;
  {
    const std::lock_guard lock(mutex_);
    ran = std::move(lane.running);
    lane.ready.ran(flow_of(job), seconds);
    if (over) {
      leave(job);
    } else if (next == Job::Next::parked) {
      if (job.place_.state == Job::State::running) job.place_.state = Job::State::parked;
    } else if (lane.hurry) {
      job.place_.state = Job::State::ready;
      lane.hurried.push_back(std::move(ran));
    } else {
      make_ready(std::move(ran));
    }
  }
  ran.reset();  // without the lock: its end may take others
  if (over) finished();
}

// A launch through a ring takes about a microsecond: each lock, and each look at a clock, is felt.
void Executor::work(Lane& own) {
  here = this;
  for (;;) {
    rounds_.store(rounds_.load(std::memory_order_relaxed) + 1,
                  std::memory_order_relaxed);  // nobody else does
    static_cast<void>(rings_->visit());
    Turn turn = std::exchange(begun_, Turn());
    if (!turn.job) {
      const std::lock_guard lock(mutex_);
      if (may_end()) return;
      turn = next(own);
    }
    if (turn.job) {
      run(own, turn);
    } else {
      asleep_.store(true, std::memory_order_relaxed);
      rings_->sleep([this] { return nothing_to_do(); });
      asleep_.store(false, std::memory_order_relaxed);
    }
  }
}

void Executor::work_for(Lane& gpu) {
  for (;;) {
    Turn turn;
    {
      std::unique_lock lock(mutex_);
      gpu.wake.wait(lock, [&] { return ending_ || !gpu.empty(); });
      if (ending_) return;
      turn = next(gpu);
    }
    run(gpu, turn);
    // What waited for its end may be the executor's own to run.
    if (called_.exchange(false, std::memory_order_relaxed)) rings_->notify();
  }
}

}  // namespace eagle::server
